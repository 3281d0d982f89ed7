//! The body of a request: within a size, within a time, and within what all bodies together may take.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Two objects of 3 MiB, the most an API server takes, with their envelope.
pub(super) const MAX_BODY: usize = 8 * 1024 * 1024;
/// A body must arrive within this time.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// What a body is given before any of it is there. Of what is only announced nothing is held: a few callers that announce
/// much and send little would take the room of all others.
const FIRST: usize = 64 * 1024;
/// KiB that the bodies of all open requests may take together.
const MAX_BODIES: usize = 64 * 1024;

/// What all bodies together may still take.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory(Arc<Semaphore>);

/// A body with its share of the memory.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    /// Given back with the value.
    pub(super) share: Vec<OwnedSemaphorePermit>,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoBody {
    TooLarge,
    TooSlow,
    BrokenOff,
    /// Too many bodies at once.
    NoMemory,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BODIES)))
    }
}

impl BodyMemory {
    /// Reads `body`. One that announces too much is refused before any of it is read.
    pub(super) async fn receive(&self, headers: &HeaderMap, body: Body) -> Result<Received, NoBody> {
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: usize| length > MAX_BODY) {
            return Err(NoBody::TooLarge);
        }
        timeout(BODY_TIMEOUT, self.collect(body, announced.unwrap_or(0)))
            .await
            .unwrap_or(Err(NoBody::TooSlow))
    }

    async fn collect(&self, mut body: Body, announced: usize) -> Result<Received, NoBody> {
        let mut taken = announced.min(FIRST);
        let mut share = vec![self.take(taken)?];
        let mut bytes = BytesMut::with_capacity(taken);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| NoBody::BrokenOff)?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len().saturating_add(data.len());
            if length > MAX_BODY {
                return Err(NoBody::TooLarge);
            }
            if length > taken {
                // Doubled, so that a body in small pieces does not take a permit for each.
                let wanted = length.saturating_mul(2).min(MAX_BODY);
                share.push(self.take(wanted.saturating_sub(taken))?);
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
