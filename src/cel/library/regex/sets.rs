//! Builds sets of characters: POSIX classes, and case-insensitive variants.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir};

/// The members of a class of ASCII characters, by its POSIX name.
pub(super) fn named_class(name: &str, negated: bool, fold_case: bool) -> Option<ClassUnicode> {
    let ranges: &[(char, char)] = match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\u{7f}')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\u{1f}'), ('\u{7f}', '\u{7f}')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        // What `\s` means leaves the vertical tab out.
        "perl space" => &[('\t', '\n'), ('\u{c}', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    };
    let mut class = ClassUnicode::new(ranges.iter().map(|(low, high)| ClassUnicodeRange::new(*low, *high)));
    if fold_case {
        fold(&mut class);
    }
    if negated {
        class.negate();
    }
    Some(class)
}

/// A character with those that differ from it in case only.
pub(super) fn folded(c: char) -> ClassUnicode {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
    fold(&mut class);
    class
}

/// Adds to a class the characters that differ from its members only in case.
pub(super) fn fold(class: &mut ClassUnicode) {
    // Fails only in a build of the crate without Unicode tables, which the manifest rules out.
    let _ = class.try_case_fold_simple();
}

pub(super) fn hir(class: ClassUnicode) -> Hir {
    Hir::class(Class::Unicode(class))
}
