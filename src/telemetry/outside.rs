//! Sanitizes text from outside before people read it: in conditions, events, logs and errors.
//!
//! The response of a service, the message of an API server or a name in a request can contain anything: an echo of this process'
//! token, megabytes, characters that move a cursor. An [`Outside`] is such a text with a bounded length,
//! without known or recognisable secrets, and with control characters escaped.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::secrets::{HIDDEN, Secrets};

/// The default length limit in characters: a page of an error.
const MAX_SHOWN: usize = 1_024;

/// A sanitized text from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside(String);

impl Outside {
    /// Sanitizes `text`: at most 1,024 characters, none of `secrets` in any encoding, on one line.
    #[must_use]
    pub fn of(text: impl AsRef<[u8]>, secrets: &Secrets) -> Self {
        Self::at_most(MAX_SHOWN, text, secrets)
    }

    /// Does the same with another limit, in characters.
    #[must_use]
    pub fn at_most(characters: usize, text: impl AsRef<[u8]>, secrets: &Secrets) -> Self {
        let bytes = text.as_ref();
        // Secrets are searched before the text is cut, so that no part of one remains at the end; only as many bytes are searched
        // as may be shown. A character has four bytes at most.
        let looked_at = characters.saturating_mul(4).saturating_add(Secrets::OVERLAP);
        let text = match bytes.get(..looked_at) {
            // The last bytes may be the beginning of a secret.
            Some(start) => {
                start.get(..looked_at - Secrets::OVERLAP).map(|shown| secrets.hide_cut(start, shown.len()))
            }
            None => Some(secrets.hide(bytes)),
        };
        let text = redacted(&text.unwrap_or_default());
        let lines = text.replace(['\n', '\r', '\t'], " ");
        Self(escaped(lines.trim()).chars().take(characters).collect())
    }

    /// Sanitizes an error with its causes.
    #[must_use]
    pub fn error(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::error_without(error, &Secrets::default())
    }

    /// Does the same, if the origin of the error knows `secrets` and may quote them.
    #[must_use]
    pub fn error_without(error: &(dyn std::error::Error + 'static), secrets: &Secrets) -> Self {
        Self::of(super::causes(error), secrets)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Removes the user part of URLs, and what follows the names of authentication schemes.
#[must_use]
pub fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut hide_next = false;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        if hide_next {
            let space = word.get(bare.len()..).unwrap_or_default();
            out.push_str(if bare.is_empty() { "" } else { HIDDEN });
            out.push_str(space);
            hide_next = bare.is_empty();
            continue;
        }
        hide_next = ["bearer", "basic"].iter().any(|scheme| {
            bare.len() >= scheme.len()
                && bare.get(bare.len() - scheme.len()..).is_some_and(|end| end.eq_ignore_ascii_case(scheme))
        });
        out.push_str(&without_credentials(word));
    }
    out
}

/// Converts `https://user:password@host/` to `https://[redacted]@host/`.
fn without_credentials(word: &str) -> Cow<'_, str> {
    let found = word.find("://").and_then(|at| {
        let authority = word.get(at + 3..)?;
        let end = authority.find(['/', '?', '#', '"', '\'']).unwrap_or(authority.len());
        let at_sign = authority.get(..end)?.rfind('@')?;
        Some((word.get(..at + 3)?, authority.get(at_sign..)?))
    });
    found.map_or(Cow::Borrowed(word), |(front, end)| Cow::Owned(format!("{front}{HIDDEN}{end}")))
}

/// Escapes characters that move a cursor, end a line or change the text direction.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_easily_known_as_a_secret_is_hidden() {
        let cases = [
            ("plain text stays", "plain text stays"),
            ("see https://user:hunter2@example.com/a now", "see https://[redacted]@example.com/a now"),
            ("\"https://u:p@h\" twice ftp://x@y", "\"https://[redacted]@h\" twice ftp://[redacted]@y"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("Authorization: Bearer abc.def ghi", "Authorization: Bearer [redacted] ghi"),
            ("authorization=basic  dXNlcg==", "authorization=basic  [redacted]"),
        ];
        for (text, expected) in cases {
            assert_eq!(redacted(text), expected);
        }
    }

    /// Row 13: log lines contain no raw control characters.
    #[test]
    fn control_and_direction_characters_are_escaped() {
        for c in [
            '\0', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}', '\u{202e}', '\u{200b}', '\u{2066}',
            '\u{feff}',
        ] {
            let text = format!("a{c}b");
            assert_eq!(escaped(&text), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        assert_eq!(escaped("ünï ©"), "ünï ©");
    }

    #[test]
    fn a_text_from_outside_is_one_line_of_bounded_length() {
        let none = Secrets::default();
        let of = |text: &str| Outside::of(text, &none).into_string();
        assert_eq!(of(" two\r\nlines \u{1b}[31m\t"), "two  lines \\u{1b}[31m");
        assert_eq!(of(&"ö".repeat(1 << 20)), "ö".repeat(MAX_SHOWN));
        assert_eq!(Outside::of([b'a', 0xff, b'b'], &none).as_str(), "a\u{fffd}b");
        assert_eq!(Outside::at_most(3, "abcdef", &none).as_str(), "abc");
    }

    /// Wherever a text is cut, no recognisable part of a secret remains.
    #[test]
    fn a_text_is_cut_without_showing_part_of_a_secret() {
        let secret = "CANARYTOKEN4711-with-more-behind-it";
        let secrets = Secrets::of([secret]);
        for before in 0..200 {
            let text = format!("{}{secret}{}", "x".repeat(before), "y".repeat(5_000));
            for limit in [10, 50, 100] {
                let shown = Outside::at_most(limit, &text, &secrets).into_string();
                assert!(!shown.contains("CANARY"), "{before} {limit}: {shown}");
                assert!(shown.chars().count() <= limit);
            }
        }
        // The secret is cut at the end of the text.
        let text = format!("{}{secret}", "x".repeat(10 * 4 + Secrets::OVERLAP - 8));
        assert!(!Outside::at_most(10, &text, &secrets).as_str().contains('C'));
    }
}
