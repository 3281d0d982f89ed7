//! The upload protocol: what is sent, byte for byte, to a strict HTTPS server; what each answer means; how often and
//! how long the client waits, on a clock that stands still.

pub(crate) mod ingress;
mod pacing;
mod proxies;

use std::fs;
use std::path::{Path, PathBuf};

use admit::gather::tunnel::{Proxies, Reach, TransportSetupError};
use admit::gather::upload::{
    ConcurrencyLimit, EndpointError, Endpoints, Ingress, Outlet, Pacing, Token, TokenSource, Transport,
    TransportError, UploadError, Uploaded,
};
use jiff::Timestamp;

use crate::support::reliability::Row;

use self::ingress::{Answers, FakeIngress};

const ADVISOR: &str = "https://console.example/advisor/clusters";
const CANARY: &str = "canary-token-4711";
const NOW: Timestamp = Timestamp::constant(1_763_692_206, 0);

/// Files of a test: an archive, a token, a CA.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn new(token: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("archive"), b"\x1f\x8b not really gzip \r\n--x\r\n").unwrap();
        fs::write(dir.path().join("token"), token).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn client(&self, transport: Transport, upload: &str) -> Ingress {
        Ingress {
            transport,
            endpoints: Endpoints::new(upload, None, ADVISOR).unwrap(),
            token: TokenSource::File(self.path("token")),
            cluster_id: "c-1".to_owned(),
            pacing: Pacing { upload_attempts: 1, ..Pacing::default() },
            turns: ConcurrencyLimit::default(),
        }
    }
}

/// A transport that goes straight, as far as addresses are `allowed`.
fn https(ca: Option<&Path>, allowed: &[Reach]) -> Result<Transport, TransportSetupError> {
    Ok(Outlet::new(ca, None, allowed)?.transport(Proxies::default()))
}

fn loopback() -> [Reach; 1] {
    ["127.0.0.0/8".parse().unwrap()]
}

async fn upload_to(server: &FakeIngress, files: &Files) -> Result<Uploaded, UploadError> {
    fs::write(files.path("ca.pem"), &server.ca_pem).unwrap();
    let transport = https(Some(&files.path("ca.pem")), &loopback()).unwrap();
    files.client(transport, &server.upload_url).upload(&files.path("archive"), NOW).await
}

