//! Sends the HTTPS request to a webhook: one connection, one POST, HTTP/1.1, no redirects, a response of bounded
//! size.

use std::sync::Arc;

use admit_policy::webhook::Client;
use bytes::Bytes;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use uuid::Uuid;

use super::service::{self, Place};
use super::{Callee, failure, trust};
use crate::objects::Objects;

/// An AdmissionReview with a refusal is small, and questions about conversion are smaller than this by half; more is no answer.
/// kube-apiserver reads on without an end.
const ANSWER_LIMIT: usize = 16 << 20;

/// Sends `body` and answers the body of a success. How long that may take is left to the caller.
///
/// # Errors
/// Everything else, in the words of kube-apiserver's client.
pub(crate) async fn post(objects: &dyn Objects, callee: &Callee, body: Bytes) -> Result<Bytes, String> {
    let url = callee.url();
    let failed = |why: String| format!("Post \"{url}\": {why}");
    let uri: Uri = url.parse().map_err(|error| failed(format!("invalid URL: {error}")))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let place = match &callee.client {
        Client::Service(wanted) => service::locate(objects, wanted, Uuid::new_v4().as_u64_pair().1)
            .map_err(|error| failed(error.to_string()))?,
        Client::Url(_) => Place { host: host.clone(), port: uri.port_u16().unwrap_or(443) },
    };
    let stream = connect(&place).await.map_err(&failed)?;
    let stream = secured(callee, &host, stream).await.map_err(&failed)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(error.to_string()))?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(body))
        .map_err(|error| failed(error.to_string()))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let (status, kind) = (response.status(), response.headers().get(header::CONTENT_TYPE).cloned());
        let body = Limited::new(response.into_body(), ANSWER_LIMIT)
            .collect()
            .await
            .map_err(|error| failed(format!("the answer cannot be read: {error}")))?
            .to_bytes();
        let kind = kind.as_ref().and_then(|kind| kind.to_str().ok());
        match failure::unsuccessful(status, kind, &body) {
            None => Ok(body),
            Some(why) => Err(why),
        }
    };
    tokio::pin!(connection, exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end before the answer is taken out of it.
        _ = &mut connection => exchange.await,
    }
}

/// Of several addresses of a name the first that takes the connection; if none does, the first tells why.
async fn connect(Place { host, port }: &Place) -> Result<TcpStream, String> {
    let mut failed = format!("dial tcp: lookup {host}: no such host");
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    for (number, address) in found.into_iter().flatten().enumerate() {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) if number == 0 => failed = failure::dialled(&address.to_string(), &error),
            Err(_) => {}
        }
    }
    Err(failed)
}

async fn secured(
    callee: &Callee,
    host: &str,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
    let config = trust::client_config(&callee.ca_bundle)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| failure::unsecured(host, &error))
}
