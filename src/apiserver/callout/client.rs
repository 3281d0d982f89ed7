//! Sends the HTTPS request to a webhook: one connection, one POST, HTTP/1.1, a response of bounded size; and once more where that
//! redirects.

use std::sync::Arc;

use admit_policy::webhook::Client;
use admit_serving::EndsClosed;
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use uuid::Uuid;

use super::failure::{self, CalloutError, NotSent};
use super::redirect::Hop;
use super::service::{self, Place};
use super::{Callee, packed, trust};
use crate::objects::Objects;

/// The size limit of a response: an AdmissionReview is small, and a conversion review is at most half as large.
/// kube-apiserver has no limit.
const ANSWER_LIMIT: usize = 16 << 20;

/// Sends `body` and returns the body of a successful response. The caller sets the timeout.
///
/// # Errors
/// Any failure, with the message of kube-apiserver's client.
pub(crate) async fn post(objects: &dyn Objects, callee: &Callee, body: Bytes) -> Result<Bytes, CalloutError> {
    let mut url = callee.url();
    let not_sent = |url: String, why| CalloutError::NotSent { url, why: Box::new(why) };
    let first = Hop::first(&url).map_err(|why| not_sent(url.clone(), why))?;
    let mut hop = first.clone();
    let answer = loop {
        let (own, sent) = (hop.is_at(&first), Sent { callee, hop: &hop, body: &body });
        let answer = match sent.exchange(objects, own).await {
            Ok(answer) => answer,
            // The head of the response had arrived.
            Err(why @ NotSent::Answer(_)) => return Err(CalloutError::BrokenOff(Box::new(why))),
            Err(why) => return Err(not_sent(url, why)),
        };
        match hop.next(answer.status(), answer.headers()) {
            Ok(None) => break answer,
            Ok(Some(next)) => hop = next,
            Err((location, why)) => return Err(not_sent(location, why)),
        }
        url = hop.uri.to_string();
    };
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match failure::unsuccessful(answer.status(), kind, answer.body()) {
        None => Ok(answer.into_body()),
        Some(why) => Err(CalloutError::Unsuccessful { status: answer.status().as_u16(), why }),
    }
}

/// One request to a webhook.
struct Sent<'s> {
    callee: &'s Callee,
    hop: &'s Hop,
    body: &'s Bytes,
}

impl Sent<'_> {
    /// Connects, sends the request and returns the response, whatever its status. `own`: whether the host is that of the webhook.
    async fn exchange(&self, objects: &dyn Objects, own: bool) -> Result<Response<Bytes>, NotSent> {
        let uri = &self.hop.uri;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let place = match &self.callee.client {
            Client::Service(wanted) if own => {
                service::locate(objects, wanted, Uuid::new_v4().as_u64_pair().1)?
            }
            _ => Place { host: host.clone(), port: uri.port_u16().unwrap_or(443) },
        };
        let stream = secured(self.callee, host, connect(place).await?).await?;
        // Go's client takes such headers, too.
        let (mut sender, connection) = http1::Builder::new()
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .handshake(TokioIo::new(EndsClosed(stream)))
            .await?;
        let request = self.request(own)?;
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_LIMIT).collect().await.map_err(NotSent::Answer)?;
            let body = packed::unpacked(&head.headers, body.to_bytes(), ANSWER_LIMIT)?;
            Ok(Response::from_parts(head, body))
        };
        tokio::pin!(connection, exchange);
        tokio::select! {
            answer = &mut exchange => answer,
            // The connection may end before its response is read from the buffer.
            _ = &mut connection => exchange.await,
        }
    }

    fn request(&self, own: bool) -> Result<Request<Full<Bytes>>, NotSent> {
        let Hop { uri, method, .. } = self.hop;
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, authority)
            .header(header::ACCEPT, "application/json, */*")
            .header(header::ACCEPT_ENCODING, packed::ENCODING)
            .header(header::USER_AGENT, "kube-apiserver-admission");
        let authorization = self.callee.credentials.authorization.as_str();
        if own && !authorization.is_empty() {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let body = if *method == Method::POST {
            request = request.header(header::CONTENT_TYPE, "application/json");
            self.body.clone()
        } else {
            Bytes::new()
        };
        Ok(request.body(Full::new(body))?)
    }
}

/// Connects to the first address of a host that accepts; if none does, returns the error of the first.
pub(super) async fn connect(Place { host, port }: Place) -> Result<TcpStream, NotSent> {
    let found: Vec<_> = tokio::net::lookup_host((host.as_str(), port)).await.into_iter().flatten().collect();
    let mut failed = NotSent::UnknownHost(host);
    for (number, address) in found.into_iter().enumerate() {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(source) if number == 0 => failed = NotSent::Dial { at: address, source },
            Err(_) => {}
        }
    }
    Err(failed)
}

pub(super) async fn secured(
    callee: &Callee,
    host: String,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, NotSent> {
    let config = trust::client_config(&callee.trust(), &callee.credentials)?;
    let own = &callee.credentials.server_name;
    let host = if own.is_empty() { host } else { own.clone() };
    let name = ServerName::try_from(host.clone())?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|source| NotSent::Handshake { host, source })
}
