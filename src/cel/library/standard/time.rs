//! Implements accessors of timestamps, in UTC or a given zone, and of durations in a unit.

use admit_apimachinery::go::instant::{Civil, civil};
use admit_apimachinery::go::{duration, zone};

use crate::library::{Context, Overload, mismatch};
use crate::value::{EvalError, Value};
use Value::{Duration, Int, String, Timestamp};

/// The rows of one part of a timestamp: in UTC, and in a zone.
macro_rules! part {
    ($function:literal, $id:literal, $id_with_zone:literal, $field:expr, $doc:literal) => {
        (
            Overload::new(
                $id,
                concat!("timestamp.", $function, "() -> int"),
                |_, args| part_of(args, $field),
                concat!($doc, ", in UTC."),
            ),
            Overload::new(
                $id_with_zone,
                concat!("timestamp.", $function, "(string) -> int"),
                |_, args| part_of(args, $field),
                concat!($doc, ", in a time zone: a name such as `Europe/Paris`, or `-08:00`."),
            ),
        )
    };
}

const YEAR: (Overload, Overload) =
    part!("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |c| c.year, "The year");
const MONTH: (Overload, Overload) = part!(
    "getMonth",
    "timestamp_to_month",
    "timestamp_to_month_with_tz",
    |c| c.month.saturating_sub(1),
    "The month from 0"
);
const DAY_OF_YEAR: (Overload, Overload) = part!(
    "getDayOfYear",
    "timestamp_to_day_of_year",
    "timestamp_to_day_of_year_with_tz",
    |c| c.day_of_year,
    "The day of the year from 0"
);
const DAY_OF_MONTH: (Overload, Overload) = part!(
    "getDayOfMonth",
    "timestamp_to_day_of_month",
    "timestamp_to_day_of_month_with_tz",
    |c| c.day.saturating_sub(1),
    "The day of the month from 0"
);
const DATE: (Overload, Overload) = part!(
    "getDate",
    "timestamp_to_day_of_month_1_based",
    "timestamp_to_day_of_month_1_based_with_tz",
    |c| c.day,
    "The day of the month from 1"
);
const DAY_OF_WEEK: (Overload, Overload) = part!(
    "getDayOfWeek",
    "timestamp_to_day_of_week",
    "timestamp_to_day_of_week_with_tz",
    |c| c.weekday,
    "The day of the week from 0, Sunday"
);
const HOURS: (Overload, Overload) =
    part!("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", |c| c.hour, "The hour");
const MINUTES: (Overload, Overload) =
    part!("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", |c| c.minute, "The minute");
const SECONDS: (Overload, Overload) =
    part!("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", |c| c.second, "The second");

pub(super) const ROWS: &[Overload] = &[
    YEAR.0,
    YEAR.1,
    MONTH.0,
    MONTH.1,
    DAY_OF_YEAR.0,
    DAY_OF_YEAR.1,
    DAY_OF_MONTH.0,
    DAY_OF_MONTH.1,
    DATE.0,
    DATE.1,
    DAY_OF_WEEK.0,
    DAY_OF_WEEK.1,
    HOURS.0,
    HOURS.1,
    Overload::new(
        "duration_to_hours",
        "duration.getHours() -> int",
        |_, args| length(args, duration::hours),
        "The whole hours of a duration.",
    ),
    MINUTES.0,
    MINUTES.1,
    Overload::new(
        "duration_to_minutes",
        "duration.getMinutes() -> int",
        |_, args| length(args, duration::minutes),
        "The whole minutes of a duration.",
    ),
    SECONDS.0,
    SECONDS.1,
    Overload::new(
        "duration_to_seconds",
        "duration.getSeconds() -> int",
        |_, args| length(args, duration::seconds),
        "The whole seconds of a duration.",
    ),
    Overload::new(
        "timestamp_to_milliseconds",
        "timestamp.getMilliseconds() -> int",
        milliseconds,
        "The milliseconds within the second.",
    ),
    Overload::new(
        "timestamp_to_milliseconds_with_tz",
        "timestamp.getMilliseconds(string) -> int",
        milliseconds,
        "The milliseconds within the second; the time zone must be one.",
    ),
    Overload::new(
        "duration_to_milliseconds",
        "duration.getMilliseconds() -> int",
        |_, args| match args {
            [Duration(span)] => Ok(Int(span.0.wrapping_div(1_000_000))),
            _ => mismatch(),
        },
        "The whole milliseconds of a duration.",
    ),
];

fn part_of<'a>(args: &[Value<'a>], field: fn(Civil) -> i64) -> Result<Value<'a>, EvalError> {
    let [Timestamp(instant), zone @ ..] = args else { return mismatch() };
    let offset = offset_of(zone, instant.seconds)?;
    Ok(Int(field(civil(instant.seconds, offset))))
}

fn milliseconds<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Timestamp(instant), zone @ ..] = args else { return mismatch() };
    offset_of(zone, instant.seconds)?;
    Ok(Int(i64::from(instant.nanos.wrapping_div(1_000_000))))
}

fn offset_of(zone: &[Value<'_>], seconds: i64) -> Result<i64, EvalError> {
    match zone {
        [] => Ok(0),
        [String(zone)] => zone::offset_at(zone, seconds).map_err(|error| EvalError::other(error.to_string())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a duration is at most 9.3e9 of any of these units")]
fn length<'a>(args: &[Value<'a>], unit: fn(i64) -> f64) -> Result<Value<'a>, EvalError> {
    let [Duration(span)] = args else { return mismatch() };
    Ok(Int(unit(span.0) as i64))
}
