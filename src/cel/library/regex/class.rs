//! Parses character classes in brackets.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::escape::{self, class_escape};
use super::sets::{fold, named_class};
use super::text::{Error, next_char, up_to};

/// Parses `[…]` at the start of `text`.
pub(super) fn parse(text: &str, fold_case: bool) -> Result<(ClassUnicode, &str), Error<'_>> {
    let inner = text.strip_prefix('[').unwrap_or(text);
    let (negated, inner) = match inner.strip_prefix('^') {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    let mut class = ClassUnicode::empty();
    let mut rest = inner;
    // A closing bracket in the first place is a member.
    while rest.len() == inner.len() || !rest.starts_with(']') {
        if let Some((members, after)) = named(rest, fold_case)? {
            class.union(&members);
            rest = after;
        } else {
            let (members, after) = range(rest, text, fold_case)?;
            class.union(&members);
            rest = after;
        }
    }
    if negated {
        class.negate();
    }
    Ok((class, rest.strip_prefix(']').unwrap_or(rest)))
}

/// `[:alpha:]`, `\d`, `\p{Greek}`.
fn named(text: &str, fold_case: bool) -> Result<Option<(ClassUnicode, &str)>, Error<'_>> {
    if let Some((name, after)) = text.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
        let (bare, negated) = match name.strip_prefix('^') {
            Some(bare) => (bare, true),
            None => (name, false),
        };
        let class = named_class(bare, negated, fold_case)
            .filter(|_| !bare.contains(' '))
            .ok_or_else(|| Error::new("invalid character class range", up_to(text, after)))?;
        return Ok(Some((class, after)));
    }
    class_escape(text, fold_case)
}

/// Parses one member or a range. `whole` is the class from its bracket on.
fn range<'t>(text: &'t str, whole: &'t str, fold_case: bool) -> Result<(ClassUnicode, &'t str), Error<'t>> {
    let (low, after) = member(text, whole)?;
    let bounded = after.strip_prefix('-').filter(|rest| !rest.is_empty() && !rest.starts_with(']'));
    let (high, after) = match bounded {
        Some(rest) => member(rest, whole)?,
        None => (low, after),
    };
    if high < low {
        return Err(Error::new("invalid character class range", up_to(text, after)));
    }
    let mut class = between(low, high);
    if fold_case {
        fold(&mut class);
    }
    Ok((class, after))
}

fn member<'t>(text: &'t str, whole: &'t str) -> Result<(u32, &'t str), Error<'t>> {
    match next_char(text) {
        _ if text.is_empty() => Err(Error::new("missing closing ]", whole)),
        ('\\', _) => escape::parse(text),
        (c, after) => Ok((u32::from(c), after)),
    }
}

/// Returns the code points of a range without surrogates, which strings cannot contain.
fn between(low: u32, high: u32) -> ClassUnicode {
    let low = char::from_u32(low).unwrap_or('\u{e000}');
    let high = char::from_u32(high).unwrap_or('\u{d7ff}');
    if low > high { ClassUnicode::empty() } else { ClassUnicode::new([ClassUnicodeRange::new(low, high)]) }
}
