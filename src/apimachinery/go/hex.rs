//! Encodes hexadecimal as Go's `encoding/hex`.

use std::fmt::Write as _;

/// Encodes each byte as two lower-case digits.
#[must_use]
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(encode([0, 0x0a, 0xff]), "000aff");
    }
}
