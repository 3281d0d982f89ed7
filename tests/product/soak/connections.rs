//! Rows 4, 19, 29, 31 and 32: callers that are many, slow, impatient or cut off.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::{Bench, percent, scaled};
use crate::serve::load::{SERVED, served_quantile};
use crate::serve::server::{Place, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

const MIB: usize = 1024 * 1024;

#[test]
#[ignore = "minutes long; scripts/soak runs it"]
fn row_04_uids_of_many_connections() {
    let mut row = Row::full(4, "uids on 64 connections", percent());
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let serving = place.start(&[]);
    let requests = scaled(50_000);
    // The load generator holds each answer against the uid of its request.
    let report = Bench::start(&place, &serving, &["-c", "64", "-n", &requests.to_string()]).report();
    assert_eq!((&report["allowed"], &report["failed"]), (&requests.into(), &0.into()), "{report}");
    row.measured(json!({
        "requests": requests, "connections": report["connections"], "mismatches": 0,
        "requestsPerSecond": report["requestsPerSecond"], "latencyMs": report["latencyMs"],
    }));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_19_spinning_policies() {
    let mut row = Row::full(19, "spinning policies with timeout=1s", percent());
    let spin = "object.data.all(a, object.data.all(b, object.data.all(c, a + b != c + 'x')))";
    let place = Place::new();
    for name in 0..20 {
        place.write(&format!("policies/{name}.yaml"), &policy(&format!("p{name}"), spin));
    }
    let serving = place.start(&[]);
    let data: Map<String, Value> = (0..300).map(|n| (format!("k{n}"), json!("v"))).collect();
    let body = Bytes::from(review("u", &Value::Object(data)));
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let (mut slowest, requests) = (Duration::ZERO, scaled(1_000));
    for _ in 0..requests {
        let started = Instant::now();
        let answered = client.post("/validate?timeout=1s", body.clone()).await.unwrap();
        slowest = slowest.max(started.elapsed());
        assert_eq!(answered.json()["response"]["allowed"], false);
    }
    assert!(slowest < Duration::from_millis(900), "{slowest:?}");
    row.measured(json!({"requests": requests, "inTime": requests, "slowestMs": slowest.as_millis()}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_29_dribbling_sockets() {
    let mut row = Row::full(29, "heads, handshakes, bodies and silence for 60 s", percent());
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let serving = place.start(&[]);
    let (sockets, lasting) = (scaled(12_000), Duration::from_secs(60));
    let begun = Instant::now();
    let mut slow = JoinSet::new();
    for number in 0..sockets {
        let (address, connector) = (serving.webhook, TlsConnector::from(place.tls()));
        let way = WAYS[number % WAYS.len()];
        slow.spawn(async move {
            let mut opened = 0_u32;
            while begun.elapsed() < lasting {
                opened += 1;
                slow_connection(address, &connector, way).await;
            }
            opened
        });
    }
    let args = ["-c", "8", "--rate", "200", "-d", "60", "--timeout", "30"];
    let report = Bench::start(&place, &serving, &args).report();
    let mut opened = 0;
    while let Some(ended) = slow.join_next().await {
        opened += ended.unwrap();
    }
    let p99 = report["latencyMs"]["p99"].as_f64().unwrap();
    row.measured(json!({
        "sockets": sockets, "opened": opened, "seconds": lasting.as_secs(), "goodRequests": report["requests"],
        "goodFailed": report["failed"], "goodP99Ms": p99, "rssMiB": serving.memory() / MIB,
    }));
    assert_eq!(report["failed"], 0, "{report}");
    assert!(p99 < 50.0, "{report}");
}

/// What a slow caller is slow with.
#[derive(Clone, Copy, PartialEq)]
enum Slow {
    Handshake,
    Head,
    Body,
    /// It asks for nothing.
    Silent,
}

const WAYS: [Slow; 4] = [Slow::Handshake, Slow::Head, Slow::Body, Slow::Silent];

async fn slow_connection(address: std::net::SocketAddr, connector: &TlsConnector, way: Slow) {
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    if way == Slow::Handshake {
        return dribble(&mut stream, CLIENT_HELLO).await;
    }
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let Ok(mut stream) = connector.connect(name, stream).await else { return };
    let begun = match way {
        Slow::Body => {
            "POST /validate HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 8388608\r\n\r\n"
        }
        Slow::Handshake | Slow::Head | Slow::Silent => "",
    };
    if stream.write_all(begun.as_bytes()).await.is_err() {
        return;
    }
    match way {
        Slow::Silent => drop(stream.read(&mut [0]).await),
        Slow::Handshake | Slow::Head | Slow::Body => dribble(&mut stream, b"").await,
    }
}

/// How a first message of half a KiB begins: the head of a record, then that of the message.
const CLIENT_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3];

/// A byte every two seconds, `begins` first, until the other side has had enough.
async fn dribble(stream: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin), begins: &[u8]) {
    let mut tick = tokio::time::interval(Duration::from_secs(2));
    for byte in begins.iter().copied().chain(std::iter::repeat(b'P')) {
        tick.tick().await;
        let written = stream.write_all(&[byte]).await.is_ok() && stream.flush().await.is_ok();
        if !written || tokio::time::timeout(Duration::ZERO, stream.read(&mut [0])).await.is_ok() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_31_stops_under_load() {
    let mut row = Row::full(31, "SIGTERM under 2,000 requests a second", percent());
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let (stops, mut answered) = (scaled(50), 0);
    for _ in 0..stops {
        let serving = place.start(&["--shutdown-delay", "1"]);
        let mut clients = JoinSet::new();
        for _ in 0..20 {
            let client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
            clients.spawn(until_told_to_leave(client));
        }
        serving.until("/metrics", |metrics| metrics.contains("answer=\"allowed\"}")).await;
        serving.signal("-TERM");
        while let Some(ended) = clients.join_next().await {
            answered += ended.unwrap();
        }
        assert!(serving.terminate().success());
    }
    row.measured(json!({"stops": stops, "requests": answered, "resets": 0}));
}

/// A hundred requests a second, until an answer says that the connection ends; how many there were.
async fn until_told_to_leave(mut client: Client) -> u32 {
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    let mut count = 0;
    loop {
        pace.tick().await;
        let answer = client.post("/validate", review("u", &json!({}))).await.unwrap();
        count += 1;
        assert_eq!(answer.code, 200);
        if answer.headers.get("connection").is_some_and(|value| value == "close") {
            return count;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_32_overload() {
    let mut row = Row::full(32, "twenty times what can be served for 60 s", percent());
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.all(k, object.data.exists(l, l == k))"));
    let data: Map<String, Value> = (0..200).map(|n| (format!("k{n}"), json!("v"))).collect();
    place.write("review.json", &review("u", &Value::Object(data)));
    let serving = place.start(&[]);
    let file = place.path("review.json").display().to_string();
    let alone = Bench::start(&place, &serving, &["-f", &file, "-c", "2", "-d", "5"]).report();
    let capacity = alone["requestsPerSecond"].as_f64().unwrap();
    let rate = format!("{:.0}", (capacity * 20.0).max(20.0));
    let seconds = scaled(60).to_string();
    let args = ["-f", &file, "-c", "512", "--rate", &rate, "-d", &seconds, "--timeout", "60"];
    let mut overload = Bench::start(&place, &serving, &args);
    let mut most = 0;
    let mut pace = tokio::time::interval(Duration::from_millis(200));
    while overload.is_running() {
        pace.tick().await;
        most = most.max(serving.memory());
    }
    let report = overload.report();
    let ended = Instant::now();
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    while client.post("/validate", review("u", &json!({"a": "1"}))).await.unwrap().code != 200 {
        assert!(ended.elapsed() < Duration::from_secs(2), "still refusing");
    }
    let recovery = ended.elapsed();
    let (_, metrics) = serving.observed("/metrics").await;
    let p99 = served_quantile(&metrics, 0.99);
    row.measured(json!({
        "capacityPerSecond": capacity, "offeredPerSecond": rate, "answered": report["allowed"],
        "refused": report["failures"], "mostMiB": most / MIB, "recoveryMs": recovery.as_millis(),
        "servedP99Seconds": p99,
    }));
    assert!(most < 512 * MIB, "{} MiB", most / MIB);
    assert!(p99 <= SERVED, "{p99} s");
}