#[tokio::test]
async fn an_archive_arrives_over_tls_in_the_form_the_service_takes() {
    let files = Files::new(&format!("  {CANARY}\n"));
    let server = FakeIngress::start(Answers::accept("0123456789abcdef0123456789abcdef")).await;
    let uploaded = upload_to(&server, &files).await.unwrap();
    assert_eq!(uploaded, Uploaded { code: 202, request_id: "0123456789abcdef0123456789abcdef".to_owned() });

    let request = server.uploads().remove(0);
    assert_eq!(request.authorization, format!("Bearer {CANARY}"));
    assert!(
        request.user_agent.starts_with("insights-operator/") && request.user_agent.ends_with(" cluster/c-1")
    );
    let [file, metadata] = request.parts.as_slice() else { panic!("two parts") };
    assert_eq!(
        (file.name.as_str(), file.file_name.as_str(), file.content_type.as_str()),
        ("file", "payload.tar.gz", "application/vnd.redhat.openshift.periodic")
    );
    assert_eq!(file.content, fs::read(files.path("archive")).unwrap());
    assert_eq!((metadata.name.as_str(), metadata.file_name.as_str()), ("metadata", "metadata.json"));
    assert_eq!(metadata.content, br#"{"custom_metadata":{"gathering_time":"2025-11-21T02:30:06Z"}}"#);
}

#[tokio::test]
async fn each_refusal_has_its_kind_and_code() {
    for (status, code, passes) in [
        (401, 401, false),
        (403, 403, false),
        (400, 400, false),
        (413, 413, false),
        (415, 415, false),
        (500, 500, true),
        (429, 429, true),
    ] {
        let server = FakeIngress::start(Answers::refuse(status)).await;
        let error = upload_to(&server, &Files::new(CANARY)).await.unwrap_err();
        assert_eq!((error.code(), error.may_pass()), (code, passes), "{error}");
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
        let named = matches!(
            (&error, status),
            (UploadError::Unauthorized { .. }, 401 | 403)
                | (UploadError::BadRequest { .. }, 400)
                | (UploadError::RefusedAsTooLarge { .. }, 413)
                | (UploadError::UnknownContentType { .. }, 415)
                | (UploadError::Status { .. }, 429 | 500)
        );
        assert!(named, "{status}: {error:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeIngress::start(Answers::accept("abc")).await;
    let server = FakeIngress::start(Answers::redirect(&elsewhere.upload_url)).await;
    let error = upload_to(&server, &Files::new(CANARY)).await.unwrap_err();
    assert_eq!(error.code(), 307);
    assert!(elsewhere.uploads().is_empty(), "the token travelled");
}

#[tokio::test]
async fn success_without_a_request_id_is_a_failure() {
    for id in ["", "not an id", "a\u{7f}"] {
        let server = FakeIngress::start(Answers::accept(id)).await;
        let error = upload_to(&server, &Files::new(CANARY)).await.unwrap_err();
        assert!(matches!(error, UploadError::NoRequestId(202)), "{id:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_of_an_unknown_ca_gets_no_token() {
    let files = Files::new(CANARY);
    let server = FakeIngress::start(Answers::accept("abc")).await;
    let other = FakeIngress::start(Answers::accept("abc")).await;
    fs::write(files.path("ca.pem"), &other.ca_pem).unwrap();
    let transport = https(Some(&files.path("ca.pem")), &loopback()).unwrap();
    let error = files.client(transport, &server.upload_url).upload(&files.path("archive"), NOW).await;
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.may_pass()), (0, true));
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(server.uploads().is_empty());
}

/// However an address is written and whatever a name resolves to: no connection, no second attempt.
#[tokio::test]
async fn row_37_addresses_that_are_not_public_get_no_connection() {
    let mut row = Row::short(37, "uploads to addresses that are not public");
    let files = Files::new(CANARY);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fc00::1]",
        "[64:ff9b::a9fe:a9fe]",
    ] {
        let transport = https(None, &[]).unwrap_or_else(|_| https(Some(&ca(&files)), &[]).unwrap());
        let mut client = files.client(transport, &format!("https://{host}:{port}/upload"));
        client.pacing.upload_attempts = 4;
        client.pacing.upload_wait = std::time::Duration::ZERO;
        let error = client.upload(&files.path("archive"), NOW).await.unwrap_err();
        // A spelling that this machine's resolver does not know is no address at all.
        let forbidden = matches!(&error, UploadError::Transport(TransportError::Forbidden(_)));
        let unknown = error.to_string().contains("cannot look up");
        assert!(forbidden && !error.may_pass() || unknown && host.starts_with('0'), "{host}: {error}");
        if forbidden {
            assert!(error.to_string().contains("--allow-upload-to"), "{error}");
        }
    }
    let nobody = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
    assert!(nobody.is_err(), "somebody connected");
    row.measured(serde_json::json!({"spellings": 27, "connections": 0}));
}

/// A file with an authority, for machines that know none.
fn ca(files: &Files) -> PathBuf {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    fs::write(files.path("ca.pem"), certificate.pem()).unwrap();
    files.path("ca.pem")
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_speak_tls_is_given_up_after_ten_seconds() {
    let files = Files::new(CANARY);
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/upload", silent.local_addr().unwrap());
    let client = files.client(https(Some(&ca(&files)), &loopback()).unwrap(), &url);
    let started = tokio::time::Instant::now();
    let error = client.upload(&files.path("archive"), NOW).await.unwrap_err();
    assert!(error.to_string().contains("no TLS handshake within 10 s"), "{error}");
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn the_size_limit_is_exclusive() {
    let server = FakeIngress::start(Answers::accept("abc")).await;
    let files = Files::new(CANARY);
    let archive = fs::File::create(files.path("archive")).unwrap();
    archive.set_len(10 * 1024 * 1024).unwrap();
    assert!(matches!(upload_to(&server, &files).await, Err(UploadError::TooLarge { size: 10_485_760 })));
    assert!(server.uploads().is_empty());
    archive.set_len(10 * 1024 * 1024 - 1).unwrap();
    assert!(upload_to(&server, &files).await.is_ok());
}

#[test]
fn only_https_is_taken_but_on_loopback() {
    let new = |url: &str| Endpoints::new(url, None, ADVISOR).map(|_| ());
    assert!(matches!(new("http://example.com/upload"), Err(EndpointError::NotHttps(_))));
    assert!(matches!(new("ftp://localhost/upload"), Err(EndpointError::NotHttps(_))));
    assert!(matches!(new("/upload"), Err(EndpointError::NotAUrl(_))));
    assert_eq!(new("https://user:secret@example.com/"), Err(EndpointError::Credentials));
    for url in
        ["https://example.com/upload", "http://127.0.0.1:1/u", "http://[::1]:1/u", "http://localhost/u"]
    {
        assert_eq!(new(url), Ok(()), "{url}");
    }
}

#[test]
fn a_ca_file_without_a_certificate_is_refused() {
    let files = Files::new(CANARY);
    let error = https(Some(&files.path("archive")), &[]).unwrap_err().to_string();
    assert!(error.contains("no certificate"), "{error}");
    let error = https(Some(&files.path("absent")), &[]).unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");
    assert!(Token::parse(CANARY).is_ok());
}
