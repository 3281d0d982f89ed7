//! Responses of webhooks as they come over the connection: what kube-apiserver v1.36.2 made of the same bytes.

use std::io::Write as _;
use std::sync::Arc;

use admit_apiserver::Server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::harness::post;
use crate::webhook::{CONFIGURATIONS, MAPS, configuration, map};

/// What is sent, and whether the end of the connection is announced.
type Sent = (Vec<u8>, bool);
/// Makes a response to the request line and the uid of the review.
type Answer = fn(&str, &str) -> Sent;

/// Serves what `answer` makes; returns the `clientConfig`.
async fn serve(answer: Answer) -> Value {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.der().to_vec())],
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let stream = listener.accept().await.unwrap().0;
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.unwrap();
                let (head, body) = request(&mut stream).await;
                let review: Value = serde_json::from_slice(&body).unwrap_or_default();
                let uid = review["request"]["uid"].as_str().unwrap_or("none");
                let (bytes, announced) = answer(head.lines().next().unwrap(), uid);
                stream.write_all(&bytes).await.unwrap();
                stream.flush().await.unwrap();
                if announced {
                    stream.shutdown().await.unwrap();
                }
            });
        }
    });
    json!({"url": format!("https://{address}/hook"), "caBundle": STANDARD.encode(certificate.pem())})
}

/// Reads the head and the body of a request.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> (String, Vec<u8>) {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the head is whole");
    };
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    while read.len() < end + 4 + length.unwrap_or(0) {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the body is whole");
    }
    (head, read.split_off(end + 4))
}

fn allowed(uid: &str) -> Vec<u8> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": true}});
    review.to_string().into_bytes()
}

/// A response with these lines in its head, and this body.
fn response(lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{lines}\r\n");
    [head.as_bytes(), body].concat()
}

fn whole(lines: &str, body: &[u8]) -> Vec<u8> {
    response(&format!("{lines}Content-Length: {}\r\n", body.len()), body)
}

fn redirect(code: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {code} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// What a request is told of a webhook with such responses; empty if it is admitted.
async fn told(answer: Answer) -> String {
    let client = serve(answer).await;
    let server = Server::builder().build().await.unwrap();
    assert_eq!(post(&server, CONFIGURATIONS, &configuration(&client, &json!({}))).await.status, 201);
    let answer = post(&server, &format!("{MAPS}?dryRun=All"), &map("one")).await;
    if answer.status == 201 {
        return String::new();
    }
    let begins =
        "Internal error occurred: failed calling webhook \"validate.hook.example\": failed to call webhook: ";
    let url = client["url"].as_str().unwrap();
    answer.message().strip_prefix(begins).unwrap().replace(url, "URL")
}

#[tokio::test]
async fn a_response_may_end_with_its_connection() {
    let cases: [Answer; 4] = [
        |_, uid| (response("", &allowed(uid)), true),
        |_, uid| (response("", &allowed(uid)), false),
        |_, uid| {
            (
                String::from_utf8(response("", &allowed(uid))).unwrap().replace("1.1", "1.0").into_bytes(),
                false,
            )
        },
        |_, uid| (whole("", &allowed(uid)), false),
    ];
    for case in cases {
        assert_eq!(told(case).await, "");
    }
}

#[tokio::test]
async fn what_is_cut_off_is_no_response() {
    const CUT: &str =
        "unexpected error when reading response body. Please retry. Original error: unexpected EOF";
    const EOF: &str = "Post \"URL?timeout=10s\": EOF";
    let cases: [(Answer, &str); 6] = [
        (|_, uid| (response("Content-Length: 1000\r\n", &allowed(uid)), false), CUT),
        (|_, uid| (response("Content-Length: 1000\r\n", &allowed(uid)), true), CUT),
        (|_, _| (response("Transfer-Encoding: chunked\r\n", b"2\r\n{}\r\n"), false), CUT),
        (|_, uid| (whole("Content-Encoding: gzip\r\n", &packed(&allowed(uid))[..20]), true), CUT),
        (|_, _| (Vec::new(), true), EOF),
        (|_, _| (Vec::new(), false), EOF),
    ];
    for (case, expected) in cases {
        assert_eq!(told(case).await, expected);
    }
}

#[tokio::test]
async fn heads_are_read_leniently_and_bodies_unpacked() {
    let cases: [Answer; 3] = [
        |_, uid| (whole("X : y\r\n", &allowed(uid)), true),
        |_, uid| (whole("X: y\r\n  z\r\n", &allowed(uid)), true),
        |_, uid| (whole("Content-Encoding: gzip\r\n", &packed(&allowed(uid))), true),
    ];
    for case in cases {
        assert_eq!(told(case).await, "");
    }
}

#[tokio::test]
async fn redirects_are_followed_with_what_was_asked() {
    let slash = |line: &str, uid: &str| {
        let answer =
            if line.starts_with("POST /hook/ ") { whole("", &allowed(uid)) } else { redirect(308, "/hook/") };
        (answer, true)
    };
    assert_eq!(told(slash).await, "");
    let reads = |line: &str, _: &str| {
        let answer = if line.starts_with("GET /other ") { whole("", b"") } else { redirect(302, "other") };
        (answer, true)
    };
    assert_eq!(
        told(reads).await,
        "0-length response with status code: 200 and content type: application/json"
    );
    let cases: [(Answer, &str); 3] = [
        (|_, _| (redirect(307, "/other"), true), "Post \"/other\": stopped after 10 redirects"),
        (
            |_, _| (redirect(307, "http://127.0.0.1:1/x"), true),
            "Post \"http://127.0.0.1:1/x\": stopped at a redirect to a URL without TLS",
        ),
        (
            |_, _| (b"HTTP/1.1 307 X\r\nContent-Length: 0\r\n\r\n".to_vec(), true),
            "the server responded with the status code 307 but did not return more information",
        ),
    ];
    for (case, expected) in cases {
        assert_eq!(told(case).await, expected);
    }
}
