//! Percent-encodes and -decodes the parts of a URL, which have different rules.

use super::UrlProblem;

/// The part of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

/// Whether a byte is one of RFC 3986's `sub-delims`.
pub(super) const fn is_sub_delimiter(byte: u8) -> bool {
    matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

/// Whether a byte is percent-encoded.
pub(super) const fn should_escape(byte: u8, mode: Mode) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    match mode {
        Mode::Host | Mode::Zone => {
            !is_sub_delimiter(byte) && !matches!(byte, b':' | b'[' | b']' | b'<' | b'>' | b'"')
        }
        Mode::Path => !matches!(byte, b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'@'),
        Mode::User => !matches!(byte, b'$' | b'&' | b'+' | b',' | b';' | b'='),
        Mode::Query => true,
        Mode::Fragment => !matches!(
            byte,
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' | b'!' | b'(' | b')' | b'*'
        ),
    }
}

/// Percent-encodes a text for a part.
pub(super) fn escape(bytes: &[u8], mode: Mode) -> String {
    const HEXADECIMAL: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| HEXADECIMAL.get(usize::from(value)).copied().unwrap_or('0');
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' ' if mode == Mode::Query => text.push('+'),
            byte if should_escape(*byte, mode) => {
                text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
            byte => text.push(char::from(*byte)),
        }
    }
    text
}

/// Percent-decodes a text.
pub(super) fn unescape(text: &str, mode: Mode) -> Result<Vec<u8>, UrlProblem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match first {
            b'%' => {
                let byte = read_escape(rest, mode).ok_or_else(|| {
                    let shown = rest.get(..3).unwrap_or(rest);
                    UrlProblem::Escape(String::from_utf8_lossy(shown).into_owned())
                })?;
                bytes.push(byte);
                rest = rest.get(3..).unwrap_or_default();
                continue;
            }
            b'+' if mode == Mode::Query => bytes.push(b' '),
            byte if matches!(mode, Mode::Host | Mode::Zone)
                && byte.is_ascii()
                && should_escape(*byte, mode) =>
            {
                return Err(UrlProblem::HostCharacter(char::from(*byte)));
            }
            byte => bytes.push(*byte),
        }
        rest = after;
    }
    Ok(bytes)
}

/// Decodes the escape at the start; None if it is malformed or not allowed in this part.
fn read_escape(text: &[u8], mode: Mode) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = (digit(high)? << 4_u8) | digit(low)?;
    let admitted = match mode {
        // In a host only non-ASCII bytes may be escaped; an escaped percent sign begins a zone.
        Mode::Host => !byte.is_ascii() || byte == b'%',
        Mode::Zone => matches!(byte, b'%' | b' ') || !should_escape(byte, Mode::Host),
        Mode::Path | Mode::User | Mode::Query | Mode::Fragment => true,
    };
    admitted.then_some(byte)
}
