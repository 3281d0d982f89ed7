//! Receives the body of a request, limiting its size, its time, and the memory of all bodies together.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The largest body: two objects of 3 MiB, the limit of API servers, with their envelope.
pub(super) const MAX_BODY: usize = 8 * 1024 * 1024;
/// The time limit for receiving a body.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The most KiB for the bodies of all open requests together.
const MAX_BODIES: usize = 64 * 1024;

/// The memory that is left for bodies.
///
/// INVARIANT: a body takes at most twice what has arrived of it, and nothing for what Content-Length only announces: otherwise callers
/// that announce much and send little could take the memory of all others.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory(Arc<Semaphore>);

/// A body with its permits for memory.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    /// Returned when this is dropped.
    pub(super) share: Vec<OwnedSemaphorePermit>,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoBody {
    TooLarge,
    TooSlow,
    BrokenOff,
    /// The memory for bodies is used up.
    NoMemory,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BODIES)))
    }
}

impl BodyMemory {
    /// Reads `body`. If it announces too much, it is rejected before any of it is read.
    pub(super) async fn receive(&self, headers: &HeaderMap, body: Body) -> Result<Received, NoBody> {
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: usize| length > MAX_BODY) {
            return Err(NoBody::TooLarge);
        }
        timeout(BODY_TIMEOUT, self.collect(body, announced.unwrap_or(MAX_BODY)))
            .await
            .unwrap_or(Err(NoBody::TooSlow))
    }

    /// Reads a body of at most `announced` bytes.
    async fn collect(&self, mut body: Body, announced: usize) -> Result<Received, NoBody> {
        let (mut taken, mut share, mut bytes) = (0, Vec::new(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| NoBody::BrokenOff)?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len().saturating_add(data.len());
            if length > MAX_BODY {
                return Err(NoBody::TooLarge);
            }
            if length > taken {
                // The permits are doubled, so that a body in small chunks does not take one for each.
                let wanted = length.saturating_mul(2).min(announced.max(length));
                share.push(self.take(wanted.saturating_sub(taken))?);
                bytes.reserve(wanted.saturating_sub(bytes.len()));
                taken = wanted;
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Received { bytes: bytes.freeze(), share })
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, NoBody> {
        let kibibytes = u32::try_from(bytes.div_ceil(1024)).map_err(|_| NoBody::TooLarge)?;
        Arc::clone(&self.0).try_acquire_many_owned(kibibytes).map_err(|_| NoBody::NoMemory)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;

    use futures::{StreamExt as _, poll, stream};
    use http::HeaderValue;

    use super::*;

    fn announcing(length: usize) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from(length))])
    }

    #[tokio::test]
    async fn bodies_that_hardly_come_leave_the_room_to_others() {
        const SLOW: usize = 5_000;
        let memory = BodyMemory::default();
        let announced = announcing(MAX_BODY);
        let first = || ready(Ok::<_, Infallible>(Bytes::from_static(b"{")));
        let slow = || Body::from_stream(stream::once(first()).chain(stream::pending()));
        let mut held: Vec<_> = (0..SLOW).map(|_| Box::pin(memory.receive(&announced, slow()))).collect();
        for body in &mut held {
            assert!(poll!(body).is_pending());
        }
        let whole = vec![b' '; 100 * 1024];
        let received = memory.receive(&announcing(whole.len()), Body::from(whole.clone())).await.unwrap();
        assert_eq!(received.bytes, whole);
        assert_eq!(
            memory.0.available_permits(),
            MAX_BODIES - SLOW - 100,
            "what was announced and came, no more"
        );
        drop((received, held));
        assert_eq!(memory.0.available_permits(), MAX_BODIES);
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_whole_and_bounded() {
        let memory = BodyMemory::default();
        let pieces = |count| {
            Body::from_stream(stream::iter(
                (0..count).map(|_| Ok::<_, Infallible>(Bytes::from_static(&[b' '; 1000]))),
            ))
        };
        let received = memory.receive(&HeaderMap::new(), pieces(500)).await.unwrap();
        assert_eq!(received.bytes.len(), 500_000);
        assert!(received.share.len() <= 10, "{} permits", received.share.len());
        assert_eq!(memory.receive(&HeaderMap::new(), pieces(9_000)).await.unwrap_err(), NoBody::TooLarge);
        assert_eq!(memory.receive(&announcing(MAX_BODY + 1), pieces(1)).await.unwrap_err(), NoBody::TooLarge);
    }
}
