//! Parses, adds and formats resource quantities exactly, in their canonical form.

mod amount;
mod digits;
mod parse;
mod print;

use std::fmt;

pub use amount::{Amount, Format, Quantity};

/// Why a text is not a quantity, with Kubernetes' messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text is not a number with a suffix.
    Form,
    /// The number is invalid, or would have too many digits.
    Number,
    /// The suffix is unknown.
    Suffix,
    /// A sum would have too many digits.
    TooFarApart,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Number => "unable to parse numeric part of quantity",
            Self::Suffix => "unable to parse quantity's suffix",
            Self::TooFarApart => "quantities differ too much in size to be added",
        })
    }
}

impl std::error::Error for QuantityError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        let shown = |text| Quantity::parse(text).map(|quantity| quantity.to_string());
        for (text, canonical) in [
            ("0", "0"),
            ("+", "0"),
            (".", "0"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("0.5Gi", "512Mi"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("1000k", "1M"),
            ("1.5e3", "1500"),
            ("12e6", "12e6"),
            ("1Pi", "1Pi"),
            ("100Ei", "9223372036854775807"),
            ("0.1n", "1n"),
            ("-1.5Ki", "-1536"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("129e6", "129e6"),
            ("1e30", "1e30"),
            // Any number of zeros is possible: they are not written.
            ("2e2000000000", "200e1999999998"),
            // Digits after nano are rounded away from zero.
            ("0.0000000001", "1n"),
            ("-0.0000000001", "-1n"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(canonical), "{text}");
        }
        for (text, why) in [
            ("", QuantityError::Form),
            ("1.2.3", QuantityError::Form),
            ("ten", QuantityError::Form),
            ("1Kii", QuantityError::Suffix),
            ("1234567890123456789e10001", QuantityError::Number),
        ] {
            assert_eq!(shown(text), Err(why), "{text}");
        }
    }
}
