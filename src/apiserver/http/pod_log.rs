//! Parses the query of `pods/log`: which part of the log is requested.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::call::Query;
use crate::logs::LogOptions;
use crate::status::{Cause, Refusal};

const STREAMS: [&str; 3] = ["All", "Stdout", "Stderr"];

/// Parses the options for the log of `pod`; the caller determines the container.
///
/// # Errors
/// 400 for an invalid number or time, 422 for a number out of range.
pub(super) fn options(query: &Query, pod: &str, now: Timestamp) -> Result<LogOptions, Refusal> {
    let (tail, limit) = (query.integer("tailLines")?, query.integer("limitBytes")?);
    let seconds = query.integer("sinceSeconds")?;
    let time = query.get("sinceTime").filter(|text| !text.is_empty());
    let stream = query.get("stream").filter(|stream| !stream.is_empty());
    let mut causes: Vec<Cause> = Vec::new();
    causes.extend(below(tail, "tailLines", 0));
    causes.extend(below(limit, "limitBytes", 1));
    match time {
        Some(_) if seconds.is_some() => {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            causes.push(Cause::forbidden("", why));
        }
        _ => causes.extend(below(seconds, "sinceSeconds", 1)),
    }
    if let Some(stream) = stream {
        if !STREAMS.contains(&stream) {
            causes.push(Cause::unsupported("stream", &Value::from(stream), &STREAMS));
        } else if stream != "All" && tail.is_some() {
            let why = "`tailLines` and specific `stream` are mutually exclusive for now";
            causes.push(Cause::forbidden("", why));
        }
    }
    if !causes.is_empty() {
        return Err(Refusal::invalid_kind("", "PodLogOptions", pod, causes));
    }
    let time =
        time.map(|text| text.parse::<Timestamp>().map_err(|error| Refusal::bad_request(error.to_string())));
    let ago = |seconds| now.saturating_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN);
    let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    Ok(LogOptions {
        container: String::new(),
        follow: query.flag("follow") == Some(true),
        previous: query.flag("previous") == Some(true),
        timestamps: query.flag("timestamps") == Some(true),
        since: time.transpose()?.or_else(|| seconds.map(ago)),
        tail: number(tail),
        limit: number(limit),
        stream: stream.filter(|stream| *stream != "All").map(str::to_owned),
    })
}

/// Returns the error of a number that is less than `least`.
fn below(number: Option<i64>, field: &str, least: i64) -> Option<Cause> {
    let number = number.filter(|number| *number < least)?;
    let or_equal = if least == 0 { "or equal to " } else { "" };
    Some(Cause::invalid(field, &number.into(), &format!("must be greater than {or_equal}0")))
}
