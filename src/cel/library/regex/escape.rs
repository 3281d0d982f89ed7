//! Parses escapes: single code points (`\n`, `\x{41}`, `\101`, `\.`) and classes (`\d`, `\p{Greek}`).

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::sets::{fold, named_class};
use super::text::{Error, next_char, up_to};

const INVALID: &str = "invalid escape sequence";

/// The code point of an escape, which may be a surrogate.
pub(super) fn parse(text: &str) -> Result<(u32, &str), Error<'_>> {
    let (_, after) = next_char(text);
    if after.is_empty() {
        return Err(Error::new("trailing backslash at end of expression", ""));
    }
    let (letter, after) = next_char(after);
    let plain = |c: char| Ok((u32::from(c), after));
    match letter {
        'a' => plain('\u{7}'),
        'f' => plain('\u{c}'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\u{b}'),
        '0' => Ok(octal(0, after)),
        '1'..='7' if after.starts_with(|c: char| c.is_digit(8)) => {
            Ok(octal(letter.to_digit(8).unwrap_or(0), after))
        }
        'x' => hexadecimal(text, after),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => plain(c),
        _ => Err(Error::new(INVALID, up_to(text, after))),
    }
}

/// Up to two octal digits more.
fn octal(first: u32, text: &str) -> (u32, &str) {
    let (mut code, mut rest) = (first, text);
    for _ in 0..2 {
        let (c, after) = next_char(rest);
        let Some(digit) = c.to_digit(8).filter(|_| !rest.is_empty()) else { break };
        code = code.wrapping_mul(8).wrapping_add(digit);
        rest = after;
    }
    (code, rest)
}

/// Two digits, or any number of them in braces.
fn hexadecimal<'t>(whole: &'t str, text: &'t str) -> Result<(u32, &'t str), Error<'t>> {
    let invalid = |after: &str| Error::new(INVALID, up_to(whole, after));
    if let Some(braced) = text.strip_prefix('{') {
        return braced_hexadecimal(whole, braced);
    }
    let (first, after) = next_char(text);
    let (second, after) = next_char(after);
    match (first.to_digit(16), second.to_digit(16)) {
        (Some(high), Some(low)) => Ok((high.wrapping_mul(16).wrapping_add(low), after)),
        _ => Err(invalid(after)),
    }
}

fn braced_hexadecimal<'t>(whole: &'t str, text: &'t str) -> Result<(u32, &'t str), Error<'t>> {
    let mut code = 0_u32;
    let mut rest = text;
    while !rest.is_empty() {
        let (c, after) = next_char(rest);
        if c == '}' && rest.len() < text.len() {
            return Ok((code, after));
        }
        rest = after;
        let Some(digit) = c.to_digit(16) else { break };
        code = code.wrapping_mul(16).wrapping_add(digit);
        if code > u32::from(char::MAX) {
            break;
        }
    }
    Err(Error::new(INVALID, up_to(whole, rest)))
}

/// Returns the class that an escape at the start of `text` denotes, and the rest; None if it is not a class.
pub(super) fn class_escape(text: &str, fold_case: bool) -> Result<Option<(ClassUnicode, &str)>, Error<'_>> {
    let Some(after) = text.strip_prefix('\\') else { return Ok(None) };
    let (letter, after) = next_char(after);
    let (name, negated) = match letter {
        'd' => ("digit", false),
        'D' => ("digit", true),
        's' => ("perl space", false),
        'S' => ("perl space", true),
        'w' => ("word", false),
        'W' => ("word", true),
        'p' | 'P' => return unicode_class(text, after, letter == 'P', fold_case).map(Some),
        _ => return Ok(None),
    };
    Ok(named_class(name, negated, fold_case).map(|class| (class, after)))
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}`.
fn unicode_class<'t>(
    text: &'t str,
    after: &'t str,
    negated: bool,
    fold_case: bool,
) -> Result<(ClassUnicode, &'t str), Error<'t>> {
    let invalid = |part| Error::new("invalid character class range", part);
    let (name, rest) = match after.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or_else(|| invalid(text))?,
        None => {
            let (_, rest) = next_char(after);
            (up_to(after, rest), rest)
        }
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let mut class = property(name).ok_or_else(|| invalid(up_to(text, rest)))?;
    if fold_case {
        fold(&mut class);
    }
    if negated {
        class.negate();
    }
    Ok((class, rest))
}

/// Scripts whose whole name has four letters, as the abbreviation of every script has.
const SHORT_SCRIPTS: [&str; 9] = ["ahom", "cham", "kawi", "lisu", "miao", "modi", "newa", "thai", "toto"];

/// A general category by any of its names, or a script by its whole name; case, spaces, `_` and `-` do not matter.
fn property(name: &str) -> Option<ClassUnicode> {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    let name = letters.map(|c| c.to_ascii_lowercase()).collect::<String>();
    match name.as_str() {
        "any" => return Some(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])),
        "ascii" => return Some(ClassUnicode::new([ClassUnicodeRange::new('\0', '\u{7f}')])),
        // Strings cannot contain these.
        "cs" | "surrogate" => return Some(ClassUnicode::empty()),
        _ => {}
    }
    // Unlike Go, the tables know names with `is` in front.
    if name.is_empty() || name.starts_with("is") || !name.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let is_abbreviated = name.len() == 4 && !SHORT_SCRIPTS.contains(&name.as_str());
    table("gc", &name).or_else(|| table("sc", &name).filter(|_| !is_abbreviated))
}

fn table(kind: &str, name: &str) -> Option<ClassUnicode> {
    let hir = regex_syntax::parse(&format!(r"\p{{{kind}={name}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(ClassUnicode::new([ClassUnicodeRange::new(c, c)]))
        }
        _ => None,
    }
}
