//! Load: bodies that are too large, callers that are too many, and a process that is told to stop meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::server::{Place, Serving, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

const MIB: usize = 1024 * 1024;

/// Row 7: a body without end is refused at the limit and not gathered beyond it.
#[tokio::test(flavor = "multi_thread")]
async fn row_07_a_stream_without_end_is_refused_at_the_limit() {
    let mut row = Row::short(7, "a stream without end");
    let place = Place::new();
    let serving = place.start(&[]);
    let before = serving.memory();
    let stream = TcpStream::connect(serving.webhook).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(place.tls()).connect(name, stream).await.unwrap();
    let head = "POST /validate HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
    let mut sent = 0;
    while sent < 1024 * MIB && stream.write_all(&chunk).await.is_ok() {
        sent += 0x10000;
    }
    assert!(sent < 64 * MIB, "the connection should have been closed long ago");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let grown = serving.memory().saturating_sub(before);
    assert!(grown < 16 * MIB, "{} MiB more than before", grown / MIB);
    let (_, metrics) = serving.observed("/metrics").await;
    assert!(metrics.contains("answer=\"too_large\"} 1\n"), "{metrics}");
    row.measured(json!({"sentMiB": sent / MIB, "grownMiB": grown / MIB}));
}

/// What unoptimised builds are spared, and how much longer they may take.
const UNOPTIMISED: usize = if cfg!(debug_assertions) { 8 } else { 1 };
const BOUND: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 250 });

