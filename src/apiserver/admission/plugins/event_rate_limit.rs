//! Implements `EventRateLimit`: limits the rate of events per server, namespace, user, and source and object. Off by
//! default; the [settings](super::settings) give the limits.
//!
//! Read from plugin/pkg/admission/eventratelimit of releases before 1.36; no recorded answers of 1.36 are at hand.

use admit_apimachinery::pointer::text;
use admit_apimachinery::status::{Reason, Status};
use tokio::time::Instant;

use super::alone::Alone;
use super::settings::LimitKind;
use super::{Plugin, Request};
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "EventRateLimit", mutate: None, validate: Some(validate), alone: Alone::Never };

/// Takes a token for each limit. Events of `events.k8s.io` are not counted, as upstream, which checks the kind that is sent.
fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "events") && !request.updates("", "events") {
        return Ok(());
    }
    let now = Instant::now();
    let mut refusal = None;
    // Each limit also counts events that others refuse, and the last limit that refuses is reported.
    for (kind, buckets) in &request.live.events {
        let key = key(request, *kind);
        if !buckets.take(&key, now) {
            let kind = kind.name();
            refusal = Some(format!("Too many requests: limit reached on type {kind} for key {key}"));
        }
    }
    refusal.map_or(Ok(()), |why| Err(Status::new(Reason::TooManyRequests, why).into()))
}

/// Returns the key of the bucket that the request takes from.
fn key(request: &Request<'_>, kind: LimitKind) -> String {
    match kind {
        LimitKind::Server => String::new(),
        LimitKind::Namespace => request.namespace().to_owned(),
        LimitKind::User => request.review.call.identity.username.clone(),
        LimitKind::SourceAndObject => [
            "/source/component",
            "/source/host",
            "/involvedObject/kind",
            "/involvedObject/namespace",
            "/involvedObject/name",
            "/involvedObject/uid",
            "/involvedObject/apiVersion",
        ]
        .map(|pointer| text(request.object(), pointer))
        .concat(),
    }
}
