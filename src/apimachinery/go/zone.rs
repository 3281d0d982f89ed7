//! Time zones as CEL's accessors take them: an IANA name, or `+hh:mm`.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::integer::{NumberError, atoi};

/// Compiled in, so that no answer depends on the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Why a text is no time zone, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// A part of an offset is no number.
    #[error(transparent)]
    Offset(#[from] NumberError),
    /// The name could lead out of the database's folder.
    #[error("time: invalid location name")]
    Name,
    /// The database does not have that name.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

/// Seconds east of UTC of a zone at an instant.
///
/// # Errors
/// The name is unknown, or the offset malformed.
pub fn offset_at(zone: &str, seconds: i64) -> Result<i64, ZoneError> {
    match zone.split_once(':') {
        Some((hours, minutes)) => fixed(zone, hours, minutes),
        None => named(zone, seconds),
    }
}

fn fixed(zone: &str, hours: &str, minutes: &str) -> Result<i64, ZoneError> {
    let (hours, minutes) = (atoi(hours)?, atoi(minutes)?);
    let whole = hours.wrapping_mul(60);
    let total = if zone.starts_with('-') { whole.wrapping_sub(minutes) } else { whole.wrapping_add(minutes) };
    Ok(total.saturating_mul(60))
}

fn named(zone: &str, seconds: i64) -> Result<i64, ZoneError> {
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    // Go refuses names that could leave the database's folder before it looks.
    if zone.starts_with(['/', '\\']) || zone.contains("..") {
        return Err(ZoneError::Name);
    }
    let found = find(zone).ok_or_else(|| ZoneError::Unknown(zone.to_owned()))?;
    // The last two days of the year 9999 are past the database's range, and under the same rules as the day before.
    let seconds = seconds.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let instant = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    Ok(i64::from(found.to_offset(instant).seconds()))
}

/// The database ignores case; Go does not.
fn find(zone: &str) -> Option<TimeZone> {
    DATABASE.get(zone).ok().filter(|found| found.iana_name() == Some(zone))
}

#[cfg(test)]
mod tests {
    use super::offset_at;

    #[test]
    fn names_and_offsets() {
        assert_eq!(offset_at("America/Los_Angeles", 1_700_000_000), Ok(-8 * 3600));
        assert_eq!(offset_at("-02:30", 0), Ok(-9000));
        assert_eq!(offset_at("02:30", 0), Ok(9000));
        assert_eq!(offset_at("utc", 0).unwrap_err().to_string(), "unknown time zone utc");
        assert_eq!(
            offset_at("x:00", 0).unwrap_err().to_string(),
            r#"strconv.Atoi: parsing "x": invalid syntax"#
        );
    }
}
