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

/// The names of the objects in what comes without waiting, asked for until nothing comes, as HTTP does.
fn told(body: &mut Body) -> Vec<String> {
    let mut names = Vec::new();
    // Without a share in the turns of tasks, of which this one takes no end.
    while let Some(frame) = tokio::task::unconstrained(body.frame()).now_or_never() {
        let text = frame.unwrap().unwrap().into_data().unwrap();
        let events = serde_json::Deserializer::from_slice(&text).into_iter::<serde_json::Value>();
        names.extend(
            events.map(|event| event.unwrap()["object"]["metadata"]["name"].as_str().unwrap().to_owned()),
        );
    }
    names
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
    let server = Server::builder().build().await.unwrap();
    let _busy = stop_the_clock();
    let mut watches = Vec::new();
    for _ in 0..2000 {
        watches.push(watch(&server).await);
    }
    create(&server, "first").await;
    for body in &mut watches {
        assert_eq!(told(body), ["first"], "what comes first is told at once");
    }
    // 2,000 watches send a chunk each in 20 ms.
    for name in ["a", "b", "c"] {
        create(&server, name).await;
        for body in &mut watches {
            assert!(told(body).is_empty(), "{name} is told with what follows");
        }
        tokio::time::advance(Duration::from_millis(6)).await;
    }
    tokio::time::advance(Duration::from_millis(3)).await;
    for body in &mut watches {
        assert_eq!(told(body), ["a", "b", "c"]);
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
            assert_eq!(told(body), [name]);
        }
    }
}
