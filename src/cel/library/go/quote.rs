//! `strconv.Quote`.

use std::fmt::Write as _;

/// A double-quoted Go string literal; what does not print is escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().saturating_add(2));
    quoted.push('"');
    for c in text.chars() {
        push_escaped(&mut quoted, c);
    }
    quoted.push('"');
    quoted
}

fn push_escaped(out: &mut String, c: char) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => "",
    };
    let code = u32::from(c);
    // Writing to a string does not fail.
    let _ = match (short, is_printable(c)) {
        ("", true) => out.write_char(c),
        ("", false) if code < 0x80 => write!(out, "\\x{code:02x}"),
        ("", false) if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
        ("", false) => write!(out, "\\U{code:08x}"),
        (short, _) => out.write_str(short),
    };
}

/// Go's `unicode.IsPrint`, nearly: `char::escape_debug` judges by the same Unicode properties (it escapes what is
/// neither a letter, mark, number, punctuation, symbol nor the space), save that it also escapes combining marks at
/// the start of a text, which this avoids by looking at the escape after a letter.
fn is_printable(c: char) -> bool {
    c == ' ' || !c.is_whitespace() && !c.is_control() && (c.is_ascii() || prints_after_letter(c))
}

fn prints_after_letter(c: char) -> bool {
    let mut buffer = [0; 4];
    let encoded: &str = c.encode_utf8(&mut buffer);
    let text = format!("a{encoded}");
    text.escape_debug().eq(text.chars())
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn quotes_as_go() {
        assert_eq!(
            quote("a\"\\\n\u{7f}\u{a0}\u{200b}é世😀\u{e000}"),
            "\"a\\\"\\\\\\n\\x7f\\u00a0\\u200bé世😀\\ue000\""
        );
    }
}