/// Row 9: wide documents take bounded time and memory.
#[tokio::test(flavor = "multi_thread")]
async fn row_09_wide_documents_take_bounded_time_and_memory() {
    let mut row = Row::short(9, "wide objects");
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "!has(object.data.nothing)"));
    let serving = place.start(&[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let keys: serde_json::Map<String, Value> =
        (0..200_000 / UNOPTIMISED).map(|n| (format!("k{n}"), json!(1))).collect();
    let wide = [
        ("empty lists", json!({"v": vec![json!([]); MIB / UNOPTIMISED]})),
        ("keys", Value::Object(keys)),
        ("one string", json!({"v": "x".repeat(MIB)})),
    ];
    for (what, data) in wide {
        let body = review("u", &data);
        let (before, started) = (serving.memory(), Instant::now());
        let answered = client.post("/validate", body).await.unwrap();
        let took = started.elapsed();
        // At its most: what a document takes while it is read is given back before the answer.
        let grown = serving.peak_memory().saturating_sub(before);
        assert_eq!(answered.json()["response"]["allowed"], true, "{what}");
        assert!(took < BOUND, "{what}: {took:?}");
        assert!(grown < 64 * MIB, "{what}: {} MiB", grown / MIB);
        row.measured(json!({what: {"ms": took.as_millis(), "grownMiB": grown / MIB}}));
    }
}

/// Row 4, the short form: no answer bears another's uid.
#[tokio::test(flavor = "multi_thread")]
async fn row_04_uids_are_not_confused() {
    let mut row = Row::short(4, "uids on 32 connections");
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != '3'"));
    let serving = place.start(&[]);
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..32 {
        let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
        clients.spawn(async move {
            for round in 0..50 {
                let (uid, data) = (format!("{number}-{round}"), json!({"v": (round % 5).to_string()}));
                let answer = client.post("/validate", review(&uid, &data)).await.unwrap().json();
                assert_eq!(answer["response"]["uid"], uid);
                assert_eq!(answer["response"]["allowed"], round % 5 != 3);
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    row.measured(json!({"requests": 32 * 50, "connections": 32, "mismatches": 0}));
}

/// Row 24, the short form: while sets are swapped, each answer is that of one complete set.
#[tokio::test(flavor = "multi_thread")]
async fn row_24_every_answer_is_of_one_set() {
    let mut row = Row::short(24, "sets swapped under requests");
    // Two policies that always fail together: a mixture of both sets would tell of one from each.
    let set = |name: &str| {
        let text =
            format!("{}---\n{}", policy(&format!("{name}-1"), "false"), policy(&format!("{name}-2"), "true"));
        text.replace("validationActions: [Deny]", "validationActions: [Deny, Audit]")
    };
    let place = Place::new();
    place.write("policies/p.yaml", &set("a"));
    let serving = Arc::new(place.start(&[]));
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let asking = tokio::spawn(async move {
        let mut seen = [0, 0];
        while seen.iter().any(|count| *count < 100) {
            let answer = client.post("/validate", review("u", &json!({}))).await.unwrap().json();
            let text = answer["response"].to_string();
            let of = ["a-1", "b-1"].map(|name| text.contains(name));
            assert!(of[0] != of[1], "{text}");
            seen[usize::from(of[1])] += 1;
        }
        seen
    });
    let mut swaps = 0;
    while !asking.is_finished() {
        swaps += 1;
        place.write("policies/p.yaml", &set(if swaps % 2 == 0 { "a" } else { "b" }));
        let loaded = format!("admit_reloads_total{{part=\"policies\",result=\"success\"}} {swaps}\n");
        serving.until("/metrics", |metrics| metrics.contains(&loaded)).await;
    }
    row.measured(json!({"swaps": swaps, "ofEach": asking.await.unwrap(), "mixed": 0}));
}

/// Row 31, the short form: told to stop, it is not ready at once, serves on, and cuts no connection.
#[tokio::test(flavor = "multi_thread")]
async fn row_31_stopping_resets_no_connection() {
    let mut row = Row::short(31, "SIGTERM under load");
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let serving = place.start(&["--shutdown-delay", "5"]);
    let answered = Arc::new(AtomicUsize::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (address, tls, answered) = (serving.webhook, place.tls(), Arc::clone(&answered));
        let mut client = Client::connect(address, &tls).await.unwrap();
        clients.spawn(async move {
            loop {
                let answer = client.post("/validate", review("u", &json!({}))).await.unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
                // The server takes leave in words; a caller that listens goes elsewhere.
                if answer.headers.get("connection").is_some_and(|value| value == "close") {
                    return;
                }
            }
        });
    }
    serving.until("/metrics", |metrics| metrics.contains("answer=\"allowed\"}")).await;
    serving.signal("-TERM");
    serving.until("/readyz", |text| text.contains("[-]shutdown failed")).await;
    let mut late = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    assert_eq!(
        late.post("/validate", review("u", &json!({}))).await.unwrap().code,
        200,
        "it serves on meanwhile"
    );
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let count = answered.load(Ordering::Relaxed);
    assert!(serving.terminate().success());
    row.measured(json!({"stops": 1, "requests": count, "resets": 0}));
}

/// Row 29, the short form: sockets that dribble heads take nothing from those who do not, and are closed.
#[tokio::test(flavor = "multi_thread")]
async fn row_29_slow_heads_are_cut_and_disturb_nobody() {
    const SLOW: usize = 300;
    let mut row = Row::short(29, "slow heads");
    let place = Place::new();
    let serving = place.start(&[]);
    let name = || rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let mut slow = tokio::task::JoinSet::new();
    let tls = place.tls();
    for _ in 0..SLOW {
        let (address, connector) = (serving.webhook, TlsConnector::from(Arc::clone(&tls)));
        slow.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let mut stream = connector.connect(name(), stream).await.unwrap();
            let begun = Instant::now();
            let mut tick = tokio::time::interval(Duration::from_millis(250));
            loop {
                tick.tick().await;
                let written = stream.write_all(b"P").await.is_ok() && stream.flush().await.is_ok();
                let closed = tokio::time::timeout(Duration::ZERO, stream.read(&mut [0])).await.is_ok();
                if closed || !written {
                    return begun.elapsed();
                }
            }
        });
    }
    let slowest = good_clients(&serving, &place).await;
    let mut longest = Duration::ZERO;
    while let Some(lived) = slow.join_next().await {
        longest = longest.max(lived.unwrap());
    }
    assert!(longest < Duration::from_secs(20), "a head took {longest:?}");
    row.measured(json!({
        "sockets": SLOW, "longestHeadMs": longest.as_millis(), "slowestGoodMs": slowest.as_millis(),
    }));
}

/// Row 29: callers that announce the largest bodies, and do not send them, take no room from those who send small ones.
#[tokio::test(flavor = "multi_thread")]
async fn row_29_announced_bodies_take_no_room() {
    const SLOW: usize = 32;
    let mut row = Row::short(29, "large bodies that do not come");
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let serving = place.start(&[]);
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{{",
        8 * MIB
    );
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(serving.webhook).await.unwrap();
        let mut stream = TlsConnector::from(place.tls()).connect(name, stream).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        slow.push(stream);
    }
    let connected = format!("admit_connections {SLOW}\n");
    serving.until("/metrics", |metrics| metrics.contains(&connected)).await;
    let slowest = good_clients(&serving, &place).await;
    row.measured(json!({"announcedMiB": 8 * SLOW, "slowestGoodMs": slowest.as_millis(), "refusedGood": 0}));
}

/// Row 29: where silent connections have taken all the room there is, the next caller finds some, and they end by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn row_29_silent_connections_keep_nobody_out() {
    const ROOM: usize = 200;
    const SILENT: usize = 300;
    let mut row = Row::short(29, "more silent connections than there is room for");
    let place = Place::new();
    let serving = place.start_with_room(ROOM);
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(serving.webhook).await.unwrap();
        silent.push(TlsConnector::from(place.tls()).connect(name, stream).await.unwrap());
    }
    let slowest = good_clients(&serving, &place).await;
    let began = Instant::now();
    for stream in &mut silent {
        // A farewell or a reset: the connection ends.
        let ended = tokio::time::timeout(Duration::from_secs(40), stream.read(&mut [0])).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    }
    row.measured(json!({
        "room": ROOM, "silent": SILENT, "slowestGoodMs": slowest.as_millis(), "refusedGood": 0,
        "lastClosedAfterMs": began.elapsed().as_millis(),
    }));
}

async fn good_clients(serving: &Serving, place: &Place) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
        let started = Instant::now();
        let answered = client.post("/validate", review("u", &json!({}))).await.unwrap();
        assert_eq!(answered.code, 200);
        slowest = slowest.max(started.elapsed());
    }
    slowest
}

