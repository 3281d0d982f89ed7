//! Removes this cluster's credentials from the hub's error messages, which may quote them, and which are written to logs, events and
//! conditions.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Body as HttpBody;
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use crate::telemetry::Secrets;

/// The largest error response in bytes; the contents of a larger one are dropped.
const MAX_REFUSAL: usize = 64 * 1024;

/// Hides secrets in error responses of a service.
#[derive(Clone)]
pub(super) struct Redactor(pub(super) Secrets);

#[derive(Clone)]
pub(super) struct Hidden<S> {
    inner: S,
    secrets: Secrets,
}

impl<S> Layer<S> for Redactor {
    type Service = Hidden<S>;

    fn layer(&self, inner: S) -> Hidden<S> {
        Hidden { inner, secrets: self.0.clone() }
    }
}

impl<S, B> Service<Request<Body>> for Hidden<S>
where
    S: Service<Request<Body>, Response = Response<B>, Future: Send + 'static>,
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Either<Full<Bytes>, B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (secrets, answering) = (self.secrets.clone(), self.inner.call(request));
        Box::pin(async move {
            let answer = answering.await?;
            if !(answer.status().is_client_error() || answer.status().is_server_error()) {
                return Ok(answer.map(Either::Right));
            }
            let (mut head, body) = answer.into_parts();
            head.headers.remove(header::CONTENT_LENGTH);
            let told = Limited::new(body, MAX_REFUSAL).collect().await;
            let told = told.map(|told| secrets.hide(&told.to_bytes())).unwrap_or_default();
            Ok(Response::from_parts(head, Either::Left(Full::from(told))))
        })
    }
}
