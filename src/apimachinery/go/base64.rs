//! Encodes and decodes base64 as Go's `encoding/base64`: line breaks are skipped, and an error has its offset.

/// The characters for 62 and 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    Url,
}

/// Whether `=` fills the last group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// It must, or the text is invalid.
    Required,
    /// `=` is not allowed.
    Absent,
}

/// Decodes a text.
///
/// # Errors
/// The offset that Go's `CorruptInputError` names.
pub fn decode(text: &str, alphabet: Alphabet, padding: Padding) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len().saturating_mul(3).wrapping_div(4));
    let mut group = Group::default();
    let mut bytes = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, byte)) = bytes.next() {
        if let Some(digit) = digit(byte, alphabet) {
            group.push(digit, &mut out);
            continue;
        }
        if byte != b'=' || padding == Padding::Absent || group.digits < 2 {
            return Err(at);
        }
        if group.digits == 2 {
            match bytes.next() {
                None => return Err(text.len()),
                Some((_, b'=')) => {}
                Some((at, _)) => return Err(at.saturating_sub(1)),
            }
        }
        if let Some((at, _)) = bytes.next() {
            return Err(at);
        }
        group.flush(&mut out);
        return Ok(out);
    }
    match (group.digits, padding) {
        (0, _) => {}
        (2 | 3, Padding::Absent) => group.flush(&mut out),
        (digits, _) => return Err(text.len().saturating_sub(usize::from(digits))),
    }
    Ok(out)
}

/// Encodes bytes in the standard alphabet with padding.
#[must_use]
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let group = (at(0) << 16) | (at(1) << 8) | at(2);
        for place in 0..4_usize {
            if place > chunk.len() {
                text.push('=');
                continue;
            }
            let shift = [18_u32, 12, 6, 0].get(place).copied().unwrap_or_default();
            let digit = DIGITS.get(((group >> shift) & 63) as usize).copied().unwrap_or_default();
            text.push(char::from(digit));
        }
    }
    text
}

/// Up to four digits, which encode three bytes.
#[derive(Default)]
struct Group {
    bits: u32,
    digits: u8,
}

impl Group {
    fn push(&mut self, digit: u8, out: &mut Vec<u8>) {
        self.bits = (self.bits << 6) | u32::from(digit);
        self.digits = self.digits.saturating_add(1);
        if self.digits == 4 {
            out.extend_from_slice(self.bits.to_be_bytes().get(1..).unwrap_or_default());
            *self = Self::default();
        }
    }

    /// Decodes an incomplete group of two or three digits.
    fn flush(&self, out: &mut Vec<u8>) {
        let (bits, bytes) = if self.digits == 2 { (self.bits << 12, 1..2) } else { (self.bits << 6, 1..3) };
        out.extend_from_slice(bits.to_be_bytes().get(bytes).unwrap_or_default());
    }
}

const fn digit(byte: u8, alphabet: Alphabet) -> Option<u8> {
    Some(match (byte, alphabet) {
        (b'A'..=b'Z', _) => byte.wrapping_sub(b'A'),
        (b'a'..=b'z', _) => byte.wrapping_sub(b'a').wrapping_add(26),
        (b'0'..=b'9', _) => byte.wrapping_sub(b'0').wrapping_add(52),
        (b'+', Alphabet::Standard) | (b'-', Alphabet::Url) => 62,
        (b'/', Alphabet::Standard) | (b'_', Alphabet::Url) => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_mistakes_placed_as_go_places_them() {
        use Padding::{Absent, Required};
        for (text, padding, expected) in [
            ("", Required, Ok("")),
            ("aGVsbG8=", Required, Ok("hello")),
            ("aGVs\nbG8=\n", Required, Ok("hello")),
            ("aGVsbG8", Absent, Ok("hello")),
            ("aGVsbA", Absent, Ok("hell")),
            ("aGVsbG8", Required, Err(4)),
            ("aGVsbA=", Required, Err(7)),
            ("aGVsbA=x", Required, Err(6)),
            ("aGVsbA==x", Required, Err(8)),
            ("aGVsb", Absent, Err(4)),
            ("aG!sbG8=", Required, Err(2)),
            ("=", Required, Err(0)),
            ("aGVsbG8=", Absent, Err(7)),
            ("aGV-", Required, Err(3)),
        ] {
            let expected = expected.map(|text| text.as_bytes().to_vec());
            assert_eq!(decode(text, Alphabet::Standard, padding), expected, "{text:?}");
        }
        assert_eq!(decode("-_-_", Alphabet::Url, Required), Ok(vec![0xfb, 0xff, 0xbf]));
    }

    #[test]
    fn bytes_are_written_with_padding() {
        for (bytes, text) in [("", ""), ("h", "aA=="), ("he", "aGU="), ("hel", "aGVs"), ("hell", "aGVsbA==")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
    }
}
