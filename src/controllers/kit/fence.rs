//! Blocks writes of a process that is no longer the leader.
//!
//! A process that was suspended, or whose machine slept, resumes in the middle of its work, and learns only later that
//! another one leads; some of its requests would already be sent. So each write checks, when it is sent,
//! whether this process may still hold the Lease: by the clock, which has continued, and without a request. Reads are not
//! checked.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// The fence, which is closed until this process leads. Clones share the same state. Writes to anything but the API server, such as a
/// database, call [`leave`](Self::leave).
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<Mutex<Option<Instant>>>);

/// A write that was not sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not sent: this process does not lead any more, and another may be writing")]
pub struct NotLeading;

impl Fence {
    /// Permits writes until `until`, when another process may become the leader.
    pub fn open(&self, until: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Checks that this process may write now. Without a fence, that is without leader election, it always may.
    ///
    /// # Errors
    /// [`NotLeading`] while the fence is closed.
    pub fn leave(fence: Option<&Self>) -> Result<(), NotLeading> {
        if fence.is_none_or(Self::is_open) { Ok(()) } else { Err(NotLeading) }
    }

    /// Creates a client whose writes are sent only while the fence is open, and fail with [`NotLeading`] otherwise.
    ///
    /// # Errors
    /// When no client can be created from `config`.
    pub fn client(&self, config: Config) -> Result<Client, kube::Error> {
        Ok(ClientBuilder::try_from(config)?.with_layer(self).build())
    }
}

/// A service behind a fence.
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, fence: self.clone() }
    }
}

impl<S, B> Service<Request<Body>> for Fenced<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send + 'static>,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if *request.method() != Method::GET && !self.fence.is_open() {
            return Box::pin(async { Err(NotLeading.into()) });
        }
        let answering = self.inner.call(request);
        Box::pin(async move { answering.await.map_err(Into::into) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writes_go_out_while_the_lease_may_be_ours_and_reads_always() {
        let fence = Fence::default();
        let service = fence
            .layer(service_fn(async |_: Request<Body>| Ok::<_, std::io::Error>(Response::new("answered"))));
        let sent = async |method: Method| {
            let request = Request::builder().method(method).body(Body::empty()).unwrap();
            service.clone().oneshot(request).await.map(|answer| *answer.body())
        };
        let is_refused = |answer: Result<&str, BoxError>| answer.unwrap_err().is::<NotLeading>();
        assert!(is_refused(sent(Method::PATCH).await), "nobody has led yet");
        assert!(Fence::leave(Some(&fence)).is_err() && Fence::leave(None).is_ok());
        fence.open(Instant::now() + Duration::from_secs(15));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(sent(method).await.unwrap(), "answered");
        }
        assert!(Fence::leave(Some(&fence)).is_ok());
        // Simulates that the whole process was suspended.
        tokio::time::advance(Duration::from_secs(15)).await;
        assert!(is_refused(sent(Method::PUT).await));
        assert_eq!(sent(Method::GET).await.unwrap(), "answered");
        fence.open(Instant::now() + Duration::from_secs(15));
        assert_eq!(sent(Method::PUT).await.unwrap(), "answered");
        fence.close();
        assert!(is_refused(sent(Method::DELETE).await));
    }
}
