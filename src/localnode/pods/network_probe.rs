//! Runs one network probe: a TCP connection or an HTTP request, with the error messages of a kubelet.

use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ADDRESS;
use super::error::ProbeError;

/// The User-Agent of a kubelet's probes.
const AGENT: &str = "kube-probe/1.36";

/// Returns the part of a probe that is not supported, if there is one.
pub(super) fn unknown(probe: &Probe) -> Option<&'static str> {
    if probe.http_get.as_ref().is_some_and(is_tls) {
        return Some("httpGet.scheme");
    }
    probe.grpc.is_some().then_some("grpc")
}

pub(super) fn is_tls(get: &HTTPGetAction) -> bool {
    get.scheme.as_deref() == Some("HTTPS")
}

/// Sends a GET request as `agent`; returns the status code of the response.
pub(super) async fn get(
    get: &HTTPGetAction,
    container: &Container,
    agent: &'static str,
) -> Result<u16, ProbeError> {
    request(get, &url(get, port(&get.port, container)?), agent).await
}

/// Runs the probe once.
pub(super) async fn ask(probe: &Probe, container: &Container, within: Duration) -> Result<(), ProbeError> {
    if unknown(probe).is_some() {
        return Ok(());
    }
    if let Some(get) = &probe.http_get {
        let url = url(get, port(&get.port, container)?);
        let late = |_| ProbeError::GetTimedOut(url.clone());
        let code = timeout(within, request(get, &url, AGENT)).await.map_err(late)??;
        return if (200..400).contains(&code) { Ok(()) } else { Err(ProbeError::StatusCode(code)) };
    }
    if let Some(tcp) = &probe.tcp_socket {
        let address = joined(tcp.host.as_deref(), port(&tcp.port, container)?);
        let late = |_| ProbeError::DialTimedOut(address.clone());
        return timeout(within, TcpStream::connect(&address))
            .await
            .map_err(late)?
            .map(drop)
            .map_err(|error| dialled(&address, &error));
    }
    Ok(())
}

fn joined(host: Option<&str>, port: u16) -> String {
    let host = host.filter(|host| !host.is_empty()).unwrap_or(ADDRESS);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn dialled(address: &str, error: &std::io::Error) -> ProbeError {
    let why = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    };
    ProbeError::Dial { address: address.to_owned(), why }
}

fn url(get: &HTTPGetAction, port: u16) -> String {
    let path = get.path.as_deref().unwrap_or_default();
    format!("http://{}/{}", joined(get.host.as_deref(), port), path.strip_prefix('/').unwrap_or(path))
}

/// Resolves a port number, or the name of one of the container's ports.
fn port(port: &IntOrString, container: &Container) -> Result<u16, ProbeError> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => name.parse().ok().or_else(|| {
            let ports = container.ports.iter().flatten();
            ports.into_iter().find(|port| port.name.as_ref() == Some(name)).map(|port| port.container_port)
        }),
    };
    let number = number.and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| match port {
        IntOrString::Int(number) => ProbeError::InvalidPort(*number),
        IntOrString::String(name) => ProbeError::MissingPort(name.clone()),
    })
}