/// Seconds that 99 of 100 answers may take under any load, as a bound of the histogram's buckets. A piece of work takes an
/// unoptimised build on a busy machine longer than it may wait.
pub(crate) const SERVED: f64 = if cfg!(debug_assertions) { 5.0 } else { 1.0 };

/// The upper bound of the bucket that holds the quantile of the time from a request's head to its answer, of the requests
/// that were decided.
pub(crate) fn served_quantile(metrics: &str, quantile: f64) -> f64 {
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for line in metrics.lines() {
        let Some(rest) = line.strip_prefix("admit_request_seconds_bucket{le=\"") else { continue };
        let (bound, rest) = rest.split_once('"').unwrap();
        let (labels, count) = rest.split_once("} ").unwrap();
        if !["allowed", "denied"].iter().any(|answer| labels.ends_with(&format!("answer=\"{answer}\""))) {
            continue;
        }
        let (bound, count): (f64, f64) = (bound.parse().unwrap_or(f64::INFINITY), count.parse().unwrap());
        match buckets.iter_mut().find(|(known, _)| *known == bound) {
            Some((_, all)) => *all += count,
            None => buckets.push((bound, count)),
        }
    }
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = buckets.last().unwrap().1;
    buckets.iter().find(|(_, count)| *count >= all * quantile).unwrap().0
}

/// Row 32, the short form: more at once than can be worked on is refused with 429 and a time to come back, and the rest
/// is answered.
#[tokio::test(flavor = "multi_thread")]
async fn row_32_overload_is_refused_and_passes() {
    const CALLERS: usize = 400;
    let mut row = Row::short(32, "400 callers at once");
    let place = Place::new();
    // Each request is a piece of work for an unoptimised build.
    place.write("policies/a.yaml", &policy("a", "object.data.all(k, object.data.exists(l, l == k))"));
    let serving = place.start(&[]);
    let data: serde_json::Map<String, Value> = (0..300).map(|n| (format!("k{n}"), json!("v"))).collect();
    let body = Bytes::from(review("u", &Value::Object(data)));
    // Connected before any asks, so that the bound on handshakes plays no part.
    let mut connected = Vec::new();
    for _ in 0..CALLERS {
        connected.push(Client::connect(serving.webhook, &place.tls()).await.unwrap());
    }
    let mut clients = tokio::task::JoinSet::new();
    for mut client in connected {
        let body = body.clone();
        clients.spawn(async move {
            let answered = client.post("/validate?timeout=30s", body).await.unwrap();
            (answered.code.as_u16(), answered.headers.get("retry-after").is_some())
        });
    }
    let (mut done, mut refused) = (0, 0);
    while let Some(ended) = clients.join_next().await {
        match ended.unwrap() {
            (200, _) => done += 1,
            (429, true) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(done > 0, "{done} answered, {refused} refused");
    assert!(serving.memory() < 512 * MIB);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let answered = client.post("/validate", review("u", &json!({"v": "1"}))).await.unwrap();
    assert_eq!(answered.json()["response"]["allowed"], true, "afterwards all is well");
    let p99 = served_quantile(&serving.observed("/metrics").await.1, 0.99);
    assert!(p99 <= SERVED, "{p99} s");
    row.measured(json!({
        "served": done, "refused": refused, "servedP99Seconds": p99, "memoryMiB": serving.memory() / MIB,
    }));
}

/// Row 19, the short form: a policy that would spin is stopped before the caller's patience ends, and fails.
#[tokio::test(flavor = "multi_thread")]
async fn row_19_spinning_is_stopped_in_time() {
    let mut row = Row::short(19, "a spinning policy");
    let spin = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b != c + d + 'x'))))";
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", spin));
    place.write(
        "policies/b.yaml",
        &policy("b", "true").replace("spec:\n  match", "spec:\n  failurePolicy: Ignore\n  match"),
    );
    let serving = place.start(&[]);
    let data: serde_json::Map<String, Value> = (0..300).map(|n| (format!("k{n}"), json!("v"))).collect();
    let body = Bytes::from(review("u", &Value::Object(data)));
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    // The bound is a share of the caller's patience; an unoptimised build on a busy machine needs more of it.
    let patience: u32 = if cfg!(debug_assertions) { 4 } else { 1 };
    let route = format!("/validate?timeout={patience}s");
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let started = Instant::now();
        let answered = client.post(&route, body.clone()).await.unwrap();
        let took = started.elapsed();
        slowest = slowest.max(took);
        assert_eq!(answered.json()["response"]["allowed"], false);
        assert_eq!(answered.json()["response"]["uid"], "u");
        assert!(took < Duration::from_millis(900) * patience, "{took:?}");
    }
    row.measured(json!({"requests": 3, "patienceSeconds": patience, "slowestMs": slowest.as_millis()}));
}
