//! Computes offsets of constant time zones from UTC, fixed or changing over time. Named zones come from the bundled time zone database,
//! which the engine uses, too.

use std::rc::Rc;
use std::sync::LazyLock;

use admit_cel::{Bindings, Env, Evaluation, Mode, Program, Type, Value, Version};
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

/// A time zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Zone {
    /// A fixed offset, in minutes.
    Fixed(i64),
    /// An offset that changes over time.
    Changing(Rc<Offsets>),
    /// An unknown zone: using it is an error.
    None,
    /// A zone that is not modelled, and why.
    Unknown(&'static str),
}

/// The offsets of a zone from UTC, in seconds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Offsets {
    /// The offset before the first change.
    pub(super) first: i64,
    /// Start (seconds since 1970) and offset of each period, in order.
    pub(super) changes: Vec<(i64, i64)>,
    /// The second from which changes are not listed, if they continue forever.
    pub(super) end: Option<i64>,
}

/// The first second of 2100; later changes follow a rule, twice a year, and are not listed.
const END: i64 = 4_102_444_800;

/// Bundled, so that results do not depend on the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Returns the offsets of a zone in the database.
fn offsets(name: &str) -> Option<Offsets> {
    let zone = DATABASE.get(name).ok()?;
    let mut last = i64::from(zone.to_offset(Timestamp::MIN).seconds());
    let mut found = Offsets { first: last, changes: Vec::new(), end: None };
    for change in zone.following(Timestamp::MIN) {
        let (from, offset) = (change.timestamp().as_second(), i64::from(change.offset().seconds()));
        if from >= END {
            found.end = Some(END);
            break;
        }
        if offset != last {
            found.changes.push((from, offset));
            last = offset;
        }
    }
    Some(found)
}

/// Noon of a day in the middle of the year, far from both its ends in any zone.
const DAY: i64 = 165;
const NOON: i64 = 720;

static PROGRAM: LazyLock<Option<Program>> = LazyLock::new(|| {
    let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("z", Type::String);
    let noon = "timestamp('2001-06-15T12:00:00Z')";
    let parts = ["getFullYear", "getDayOfYear", "getHours", "getMinutes"];
    let parts: Vec<String> = parts.iter().map(|part| format!("{noon}.{part}(z)")).collect();
    env.program(&env.compile(&format!("[{}]", parts.join(", "))).ok()?).ok()
});

/// Parses a zone: an offset with a colon, or a name.
pub(super) fn zone(text: &str) -> Zone {
    match text {
        "" | "UTC" => return Zone::Fixed(0),
        "Local" => return Zone::Unknown("parts of a timestamp in the time zone of the server"),
        _ => {}
    }
    let Some(program) = PROGRAM.as_ref() else { return Zone::Unknown("parts of a timestamp in a time zone") };
    let arena = bumpalo::Bump::new();
    let mut bindings = Bindings::new(program);
    bindings.set("z", Value::String(text));
    let Ok(Value::List(parts)) = program.eval(&bindings, &mut Evaluation::new(&arena)) else {
        return Zone::None;
    };
    if !text.contains(':') {
        let found = offsets(text).map(|offsets| Zone::Changing(Rc::new(offsets)));
        return found.unwrap_or(Zone::Unknown("parts of a timestamp in an unknown time zone"));
    }
    match parts.to_slice(&arena) {
        Ok([Value::Int(2001), Value::Int(day), Value::Int(hours), Value::Int(minutes)]) => {
            let days = day.saturating_sub(DAY).saturating_mul(1_440);
            let minutes = hours.saturating_mul(60).saturating_add(*minutes);
            Zone::Fixed(days.saturating_add(minutes).saturating_sub(NOON))
        }
        _ => Zone::Unknown("parts of a timestamp in a time zone far from UTC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_the_engine() {
        for (text, expected) in [
            ("UTC", Zone::Fixed(0)),
            ("+02:00", Zone::Fixed(120)),
            ("02:30", Zone::Fixed(150)),
            ("-09:30", Zone::Fixed(-570)),
            ("23:59", Zone::Fixed(1439)),
            ("a:b", Zone::None),
        ] {
            assert_eq!(zone(text), expected, "{text}");
        }
        assert!(matches!(zone("Local"), Zone::Unknown(_)));
        assert_eq!(zone("europe/prague"), Zone::None);
        assert_eq!(zone("../Europe/Prague"), Zone::None);
    }

    /// Asks the engine for the local day of the month, hours, minutes and seconds.
    fn said(name: &str, second: i64) -> Vec<i64> {
        let env = Env::kubernetes(Version(1, 36), Mode::Stored);
        let env = env.with_variable("z", Type::String).with_variable("s", Type::Int);
        let parts = ["getDate", "getHours", "getMinutes", "getSeconds"];
        let parts: Vec<String> = parts.iter().map(|part| format!("timestamp(s).{part}(z)")).collect();
        let program = env.program(&env.compile(&format!("[{}]", parts.join(", "))).unwrap()).unwrap();
        let arena = bumpalo::Bump::new();
        let mut bindings = Bindings::new(&program);
        bindings.set("z", Value::String(name));
        bindings.set("s", Value::Int(second));
        let Ok(Value::List(parts)) = program.eval(&bindings, &mut Evaluation::new(&arena)) else {
            panic!("{name} {second}")
        };
        let parts = parts.to_slice(&arena).unwrap();
        parts.iter().map(|part| if let Value::Int(part) = part { *part } else { panic!() }).collect()
    }

    #[test]
    fn changes_are_those_of_the_engine() {
        let mut seen = 0;
        for name in [
            "America/New_York",
            "Europe/Prague",
            "Asia/Kolkata",
            "Australia/Lord_Howe",
            "Africa/Casablanca",
            "Pacific/Apia",
            "Asia/Tokyo",
            "Etc/GMT+5",
        ] {
            let Zone::Changing(offsets) = zone(name) else { panic!("{name}") };
            let mut before = offsets.first;
            let ends = [(-62_135_596_800, offsets.first), (4_102_444_799, 0)];
            let last = offsets.changes.last().map_or(offsets.first, |(_, offset)| *offset);
            let ends = [ends[0], (ends[1].0, last)];
            let mut asked: Vec<(i64, i64)> = ends.to_vec();
            for (from, offset) in &offsets.changes {
                asked.extend([(from - 1, before), (*from, *offset), (from + 1, *offset)]);
                before = *offset;
            }
            for (second, offset) in asked {
                let local =
                    Timestamp::from_second(second + offset).map(|at| at.to_zoned(jiff::tz::TimeZone::UTC));
                // The first instant of year 1 is in year 0 west of UTC.
                let Ok(local) = local else { continue };
                let parts = [local.day(), local.hour(), local.minute(), local.second()].map(i64::from);
                assert_eq!(said(name, second), parts, "{name} {second}");
                seen += 1;
            }
            let ends = ["America/New_York", "Europe/Prague", "Australia/Lord_Howe"].contains(&name);
            assert_eq!(offsets.end.is_some(), ends, "{name}");
        }
        assert!(seen > 1_000, "{seen}");
    }
}
