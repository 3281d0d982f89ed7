//! Constants, and how SMT-LIB 2 writes them.

use std::fmt::Write as _;

/// A value that a solver names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Given {
    Bool(bool),
    Int(i128),
    Text(String),
}

pub(super) fn written_int(value: i128) -> String {
    if value < 0 { format!("(- {})", value.unsigned_abs()) } else { value.to_string() }
}

/// A literal: what is not printable is escaped, and a quote is doubled.
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
