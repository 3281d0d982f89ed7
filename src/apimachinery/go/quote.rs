//! Quotes strings as Go's `strconv.Quote` and `%q`.

use std::fmt::{self, Write as _};

/// Returns a double-quoted Go string literal; unprintable characters are escaped.
///
/// ```
/// # use admit_apimachinery::go::quote;
/// assert_eq!(quote("a\n\u{200b}é"), r#""a\n\u200bé""#);
/// ```
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().saturating_add(2));
    quoted.push('"');
    for c in text.chars() {
        push_escaped(&mut quoted, c);
    }
    quoted.push('"');
    quoted
}

/// [Quotes](quote()) each of the texts, and joins them with a separator.
#[must_use]
pub fn quote_all<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, separator: &str) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| quote(text.as_ref())).collect();
    quoted.join(separator)
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
    let _ = match (short, is_print(c)) {
        ("", true) => out.write_char(c),
        ("", false) if code < 0x80 => write!(out, "\\x{code:02x}"),
        ("", false) if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
        ("", false) => write!(out, "\\U{code:08x}"),
        (short, _) => out.write_str(short),
    };
}

/// Returns Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space. Rust's `escape_debug` escapes
/// all other characters, and also a mark at the beginning of a text, so it is called with a letter before the character.
#[must_use]
pub fn is_print(c: char) -> bool {
    if c.is_ascii() || c.is_whitespace() {
        return c == ' ' || c.is_ascii_graphic();
    }
    let text = String::from_iter(['a', c]);
    text.escape_debug().eq(text.chars())
}

/// Quotes as Go's package `time`: control and non-ASCII characters are escaped byte by byte.
pub(super) struct OfTime<'t>(pub(super) &'t str);

impl fmt::Display for OfTime<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for byte in self.0.bytes() {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=0x7f => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::{quote, quote_all};

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, quoted) in [
            ("a\"\\\n\u{7f}\u{a0}\u{200b}é世😀\u{e000}", "\"a\\\"\\\\\\n\\x7f\\u00a0\\u200bé世😀\\ue000\""),
            ("é日", "\"é日\""),
            ("a\u{7}\u{0}", r#""a\a\x00""#),
            ("\u{200b}\u{feff}", r#""\u200b\ufeff""#),
            ("\u{1f600}", "\"\u{1f600}\""),
            ("\\", r#""\\""#),
            // Marks are printed anywhere; unassigned characters are not.
            ("\u{981}a\u{302}\u{fe0f}", "\"\u{981}a\u{302}\u{fe0f}\""),
            ("\u{378}\u{2028}\u{e001}", r#""\u0378\u2028\ue001""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(quote_all(["a", "\u{200b}"], ", "), r#""a", "\u200b""#);
    }
}
