//! Writes constants as SMT-LIB 2 literals.

use std::fmt::Write as _;

/// A constant value in a solver's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Given {
    Bool(bool),
    Int(i128),
    Text(String),
}

pub(super) fn written_int(value: i128) -> String {
    if value < 0 { format!("(- {})", value.unsigned_abs()) } else { value.to_string() }
}

/// Writes a string literal: characters that are not printable are escaped, quotes are doubled.
pub(super) fn written_text(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => written.push_str("\"\""),
            '\\' => written.push_str("\\u{5c}"),
            ' '..='~' => written.push(c),
            _ => {
                let _ = write!(written, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    written.push('"');
    written
}
