//! Parses the time limit of a MustGather: a duration in Go's format, without a sign.

use std::time::Duration;

use admit_apimachinery::go;

/// A text that is no time limit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("mustGatherTimeout `{0}` is not a duration such as 90s, 30m or 1h30m; there is no unit for days")]
pub struct InvalidLimit(String);

/// Returns the duration; None if the text is empty or zero.
///
/// # Errors
/// When the text is not a duration, or has a sign.
pub fn parse(text: &str) -> Result<Option<Duration>, InvalidLimit> {
    if text.is_empty() {
        return Ok(None);
    }
    let nanos = go::duration::parse(text).ok().filter(|_| !text.starts_with(['+', '-']));
    let nanos = nanos.and_then(|nanos| u64::try_from(nanos).ok());
    let nanos = nanos.ok_or_else(|| InvalidLimit(text.to_owned()))?;
    Ok((nanos > 0).then(|| Duration::from_nanos(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        for (text, millis) in [
            ("10s", 10_000),
            ("10m", 600_000),
            ("10h", 36_000_000),
            ("1h0m0s", 3_600_000),
            ("1.5h", 5_400_000),
            ("1500ms", 1_500),
            (".5s", 500),
            ("2m30.25s", 150_250),
        ] {
            assert_eq!(parse(text), Ok(Some(Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "0", "0s", "0h0m"] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
        for text in ["1d", "10", "s", "-1s", "1h -1m", "1.2.3s", ".s", "99999999999h", "1 h", "1h1"] {
            assert!(parse(text).unwrap_err().to_string().contains(text), "{text}");
        }
    }
}
