//! Limits the memory of responses to reads, from before they are built until they are sent: large lists wait for
//! one another, and a client that does not read its response is disconnected.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout};

use super::budget::{Budget, Reservation};
use super::hangup::{Expectation, Hangup};
use crate::status::Refusal;

/// The bytes of responses that one user may hold in memory: a list of 20,000 objects of some kilobytes fits.
const MAX_OF_USER: usize = 128 << 20;
/// The bytes of all users together; no user can hold more than half of them.
const MAX_HELD: usize = 256 << 20;
/// A response is built from a copy of its objects; both are in memory for a moment.
const COPIES: usize = 2;
/// How long a read waits for memory: half the time after which clients give up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time within which a response must be sent, as in kube-apiserver (`--request-timeout`).
const TIME_TO_SEND: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(crate) struct Answers(Budget);

impl Default for Answers {
    fn default() -> Self {
        Self(Budget::new(MAX_OF_USER, MAX_HELD))
    }
}

impl Answers {
    /// Reserves memory for a response with objects of so many bytes, by estimate.
    ///
    /// # Errors
    /// 429 if none becomes free in time.
    pub(crate) async fn room(&self, user: &str, bytes: usize) -> Result<Reservation, Refusal> {
        let reserve = self.0.reserve(user, bytes.saturating_mul(COPIES));
        timeout(PATIENCE, reserve).await.map_err(|_| {
            tracing::warn!(user, "as many answers are held as there is room for: a read was sent away");
            Refusal::too_many_requests("Too many requests, please try again later.", 1)
        })
    }

    /// Returns the bytes that are reserved now.
    pub(crate) fn held(&self) -> usize {
        self.0.held()
    }
}

/// Returns the response, which keeps the part of `room` that it needs until it is sent.
pub(crate) async fn kept(response: Response, mut room: Reservation, hangup: Option<&Hangup>) -> Response {
    let (parts, body) = response.into_parts();
    // The body is in memory already; of one that fails nothing needs to be kept.
    let text = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    room.shrink(text.len());
    let expected = hangup.map(|hangup| hangup.expect(Instant::now() + TIME_TO_SEND));
    let kept = Bytes::from_owner(Kept { text, _room: room, _expected: expected });
    Response::from_parts(parts, Body::from(kept))
}

struct Kept {
    text: Bytes,
    _room: Reservation,
    _expected: Option<Expectation>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
