//! Converts scalars that are strings in JSON and typed values in the API server, such as times and
//! quantities, to their canonical form.

use admit_apimachinery::go::json::CorruptInput;
use admit_apimachinery::go::layout::TimestampError;
use admit_apimachinery::go::{self, Layout, Timestamp};
use admit_apimachinery::quantity::{Quantity, QuantityError};
use serde_json::{Number, Value};

/// Why a string is not such a value, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScalarError {
    #[error(transparent)]
    Time(#[from] TimestampError),
    #[error(transparent)]
    Base64(#[from] CorruptInput),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

/// Formats a time in UTC: in seconds, or in microseconds, which such a field requires.
pub(super) fn time(text: &str, micro: bool) -> Result<String, ScalarError> {
    let layout = if micro { Layout::Rfc3339Micro } else { Layout::Rfc3339 };
    let read = Timestamp::parse(layout, text)?;
    let seconds = Timestamp { nanos: 0, offset: 0, ..read }.to_string();
    if !micro {
        return Ok(seconds);
    }
    Ok(format!("{}.{:06}Z", seconds.trim_end_matches('Z'), read.nanos / 1_000))
}

/// Formats base64 with padding; line breaks are ignored.
pub(super) fn base64(text: &str) -> Result<String, ScalarError> {
    Ok(to_base64(&go::json::bytes(text)?))
}

pub(super) fn to_base64(bytes: &[u8]) -> String {
    go::base64::encode(bytes)
}

/// Formats a quantity in its canonical form: no fraction, the largest suffix that keeps the number whole.
pub(super) fn quantity(text: &str) -> Result<String, ScalarError> {
    let read = Quantity::parse(text.trim())?;
    Ok(read.to_string())
}

/// A floating-point number in the notation in which it is written: 1000, not 1000.0.
pub(super) fn float(number: Number) -> Number {
    go::json::text(&Value::Number(number.clone())).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_floats_are_written_without_a_fraction() {
        let written = |text: &str| float(text.parse().expect("a number")).to_string();
        assert_eq!(["1000.0", "5e-1", "1000", "-2.0"].map(written), ["1000", "0.5", "1000", "-2"]);
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time("2024-01-02T03:04:05.6+02:00", false).as_deref(), Ok("2024-01-02T01:04:05Z"));
        assert_eq!(
            time("2024-01-02T03:04:05.600000-01:00", true).as_deref(),
            Ok("2024-01-02T04:04:05.600000Z")
        );
        assert_eq!(
            time("2024-01-02T03:04:05.6Z", true).unwrap_err().to_string(),
            "parsing time \"2024-01-02T03:04:05.6Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \".6Z\" as \
             \".000000\""
        );
    }
}
