//! Row 30: HTTP/2 as only an attacker writes it, frame by frame, to the API port of `admit up`. The port of the webhook
//! does not speak it at all.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ObjectMeta, PostParams};
use rustls::ClientConfig;
use rustls::version::TLS13;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::server::Place;
use crate::running::Workplace;
use crate::soak::{percent, scaled};
use crate::support::https::{Client, tls};
use crate::support::reliability::Row;

const MIB: usize = 1024 * 1024;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET /livez` of the host `h`, as HPACK.
const LIVEZ: &[u8] = b"\x82\x87\x41\x01h\x44\x06/livez";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ENHANCE_YOUR_CALM: u32 = 11;
/// Longer than any answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// `tls` with another protocol to offer.
fn offering(tls: &Arc<ClientConfig>, protocol: &str) -> TlsConnector {
    let mut config = ClientConfig::clone(tls);
    config.alpn_protocols = vec![protocol.into()];
    TlsConnector::from(Arc::new(config))
}

async fn connect(address: SocketAddr, tls: &Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    offering(tls, "h2").connect(name, TcpStream::connect(address).await?).await
}

/// The code of the GOAWAY that comes, if one does before the connection ends.
async fn goaway(stream: &mut (impl AsyncRead + Unpin)) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let mut payload =
            vec![0; usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap()];
        stream.read_exact(&mut payload).await.ok()?;
        if head[3] == GOAWAY {
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
}

/// Writes one chunk after the other until the other side has had enough; how many, and the code of its GOAWAY.
async fn flood(stream: TlsStream<TcpStream>, chunks: impl Iterator<Item = Vec<u8>>) -> (usize, Option<u32>) {
    let (mut from, mut to) = tokio::io::split(stream);
    let told = tokio::spawn(async move { goaway(&mut from).await });
    let mut sent = 0;
    for chunk in chunks {
        if told.is_finished() || to.write_all(&chunk).await.is_err() {
            break;
        }
        sent += 1;
    }
    let _ = to.flush().await;
    (sent, tokio::time::timeout(PATIENCE, told).await.unwrap().unwrap())
}

/// Seconds of processor time that a process has used.
fn processor(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    let ticks = after_name.split(' ').skip(11).take(2).map(|text| text.parse::<u32>().unwrap());
    f64::from(ticks.sum::<u32>()) / 100.0
}

fn memory(id: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
}

/// Where the API server listens, by what its kubeconfig says.
fn address(kubeconfig: &Path) -> SocketAddr {
    let text = fs::read_to_string(kubeconfig).unwrap();
    let after = text.split_once("https://").unwrap().1;
    after.split(|c: char| !(c.is_ascii_digit() || ".:".contains(c))).next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn row_30_resets_and_header_blocks() {
    abused(2_000, Row::short(30, "resets, header blocks, a paced client")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; scripts/soak runs it"]
async fn row_30_resets_and_header_blocks_in_full() {
    abused(scaled(100_000), Row::full(30, "resets, header blocks, a paced client", percent())).await;
}

async fn abused(resets: usize, mut row: Row) {
    let place = Workplace::new();
    let running = place.start();
    let address = address(&place.kubeconfig());
    let authority = fs::read_to_string(place.path().join(".admit/ca.crt")).unwrap();
    let tls = tls(&authority, None, &[&TLS13]);
    // What a process needs once is not growth.
    assert_eq!(good(address, &tls).await.0, 200);
    flood(connect(address, &tls).await.unwrap(), resetting(100)).await;
    let (used, held) = (processor(running.id()), memory(running.id()));

    let meanwhile = tokio::spawn({
        let tls = Arc::clone(&tls);
        async move {
            let mut slowest = Duration::ZERO;
            for _ in 0..20 {
                let (code, took) = good(address, &tls).await;
                assert_eq!(code, 200);
                slowest = slowest.max(took);
            }
            slowest
        }
    });
    let (sent, code) = flood(connect(address, &tls).await.unwrap(), resetting(resets)).await;
    assert_eq!(code, Some(ENHANCE_YOUR_CALM), "after {sent} resets");
    let (pieces, code) = flood(connect(address, &tls).await.unwrap(), endless_headers()).await;
    assert!(code.is_some() && pieces < 10 * MIB / PIECE, "{pieces} pieces, {code:?}");
    let slowest = meanwhile.await.unwrap();

    let (used, grown) = (processor(running.id()) - used, memory(running.id()).saturating_sub(held));
    row.measured(json!({
        "resetsOffered": resets, "resetsTaken": sent, "headerKiBTaken": pieces * PIECE / 1024,
        "coreSeconds": used, "grownMiB": grown / MIB, "goodRequests": 20, "slowestGoodMs": slowest.as_millis(),
    }));
    // Twenty handshakes of good clients are in it; unoptimised they take most of it.
    assert!(used < if cfg!(debug_assertions) { 10.0 } else { 1.0 }, "{used} s");
    assert!(grown < 32 * MIB, "{} MiB", grown / MIB);
    assert!(running.terminate().success());
}

/// A request of somebody who behaves, over a connection of its own; the code and how long it took.
async fn good(address: SocketAddr, tls: &Arc<ClientConfig>) -> (u16, Duration) {
    let began = Instant::now();
    let mut client = Client::connect(address, tls).await.unwrap();
    (client.get("/livez").await.unwrap().code.as_u16(), began.elapsed())
}

/// Requests that are taken back at once.
fn resetting(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let preface = std::iter::once(PREFACE.to_vec());
    preface.chain((0..count).map(|number| {
        let stream = u32::try_from(2 * number + 1).unwrap();
        let begun = frame(HEADERS, END_STREAM | END_HEADERS, stream, LIVEZ);
        [begun, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
    }))
}

const PIECE: usize = 16 * 1024;

/// A block of headers of more than 10 MiB, which never ends.
fn endless_headers() -> impl Iterator<Item = Vec<u8>> {
    let begin = [PREFACE.to_vec(), frame(HEADERS, END_STREAM, 1, LIVEZ)].concat();
    // A literal that is never indexed: name `x`, and a value of 100 letters.
    let field = [b"\x10\x01x\x64".as_slice(), &[b'a'; 100]].concat();
    let piece = frame(CONTINUATION, 0, 1, &field.repeat(PIECE / field.len()));
    std::iter::once(begin).chain(std::iter::repeat_n(piece, 11 * MIB / PIECE))
}

const CONNECTIONS: u32 = 8;
const WATCHES: u32 = 240;
const MAPS: usize = 200;

/// Watches by the hundred over connections whose windows are wide open and of which nothing is read.
#[tokio::test(flavor = "multi_thread")]
async fn row_30_watches_that_nobody_reads() {
    let mut row = Row::short(30, "watches that nobody reads");
    let place = Workplace::new();
    let running = place.start();
    let address = address(&place.kubeconfig());
    let authority = fs::read_to_string(place.path().join(".admit/ca.crt")).unwrap();
    let tls = tls(&authority, None, &[&TLS13]);
    let client = place.client().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    everybody_reads(&client).await;
    let data = Some([("text".to_owned(), "x".repeat(8 << 10))].into());
    let map = |name: String| ConfigMap {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        data: data.clone(),
        ..ConfigMap::default()
    };
    for number in 0..MAPS {
        maps.create(&PostParams::default(), &map(format!("m{number}"))).await.unwrap();
    }
    let held = memory(running.id());

    let mut unread = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = connect(address, &tls).await.unwrap();
        stream.write_all(&watching()).await.unwrap();
        stream.flush().await.unwrap();
        unread.push(stream);
    }
    // Each waits for its first bytes, or has as many as there is room for: the first are ended, and their connections cut.
    let (mut most, mut slowest, mut ended) = (0, Duration::ZERO, 0);
    let mut connections = usize::MAX;
    let begun = Instant::now();
    while ended == 0 || connections > usize::try_from(CONNECTIONS).unwrap() / 2 + 2 {
        let began = Instant::now();
        maps.create(&PostParams::default(), &map(format!("n{}", begun.elapsed().as_micros()))).await.unwrap();
        slowest = slowest.max(began.elapsed());
        most = most.max(memory(running.id()).saturating_sub(held));
        let metrics: String =
            client.request_text(http::Request::get("/metrics").body(Vec::new()).unwrap()).await.unwrap();
        let figure = |name: &str| -> usize {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse().unwrap()
        };
        ended = figure("apiserver_watches_too_slow_total ");
        connections = figure("apiserver_connections_open ");
        // 16 MiB of the one user, and what the controllers have not taken yet.
        assert!(figure("apiserver_watch_bytes_unsent ") <= 24 * MIB);
        assert!(begun.elapsed() < 2 * PATIENCE, "{ended} watches ended, {connections} connections are open");
    }
    row.measured(json!({
        "watchesAsked": CONNECTIONS * WATCHES, "objects": MAPS, "ended": ended, "connectionsLeft": connections,
        "grownMiB": most / MIB, "slowestWriteMs": slowest.as_millis(),
    }));
    // Rendered whole, as many as a user may have would hold 1,600 MiB.
    assert!(most < 192 * MIB, "{} MiB", most / MIB);
    assert!(slowest < PATIENCE / 2, "a write took {slowest:?}");
    assert!(running.terminate().success());
}

/// Lets callers without a name read ConfigMaps.
async fn everybody_reads(client: &kube::Client) {
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]);
    let role = json!({"metadata": {"name": "maps"}, "rules": rules});
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let group =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated"});
    let of = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"});
    let binding = json!({"metadata": {"name": "maps"}, "subjects": [group], "roleRef": of});
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

/// A connection that takes all that there is for it, by what it says.
fn watching() -> Vec<u8> {
    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    const WIDE: u32 = 0x7fff_0000;
    let path = b"/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0";
    let head = [b"\x82\x87\x41\x01h\x44", [u8::try_from(path.len()).unwrap()].as_slice(), path].concat();
    let window = [[0, 4].as_slice(), &WIDE.to_be_bytes()].concat();
    let mut bytes = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &window)].concat();
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &WIDE.to_be_bytes()));
    for number in 0..WATCHES {
        bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &head));
    }
    bytes
}

/// The port of the webhook agrees to HTTP/1.1 alone, and takes the preface of HTTP/2 for no request.
#[tokio::test(flavor = "multi_thread")]
async fn row_30_the_webhook_does_not_speak_it() {
    let mut row = Row::short(30, "the webhook's port");
    let place = Place::new();
    let serving = place.start(&[]);
    assert!(connect(serving.webhook, &place.tls()).await.is_err(), "it is offered nothing else");
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(serving.webhook).await.unwrap();
    let mut stream = offering(&place.tls(), "http/1.1").connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    stream.write_all(PREFACE).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    row.measured(json!({"protocols": ["http/1.1"]}));
}
