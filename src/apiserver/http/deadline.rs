//! By when a request is answered: as upstream, what is no stream has an end, and `timeout=10s` makes it an earlier one.

use std::time::Duration;

use http::Method;

use super::Incoming;
use super::path::{Place, Target};
use crate::registry::{ListOptions, Query};
use crate::status::{Refusal, go_quoted};

/// As upstream, what a change may take that does not say less.
const CHANGE: Duration = Duration::from_secs(34);
/// As upstream, what anything may take that is no stream: lists, and the removal of everything that a list selects.
pub(super) const LONGEST: Duration = Duration::from_mins(1);
/// Subresources that stand for a stream: what the query says are options of the stream. None is opened here, so that each is
/// answered as soon as admission was asked.
const STREAMS: [&str; 4] = ["attach", "exec", "portforward", "proxy"];

/// How long the request may take; None for a watch, and for a log.
///
/// # Errors
/// 400 for a `timeout` that is no duration.
pub(super) fn of(incoming: &Incoming, target: &Target) -> Result<Option<Duration>, Refusal> {
    let query = Query::parse(&incoming.query);
    let mut longest = LONGEST;
    if let Target::Resource(place) = target {
        let reads = matches!(incoming.method, Method::GET | Method::HEAD);
        let watches = place.watch || ListOptions::wants_watch(&query);
        if reads && (watches || place.subresource.as_deref() == Some("log")) {
            return Ok(None);
        }
        if streams(place) {
            return Ok(Some(CHANGE));
        }
        if !(reads || (incoming.method == Method::DELETE && place.name.is_none())) {
            longest = CHANGE;
        }
    }
    let asked = match query.get("timeout") {
        None | Some("") => None,
        Some(text) => go_duration(text).map_err(|why| {
            Refusal::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })?,
    };
    Ok(Some(asked.map_or(longest, |asked| asked.min(longest))))
}

pub(super) fn streams(place: &Place) -> bool {
    place.subresource.as_deref().is_some_and(|subresource| STREAMS.contains(&subresource))
}

/// A duration in Go's notation; None where it is not positive, which asks for nothing.
///
/// # Errors
/// In the words of Go's `time.ParseDuration`.
fn go_duration(text: &str) -> Result<Option<Duration>, String> {
    let invalid = || format!("time: invalid duration {}", go_quoted(text));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(None);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let (mut rest, mut seconds) = (unsigned, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let amount: f64 = number.parse().map_err(|_| invalid())?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        seconds += amount * scale(unit).ok_or_else(|| unknown(unit, text))?;
        rest = after;
    }
    // What Go's sixty-three bits of nanoseconds hold.
    if seconds * 1e9 > 9_223_372_036_854_775_807.0 {
        return Err(invalid());
    }
    let positive = !text.starts_with('-') && seconds > 0.0;
    Ok(Duration::try_from_secs_f64(seconds).ok().filter(|_| positive))
}

fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "h" => 3600.0,
        "m" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" | "μs" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    })
}

fn unknown(unit: &str, text: &str) -> String {
    match unit {
        "" => format!("time: missing unit in duration {}", go_quoted(text)),
        unit => format!("time: unknown unit {} in duration {}", go_quoted(unit), go_quoted(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let millis = |text| go_duration(text).map(|duration| duration.map(|duration| duration.as_millis()));
        assert_eq!(millis("10s"), Ok(Some(10_000)));
        assert_eq!(millis("1m1.5s"), Ok(Some(61_500)));
        assert_eq!(millis("+.5s"), Ok(Some(500)));
        assert_eq!(millis("2h3ms"), Ok(Some(7_200_003)));
        assert_eq!((millis("0"), millis("0s"), millis("-10s")), (Ok(None), Ok(None), Ok(None)));
        let refused = [
            ("ten", "time: invalid duration \"ten\""),
            ("-", "time: invalid duration \"-\""),
            (".s", "time: invalid duration \".s\""),
            ("10", "time: missing unit in duration \"10\""),
            ("10x", "time: unknown unit \"x\" in duration \"10x\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
        ];
        for (text, why) in refused {
            assert_eq!(go_duration(text), Err(why.to_owned()));
        }
    }
}
