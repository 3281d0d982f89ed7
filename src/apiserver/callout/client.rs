//! Sends the HTTPS request to a webhook: one connection, one POST, HTTP/1.1, no redirects, a response of bounded
//! size.

use std::sync::Arc;

use admit_policy::webhook::Client;
use bytes::Bytes;
use http::{Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use uuid::Uuid;

use super::failure::{self, CalloutError, NotSent};
use super::service::{self, Place};
use super::{Callee, trust};
use crate::objects::Objects;

/// The size limit of a response: an AdmissionReview is small, and a conversion review is at most half as large.
/// kube-apiserver has no limit.
const ANSWER_LIMIT: usize = 16 << 20;

/// Sends `body` and returns the body of a successful response. The caller sets the timeout.
///
/// # Errors
/// Any failure, with the message of kube-apiserver's client.
pub(crate) async fn post(objects: &dyn Objects, callee: &Callee, body: Bytes) -> Result<Bytes, CalloutError> {
    let url = callee.url();
    let answer = match exchanged(objects, callee, &url, body).await {
        Ok(answer) => answer,
        // The head of the response had arrived.
        Err(why @ NotSent::Answer(_)) => return Err(CalloutError::BrokenOff(Box::new(why))),
        Err(why) => return Err(CalloutError::NotSent { url, why: Box::new(why) }),
    };
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match failure::unsuccessful(answer.status(), kind, answer.body()) {
        None => Ok(answer.into_body()),
        Some(why) => Err(CalloutError::Unsuccessful { status: answer.status().as_u16(), why }),
    }
}

/// Connects, sends the request and returns the response, whatever its status.
async fn exchanged(
    objects: &dyn Objects,
    callee: &Callee,
    url: &str,
    body: Bytes,
) -> Result<Response<Bytes>, NotSent> {
    let uri: Uri = url.parse()?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let place = match &callee.client {
        Client::Service(wanted) => service::locate(objects, wanted, Uuid::new_v4().as_u64_pair().1)?,
        Client::Url(_) => Place { host: host.clone(), port: uri.port_u16().unwrap_or(443) },
    };
    let stream = connect(place).await?;
    let stream = secured(callee, host, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission");
    let request = match callee.credentials.authorization.as_str() {
        "" => request,
        authorization => request.header(header::AUTHORIZATION, authorization),
    };
    let request = request.body(Full::new(body))?;
    let exchange = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT).collect().await.map_err(NotSent::Answer)?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    tokio::pin!(connection, exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end before its response is read from the buffer.
        _ = &mut connection => exchange.await,
    }
}

/// Connects to the first address of a host that accepts; if none does, returns the error of the first.
async fn connect(Place { host, port }: Place) -> Result<TcpStream, NotSent> {
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

async fn secured(
    callee: &Callee,
    host: String,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, NotSent> {
    let config = trust::client_config(&callee.ca_bundle, &callee.credentials)?;
    let own = &callee.credentials.server_name;
    let host = if own.is_empty() { host } else { own.clone() };
    let name = ServerName::try_from(host.clone())?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|source| NotSent::Handshake { host, source })
}
