//! Very many watches of what changes all the time: each is told of everything, in few chunks.

use std::time::Duration;

use admit_apiserver::{Identity, Server};
use axum::body::Body;
use futures::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::harness::post;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn watch(server: &Server) -> Body {
    let request = Request::get(format!("{MAPS}?watch=1&timeoutSeconds=3600"))
        .extension(Identity::new("admin", ["system:masters".to_owned()]));
    server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_body()
}

/// The chunks that come without waiting, asked for until nothing comes, as HTTP does: their number, and the names of the objects in
/// them.
fn told(body: &mut Body) -> (usize, Vec<String>) {
    let (mut chunks, mut names) = (0, Vec::new());
    // Without a share in the turns of tasks, of which this one takes no end.
    while let Some(frame) = tokio::task::unconstrained(body.frame()).now_or_never() {
        chunks += 1;
        let text = frame.unwrap().unwrap().into_data().unwrap();
        let events = serde_json::Deserializer::from_slice(&text).into_iter::<serde_json::Value>();
        names.extend(
            events.map(|event| event.unwrap()["object"]["metadata"]["name"].as_str().unwrap().to_owned()),
        );
    }
    (chunks, names)
}

/// Time that is paused goes on by itself where nobody has anything to do: somebody has, until this is dropped.
fn stop_the_clock() -> JoinSet<()> {
    let mut busy = JoinSet::new();
    busy.spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    busy
}

async fn create(server: &Server, name: &str) {
    assert_eq!(post(server, MAPS, &json!({"metadata": {"name": name}})).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_watches_are_told_in_few_chunks() {
    const WATCHES: usize = 2000;
    let server = Server::builder().build().await.unwrap();
    let _busy = stop_the_clock();
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        watches.push((watch(&server).await, Vec::new()));
    }
    create(&server, "first").await;
    for (body, _) in &mut watches {
        assert_eq!(told(body).1, ["first"], "what comes first is told at once");
    }
    // A second in which 50 objects come, and a second in which none does.
    let mut chunks = 0;
    for number in 0..100 {
        if number < 50 {
            create(&server, &format!("m{number}")).await;
        }
        for (body, names) in &mut watches {
            let (count, new) = told(body);
            chunks += count;
            names.extend(new);
        }
        tokio::time::advance(Duration::from_millis(20)).await;
    }
    // At most 10,000 chunks a second, besides those that were sent before the interval had grown; there are 100,000 events.
    assert!(chunks < 15_000, "{chunks} chunks");
    let all: Vec<String> = (0..50).map(|number| format!("m{number}")).collect();
    for (number, (_, names)) in watches.iter().enumerate() {
        assert_eq!(*names, all, "watch {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_few_watches_are_told_at_once() {
    let server = Server::builder().build().await.unwrap();
    let _busy = stop_the_clock();
    let mut watches = Vec::new();
    for _ in 0..99 {
        watches.push(watch(&server).await);
    }
    for name in ["a", "b", "c"] {
        create(&server, name).await;
        for body in &mut watches {
            assert_eq!(told(body).1, [name]);
        }
    }
}
