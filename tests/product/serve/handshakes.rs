//! TLS: versions, callers, and certificates that are replaced while connections are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use admit::admission::tls::{Authority, Identity};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use time::OffsetDateTime;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::{Place, Serving, policy, review};
use crate::support::https::{Client, Failure, tls};
use crate::support::reliability::Row;

/// Asks once; an error in the handshake may show only with the first request, as TLS 1.3 has it.
async fn ask(
    trusted: &str,
    address: std::net::SocketAddr,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<u16, Failure> {
    let tls = tls(trusted, identity, versions);
    let mut client = Client::connect(address, &tls).await?;
    let answered = client.post("/validate", review("u", &json!({}))).await?;
    Ok(answered.code.as_u16())
}

/// Row 28: TLS 1.3 alone, and 1.2 where it is asked for. 1.0 and 1.1, and renegotiation, are not in rustls at all.
#[tokio::test(flavor = "multi_thread")]
async fn row_28_versions_of_tls() {
    let mut row = Row::short(28, "versions and settings");
    let place = Place::new();
    let mut right = 0;
    for (minimum, twelve) in [("1.3", false), ("1.2", true)] {
        let serving = place.start(&["--tls-min-version", minimum]);
        for (version, accepted) in [(&TLS13, true), (&TLS12, twelve)] {
            let asked = ask(place.authority.certificate_pem(), serving.webhook, None, &[version]).await;
            assert_eq!(asked.is_ok(), accepted, "{minimum} {version:?}: {asked:?}");
            right += 1;
        }
        for version in [1, 2] {
            refuses_hello(&serving, version).await;
            right += 1;
        }
        // SSL 3.0, for good measure.
        refuses_hello(&serving, 0).await;
    }
    row.measured(json!({"cases": 8, "right": right}));
}

/// A ClientHello of version 3.`minor` (1 is TLS 1.0, 2 is 1.1) with one suite and nothing else.
async fn refuses_hello(serving: &Serving, minor: u8) {
    let mut stream = TcpStream::connect(serving.webhook).await.unwrap();
    let head = [0x16, 3, minor.min(1), 0, 0x2d, 1, 0, 0, 0x29, 3, minor];
    stream.write_all(&[head.as_slice(), &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0]].concat()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer.first(), Some(&0x15), "an alert, and no ServerHello: {answer:?}");
}

/// Row 27: with a client authority, who has no certificate of it with an allowed name is refused unheard.
#[tokio::test(flavor = "multi_thread")]
async fn row_27_callers_are_known_or_refused() {
    let mut row = Row::short(27, "identities and modes");
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
    let trusted = place.authority.certificate_pem();
    for (what, identity) in &identities {
        let asked = ask(trusted, open.webhook, identity.as_ref(), &[&TLS13]).await;
        assert!(asked.is_ok(), "{what} where everyone may call: {asked:?}");
        let asked = ask(trusted, held.webhook, identity.as_ref(), &[&TLS13]).await;
        assert_eq!(asked.is_ok(), *what == "allowed", "{what}: {asked:?}");
    }
    // A caller may learn of its refusal before it is counted.
    let refused = "admit_handshakes_total{result=\"failure\"} 5\n";
    let metrics = held.until("/metrics", |metrics| metrics.contains(refused)).await;
    assert!(metrics.contains("admit_requests_total{route=\"validate\",answer=\"allowed\"} 1\n"), "{metrics}");
    assert_eq!(held.observed("/readyz").await.0, 200, "probes need no certificate");
    row.measured(json!({"cases": 2 * identities.len(), "right": 2 * identities.len(), "parsedOfRefused": 0}));
}

/// Row 27: another authority of clients counts from the next handshake on; a file that holds none changes nothing. Both
/// with certificates from files and with those that the webhook makes.
#[tokio::test(flavor = "multi_thread")]
async fn row_27_the_authority_of_callers_is_reloaded() {
    let mut row = Row::short(27, "another authority of clients");
    let place = Place::new();
    follows_the_authority(&place, |args| place.start(args), || place.authority.certificate_pem().to_owned())
        .await;
    let bundle = || std::fs::read_to_string(place.path("bundle.pem")).unwrap();
    let self_signed = |args: &[&str]| place.start_self_signed(&[args, &["--ca-out", "bundle.pem"]].concat());
    follows_the_authority(&place, self_signed, bundle).await;
    row.measured(json!({"reloads": 2, "refusedReloads": 2, "wrong": 0}));
}

async fn follows_the_authority(
    place: &Place,
    start: impl Fn(&[&str]) -> Serving,
    trusted: impl Fn() -> String,
) {
    let now = OffsetDateTime::now_utc();
    let other = Authority::open(&place.path("other"), now).unwrap();
    let first = place.authority.issue_client("kube-apiserver", "g", now).unwrap();
    let second = other.issue_client("kube-apiserver", "g", now).unwrap();
    place.write("clients.crt", place.authority.certificate_pem());
    let serving = start(&["--client-ca", "clients.crt"]);
    let trusted = trusted();
    let reloaded = async |result: &str| {
        let line = format!("admit_reloads_total{{part=\"certificate\",result=\"{result}\"}} ");
        serving.until("/metrics", |metrics| metrics.contains(&line)).await;
    };
    let welcome =
        async |identity: &Identity| ask(&trusted, serving.webhook, Some(identity), &[&TLS13]).await.is_ok();
    assert_eq!((welcome(&first).await, welcome(&second).await), (true, false));
    place.write("clients.crt", "half of a file");
    reloaded("failure").await;
    assert_eq!((welcome(&first).await, welcome(&second).await), (true, false));
    place.write("clients.crt", other.certificate_pem());
    reloaded("success").await;
    assert_eq!((welcome(&first).await, welcome(&second).await), (false, true));
}

/// Row 25, the short form: new handshakes show the new certificate, open connections live on, and no request fails.
#[tokio::test(flavor = "multi_thread")]
async fn row_25_certificates_are_replaced_under_load() {
    const CLIENTS: usize = 10;
    const ROTATIONS: usize = 5;
    let mut row = Row::short(25, "rotations under load");
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
    row.measured(json!({
        "rotations": ROTATIONS, "connections": CLIENTS, "requests": asked.load(Ordering::Relaxed), "failed": 0,
    }));
}
