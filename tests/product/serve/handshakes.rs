//! TLS: versions, callers, and certificates that are replaced while connections are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use admit::admission::tls::{Authority, Identity};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use time::OffsetDateTime;

use super::server::{Place, policy, review};
use crate::support::https::{Client, Failure, tls};

/// Asks once; an error in the handshake may show only with the first request, as TLS 1.3 has it.
async fn ask(
    place: &Place,
    address: std::net::SocketAddr,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<u16, Failure> {
    let tls = tls(place.authority.certificate_pem(), identity, versions);
    let mut client = Client::connect(address, &tls).await?;
    let answered = client.post("/validate", review("u", &json!({}))).await?;
    Ok(answered.code.as_u16())
}

/// Row 28: TLS 1.3 alone, and 1.2 where it is asked for. 1.0 and 1.1, and renegotiation, are not in rustls at all.
#[tokio::test(flavor = "multi_thread")]
async fn row_28_versions_of_tls() {
    let place = Place::new();
    for (minimum, version, accepted) in
        [("1.3", &TLS13, true), ("1.3", &TLS12, false), ("1.2", &TLS13, true), ("1.2", &TLS12, true)]
    {
        let serving = place.start(&["--tls-min-version", minimum]);
        let asked = ask(&place, serving.webhook, None, &[version]).await;
        assert_eq!(asked.is_ok(), accepted, "{minimum} {version:?}: {asked:?}");
    }
    for hello in [
        // ClientHello of SSL 3.0, TLS 1.0 and 1.1 with one suite and nothing else.
        [0x16, 3, 0, 0, 0x2d, 1, 0, 0, 0x29, 3, 0],
        [0x16, 3, 1, 0, 0x2d, 1, 0, 0, 0x29, 3, 1],
        [0x16, 3, 1, 0, 0x2d, 1, 0, 0, 0x29, 3, 2],
    ] {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let serving = place.start(&["--tls-min-version", "1.2"]);
        let mut stream = tokio::net::TcpStream::connect(serving.webhook).await.unwrap();
        let mut bytes = hello.to_vec();
        bytes.extend([[7_u8; 32].as_slice(), &[0, 0, 2, 0, 0x2f, 1, 0]].concat());
        stream.write_all(&bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert_eq!(answer.first(), Some(&0x15), "an alert, and no ServerHello: {answer:?}");
    }
}

/// Row 27: with a client authority, who has no certificate of it with an allowed name is refused unheard.
#[tokio::test(flavor = "multi_thread")]
async fn row_27_callers_are_known_or_refused() {
    let place = Place::new();
    let now = OffsetDateTime::now_utc();
    let other = Authority::open(&place.path("other"), now).unwrap();
    let old = now - time::Duration::days(3 * 365);
    let identities = [
        ("none", None),
        ("allowed", Some(place.authority.issue_client("kube-apiserver", "g", now).unwrap())),
        ("unknown name", Some(place.authority.issue_client("somebody", "g", now).unwrap())),
        ("other authority", Some(other.issue_client("kube-apiserver", "g", now).unwrap())),
        ("expired", Some(place.authority.issue_client("kube-apiserver", "g", old).unwrap())),
        (
            "serving certificate",
            Some(place.authority.issue_server(&["kube-apiserver".to_owned()], now).unwrap()),
        ),
    ];
    let open = place.start(&[]);
    let held = place.start(&[
        "--client-ca",
        "ca/ca.crt",
        "--client-subject",
        "kube-apiserver",
        "--client-subject",
        "x",
    ]);
    for (what, identity) in &identities {
        let asked = ask(&place, open.webhook, identity.as_ref(), &[&TLS13]).await;
        assert!(asked.is_ok(), "{what} where everyone may call: {asked:?}");
        let asked = ask(&place, held.webhook, identity.as_ref(), &[&TLS13]).await;
        assert_eq!(asked.is_ok(), *what == "allowed", "{what}: {asked:?}");
    }
    let (_, metrics) = held.observed("/metrics").await;
    assert!(metrics.contains("admit_requests_total{route=\"validate\",answer=\"allowed\"} 1\n"), "{metrics}");
    assert!(metrics.contains("admit_handshakes_total{result=\"failure\"} 5\n"), "{metrics}");
    assert_eq!(held.observed("/readyz").await.0, 200, "probes need no certificate");
}

/// Row 25, the short form: new handshakes show the new certificate, open connections live on, and no request fails.
#[tokio::test(flavor = "multi_thread")]
async fn row_25_certificates_are_replaced_under_load() {
    const CLIENTS: usize = 10;
    const ROTATIONS: usize = 5;
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let serving = place.start(&[]);
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
        let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
        clients.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let answered = client.post("/validate", review(&number.to_string(), &json!({}))).await?;
                assert_eq!(answered.json()["response"]["uid"], number.to_string());
                asked.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, Failure>(())
        });
    }
    for rotation in 1..=ROTATIONS {
        // A pair of which only half is new changes nothing.
        place.write("tls.key", "half");
        let expected = place.renew();
        let loaded = format!("admit_reloads_total{{part=\"certificate\",result=\"success\"}} {rotation}\n");
        let seen = tokio::time::timeout(Duration::from_secs(20), async {
            serving.until("/metrics", |metrics| metrics.contains(&loaded)).await;
            Client::connect(serving.webhook, &place.tls()).await.unwrap().certificate
        });
        let (_, shown) = x509_parser::pem::parse_x509_pem(expected.certificate_pem.as_bytes()).unwrap();
        assert_eq!(seen.await.unwrap(), shown.contents, "rotation {rotation}");
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap().unwrap();
    }
    let (_, metrics) = serving.observed("/metrics").await;
    let days = metrics.lines().find_map(|line| line.strip_prefix("admit_certificate_days_left ")).unwrap();
    assert!((364.0..=365.0).contains(&days.parse::<f64>().unwrap()), "{days}");
    eprintln!(
        "{ROTATIONS} rotations, {} requests on {CLIENTS} connections, none failed",
        asked.load(Ordering::Relaxed)
    );
}
