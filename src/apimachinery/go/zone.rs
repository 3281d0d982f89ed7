//! Time zones as CEL's accessors take them: an IANA name, or `+hh:mm`.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::integer::atoi;

/// Compiled in, so that no answer depends on the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Seconds east of UTC of a zone at an instant.
///
/// # Errors
///
/// The text of Go's error, for an unknown name or a malformed offset.
pub fn offset_at(zone: &str, seconds: i64) -> Result<i64, String> {
    match zone.split_once(':') {
        Some((hours, minutes)) => fixed(zone, hours, minutes),
        None => named(zone, seconds),
    }
}

fn fixed(zone: &str, hours: &str, minutes: &str) -> Result<i64, String> {
    let (hours, minutes) = (atoi(hours)?, atoi(minutes)?);
    let whole = hours.wrapping_mul(60);
    let total = if zone.starts_with('-') { whole.wrapping_sub(minutes) } else { whole.wrapping_add(minutes) };
    Ok(total.saturating_mul(60))
}

fn named(zone: &str, seconds: i64) -> Result<i64, String> {
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    // Go refuses names that could leave the database's folder before it looks.
    if zone.starts_with(['/', '\\']) || zone.contains("..") {
        return Err("time: invalid location name".to_owned());
    }
    let found = find(zone).ok_or_else(|| format!("unknown time zone {zone}"))?;
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
        assert_eq!(offset_at("utc", 0).unwrap_err(), "unknown time zone utc");
        assert_eq!(offset_at("x:00", 0).unwrap_err(), r#"strconv.Atoi: parsing "x": invalid syntax"#);
    }
}
