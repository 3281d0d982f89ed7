//! Resolves time zones as CEL's accessors accept them: an IANA name, or `+hh:mm`.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::integer::{NumberError, atoi};

/// The database is compiled in, so that results do not depend on the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Why a text is not a time zone, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// A part of an offset is not a number.
    #[error(transparent)]
    Offset(#[from] NumberError),
    /// The name could lead out of the database's folder.
    #[error("time: invalid location name")]
    Name,
    /// The database does not have the name.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

/// Returns the offset of a zone at an instant, in seconds east of UTC.
///
/// # Errors
/// When the name is unknown, or the offset malformed.
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
    // Go rejects names that could lead out of the database's folder before the lookup.
    if zone.starts_with(['/', '\\']) || zone.contains("..") {
        return Err(ZoneError::Name);
    }
    let found = find(zone).ok_or_else(|| ZoneError::Unknown(zone.to_owned()))?;
    // The last two days of the year 9999 are outside of the database's range, and have the same rules as the day before.
    let seconds = seconds.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let instant = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    Ok(i64::from(found.to_offset(instant).seconds()))
}

/// Finds a zone, respecting case as Go does; the database ignores it.
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
