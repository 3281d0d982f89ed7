//! Determines the deadline of a request: as upstream, every request except streams has one, and `timeout=10s` shortens it.

use std::time::Duration;

use admit_apimachinery::go::duration;
use http::Method;

use super::Incoming;
use super::path::{Place, Target};
use crate::call::{ListOptions, Query};
use crate::status::Refusal;

/// The default time of a change, as upstream.
const CHANGE: Duration = Duration::from_secs(34);
/// The longest time of a request that is not a stream, as upstream: lists, and deletions of collections.
pub(super) const LONGEST: Duration = Duration::from_mins(1);
/// Subresources that open a stream, whose query holds options of the stream. None is opened here, so that each is
/// answered once admission has decided.
const STREAMS: [&str; 4] = ["attach", "exec", "portforward", "proxy"];

/// Returns the time that the request may take; None for a watch or a log.
///
/// # Errors
/// 400 for an invalid `timeout`.
pub(super) fn of(incoming: &Incoming, target: &Target) -> Result<Option<Duration>, Refusal> {
    let query = Query::parse(&incoming.query);
    let mut longest = LONGEST;
    if let Target::Resource(place) = target {
        let reads = matches!(incoming.method, Method::GET | Method::HEAD);
        let watches = place.watch || (reads && place.name.is_none() && ListOptions::wants_watch(&query));
        // Whatever may wait for a turn needs a time.
        if streams(place) || place.proxy {
            return Ok(Some(CHANGE));
        }
        if watches || place.subresource.as_deref() == Some("log") {
            return Ok((!reads).then_some(CHANGE));
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

/// Parses a duration in Go's notation; None if it is not positive, which sets no timeout.
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
