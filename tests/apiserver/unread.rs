//! Clients that do not read what they asked for: the bytes that wait for them are bounded, for each user and in all, and
//! others are served.

use std::time::Duration;

use admit_apiserver::{Identity, Server};
use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{get, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MIB: usize = 1 << 20;

/// A server with so many ConfigMaps of some 16 KiB, which members of `readers` may read.
async fn server_with(maps: usize) -> Server {
    let server = Server::builder().build().await.unwrap();
    let role = json!({"metadata": {"name": "reads"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    assert_eq!(post(&server, &format!("{rbac}/clusterroles"), &role).await.status, 201);
    let binding = json!({"metadata": {"name": "reads"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "readers"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads"}});
    assert_eq!(post(&server, &format!("{rbac}/clusterrolebindings"), &binding).await.status, 201);
    for number in 0..maps {
        assert_eq!(post(&server, MAPS, &map(&format!("m{number}"))).await.status, 201);
    }
    server
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"text": "x".repeat(16 << 10)}})
}

/// A watch of all ConfigMaps from the beginning, by `user`.
async fn watch(server: &Server, user: &str) -> (StatusCode, Body) {
    let request = Request::get(format!("{MAPS}?watch=1&resourceVersion=0&timeoutSeconds=3600"))
        .extension(Identity::new(user, ["readers".to_owned()]));
    let response = server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    (response.status(), response.into_body())
}

/// What comes of the body without waiting.
fn chunk(body: &mut Body) -> Option<Bytes> {
    // Without a share in the turns of tasks, of which this one takes no end.
    tokio::task::unconstrained(body.frame()).now_or_never()?.map(|frame| frame.unwrap().into_data().unwrap())
}

async fn figure(server: &Server, name: &str) -> usize {
    let metrics = get(server, "/metrics").await.body;
    let text = metrics.as_str().unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// As HTTP/2 does with a stream that is not read: it takes a chunk, and keeps it.
#[derive(Default)]
struct Unread {
    bodies: Vec<Body>,
    chunks: Vec<Bytes>,
}

impl Unread {
    async fn open(server: &Server, user: &str, watches: usize) -> Self {
        let mut unread = Self::default();
        for _ in 0..watches {
            let (status, mut body) = watch(server, user).await;
            assert_eq!(status, 200);
            unread.chunks.extend(chunk(&mut body));
            unread.bodies.push(body);
        }
        unread
    }

    fn bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_not_read_hold_a_bounded_number_of_bytes() {
    let server = server_with(20).await;
    // 600 × 20 × 16 KiB: 190 MiB, were it all rendered.
    let unread = Unread::open(&server, "eve", 600).await;
    assert!(unread.bytes() <= 16 * MIB, "{}", unread.bytes());
    assert!(unread.chunks.len() >= 200, "{}", unread.chunks.len());
    assert!(figure(&server, "apiserver_watch_bytes_unsent").await <= 16 * MIB);
    // Somebody else is served meanwhile, in full.
    let (_, mut body) = watch(&server, "bob").await;
    let mut text = Vec::new();
    while let Some(chunk) = chunk(&mut body) {
        text.extend_from_slice(&chunk);
    }
    assert_eq!(text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 20);
    assert_eq!(post(&server, MAPS, &map("more")).await.status, 201);
    drop(body);
    // More users do not hold more than all may.
    let mut others = Vec::new();
    for user in 0..8 {
        others.push(Unread::open(&server, &format!("eve-{user}"), 300).await);
    }
    let all = unread.bytes() + others.iter().map(Unread::bytes).sum::<usize>();
    assert!(all <= 64 * MIB, "{all}");
    drop((unread, others));
    assert_eq!(figure(&server, "apiserver_watch_bytes_unsent").await, 0);
    assert_eq!(figure(&server, "apiserver_watches_open").await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_slowest_watch_ends_where_another_waits() {
    let server = server_with(20).await;
    let mut unread = Unread::open(&server, "eve", 400).await;
    let held = unread.chunks.len();
    let mut waiting = unread.bodies.split_off(held);
    // Time passes: the first in the queue gets the room of the one that waited longest.
    let next = tokio::time::timeout(Duration::from_secs(30), waiting[0].frame());
    tokio::pin!(next);
    assert!(tokio::time::timeout(Duration::from_secs(3), &mut next).await.is_err(), "nothing was read yet");
    assert!(figure(&server, "apiserver_watches_too_slow_total").await >= 1);
    unread.chunks.remove(0);
    let got = next.await.unwrap().unwrap().unwrap().into_data().unwrap();
    assert!(got.starts_with(b"{\"type\":\"ADDED\""), "{got:?}");
    // The slowest hears of it, in the words that clients know, and that is all.
    let last = chunk(&mut unread.bodies[0]).unwrap();
    let event: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(unread.bodies[0].frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn watches_are_counted() {
    let server = server_with(1).await;
    let quiet = Unread::open(&server, "ann", 1000).await;
    let (status, body) = watch(&server, "ann").await;
    let text = body.collect().await.unwrap().to_bytes();
    let refusal: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((status.as_u16(), &refusal["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(watch(&server, "bob").await.0, 200, "others have their own");
    drop(quiet.chunks);
    let mut bodies = quiet.bodies;
    bodies.pop();
    assert_eq!(watch(&server, "ann").await.0, 200, "one ended");
}

/// A list of all ConfigMaps by `user`, as far as it was made.
async fn list(server: Server, user: String) -> (StatusCode, Body) {
    let request = Request::get(MAPS).extension(Identity::new(user, ["readers".to_owned()]));
    let response = server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    (response.status(), response.into_body())
}

#[tokio::test(start_paused = true)]
async fn lists_wait_for_room() {
    let server = server_with(100).await;
    let (_, one) = list(server.clone(), "bob".to_owned()).await;
    let size = one.collect().await.unwrap().to_bytes().len();
    assert!(size > 100 * (16 << 10), "{size}");
    assert_eq!(figure(&server, "apiserver_answer_bytes_held").await, 0, "it was read");
    // Three times what a user may have.
    let asked = 3 * 128 * MIB / size;
    let asks: Vec<_> = (0..asked).map(|_| tokio::spawn(list(server.clone(), "eve".to_owned()))).collect();
    let mut held = Vec::new();
    let mut refused = 0;
    for asked in asks {
        match asked.await.unwrap() {
            (StatusCode::OK, body) => held.push(body),
            (status, _) => {
                assert_eq!(status.as_u16(), 429);
                refused += 1;
            }
        }
        assert!(figure(&server, "apiserver_answer_bytes_held").await <= 128 * MIB);
    }
    assert!(held.len() * size <= 128 * MIB && refused >= asked / 2, "{} held, {refused} refused", held.len());
    // Others are served meanwhile, and so is who has read.
    assert_eq!(list(server.clone(), "bob".to_owned()).await.0, 200);
    held.truncate(held.len() / 2);
    assert_eq!(list(server.clone(), "eve".to_owned()).await.0, 200);
    drop(held);
    assert_eq!(figure(&server, "apiserver_answer_bytes_held").await, 0);
}