/// Sends a request; returns the status code of the response.
async fn request(get: &HTTPGetAction, url: &str, agent: &'static str) -> Result<u16, ProbeError> {
    let failed = |error: &dyn Display| ProbeError::Get { url: url.to_owned(), why: error.to_string() };
    let uri: http::Uri = url.parse().map_err(|error| failed(&error))?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let stream =
        TcpStream::connect(&authority).await.map_err(|error| failed(&dialled(&authority, &error)))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::get(path).body(Empty::<Bytes>::new()).map_err(|error| failed(&error))?;
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Ok(host) = HeaderValue::try_from(&authority) {
        headers.insert(header::HOST, host);
    }
    for asked in get.http_headers.iter().flatten() {
        let header = HeaderName::try_from(&asked.name).ok().zip(HeaderValue::try_from(&asked.value).ok());
        headers.extend(header.map(|(name, value)| (Some(name), value)));
    }
    let answering = sender.send_request(request);
    tokio::pin!(answering);
    let answer = tokio::select! {
        answer = &mut answering => answer.map_err(|error| failed(&error))?,
        // The response may have arrived just before the connection ended.
        ended = connection => answering.await.map_err(|_| {
            failed(&ended.err().map_or_else(|| "EOF".to_owned(), |error| error.to_string()))
        })?,
    };
    Ok(answer.status().as_u16())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(5);

    /// Runs the probe once; returns the message of a failure.
    async fn outcome(probe: &Probe, container: &Container, within: Duration) -> Result<(), String> {
        ask(probe, container, within).await.map_err(|error| error.to_string())
    }

    fn probe(value: serde_json::Value) -> Probe {
        serde_json::from_value(value).unwrap()
    }

    /// Answers one request with `head`; returns the port, and a handle of the task that returns the request.
    async fn answering(head: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind((ADDRESS, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&asked[..read]).into_owned()
        });
        (port, task)
    }

    #[tokio::test]
    async fn an_answer_passes_up_to_399_and_is_asked_for_as_the_probe_says() {
        let container: Container =
            serde_json::from_value(json!({"name": "c", "ports": [{"name": "web", "containerPort": 1}]}))
                .unwrap();
        let (port, asked) = answering("HTTP/1.1 204 No Content\r\n\r\n").await;
        let asks = probe(
            json!({"httpGet": {"path": "/ready?x=1", "port": port, "httpHeaders": [{"name": "Host", "value": "other"}, {"name": "A", "value": "b"}]}}),
        );
        assert_eq!(outcome(&asks, &container, WITHIN).await, Ok(()));
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("GET /ready?x=1 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("host: other\r\n") && asked.contains("a: b\r\n"), "{asked}");
        assert!(asked.contains("user-agent: kube-probe/1.36\r\n"), "{asked}");

        let (port, _asked) = answering("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").await;
        let asks = probe(json!({"httpGet": {"port": port}}));
        let told = outcome(&asks, &container, WITHIN).await;
        assert_eq!(told, Err("HTTP probe failed with statuscode: 503".to_owned()));
    }

    #[tokio::test]
    async fn what_fails_is_said_in_the_words_of_a_kubelet() {
        let container: Container =
            serde_json::from_value(json!({"name": "c", "ports": [{"name": "web", "containerPort": 1}]}))
                .unwrap();
        let free = TcpListener::bind((ADDRESS, 0)).await.unwrap().local_addr().unwrap().port();
        let refused = format!("dial tcp 127.0.0.1:{free}: connect: connection refused");
        let tcp = probe(json!({"tcpSocket": {"port": free}}));
        assert_eq!(outcome(&tcp, &container, WITHIN).await, Err(refused.clone()));
        let http = probe(json!({"httpGet": {"port": free, "path": "x"}}));
        let told = Err(format!("Get \"http://127.0.0.1:{free}/x\": {refused}"));
        assert_eq!(outcome(&http, &container, WITHIN).await, told);
        let unnamed = probe(json!({"tcpSocket": {"port": "none"}}));
        assert_eq!(outcome(&unnamed, &container, WITHIN).await, Err("couldn't find port: none".to_owned()));
        let named = probe(json!({"tcpSocket": {"port": "web"}}));
        let told = Err("dial tcp 127.0.0.1:1: connect: connection refused".to_owned());
        assert_eq!(outcome(&named, &container, WITHIN).await, told);

        let silent = TcpListener::bind((ADDRESS, 0)).await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let http = probe(json!({"httpGet": {"port": port}}));
        let told = outcome(&http, &container, Duration::from_millis(50)).await.unwrap_err();
        assert!(told.contains("Client.Timeout exceeded while awaiting headers"), "{told}");
        let tcp = probe(json!({"tcpSocket": {"port": port}}));
        assert_eq!(outcome(&tcp, &container, WITHIN).await, Ok(()));
    }

    #[test]
    fn what_this_machine_does_not_know_is_named() {
        assert_eq!(unknown(&probe(json!({"grpc": {"port": 1}}))), Some("grpc"));
        assert_eq!(
            unknown(&probe(json!({"httpGet": {"port": 1, "scheme": "HTTPS"}}))),
            Some("httpGet.scheme")
        );
        assert_eq!(unknown(&probe(json!({"httpGet": {"port": 1, "scheme": "HTTP"}}))), None);
    }
}
