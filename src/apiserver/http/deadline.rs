//! The deadline of a request: as upstream, every request but a stream has one, and `timeout=10s` brings it forward.

use std::time::Duration;

use admit_apimachinery::go::duration;
use http::Method;

use super::Incoming;
use super::path::{Place, Target};
use crate::call::{ListOptions, Query};
use crate::status::Refusal;

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
        Some(text) => positive(text).map_err(|why| {
            Refusal::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })?,
    };
    Ok(Some(asked.map_or(longest, |asked| asked.min(longest))))
}

pub(super) fn streams(place: &Place) -> bool {
    place.subresource.as_deref().is_some_and(|subresource| STREAMS.contains(&subresource))
}

/// A duration in Go's notation; None where it is not positive, which asks for nothing.
fn positive(text: &str) -> Result<Option<Duration>, duration::ParseError<'_>> {
    let nanoseconds = duration::parse(text)?;
    Ok(u64::try_from(nanoseconds).ok().filter(|nanoseconds| *nanoseconds > 0).map(Duration::from_nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_positive_asks_for_nothing() {
        let millis = |text| positive(text).map(|duration| duration.map(|duration| duration.as_millis()));
        assert_eq!((millis("10s"), millis("+.5s")), (Ok(Some(10_000)), Ok(Some(500))));
        assert_eq!((millis("0"), millis("0s"), millis("-10s")), (Ok(None), Ok(None), Ok(None)));
        assert_eq!(
            positive("10").map_err(|why| why.to_string()),
            Err("time: missing unit in duration \"10\"".to_owned())
        );
    }
}
