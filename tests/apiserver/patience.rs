//! Clients that send slowly, read slowly, leave, or ask for very much: each costs a bounded amount, and hurts nobody else.

use std::convert::Infallible;
use std::time::Duration;

use admit_apiserver::Server;
use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{answer, delete, get, post, send};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(number: usize) -> Value {
    json!({"metadata": {"name": format!("m{number:04}"), "labels": {"parity": (number % 2).to_string()}}})
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_given_up() {
    let server = Server::builder().build().await.unwrap();
    let first = stream::once(async { Ok::<Bytes, Infallible>(Bytes::from_static(b"{\"metadata\":")) });
    let body = Body::from_stream(first.chain(stream::pending()));
    let request = Request::post(MAPS).header("content-type", "application/json").body(body).unwrap();
    let answer = answer(server.router().oneshot(request).await.unwrap()).await;
    assert_eq!(
        (answer.status, answer.message()),
        (504, "Timeout: request did not complete within the allotted timeout")
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_changes_at_a_time_are_sent_away_and_reads_are_not() {
    const PLACES: usize = 200;
    let server = Server::builder().build().await.unwrap();
    let begin = |number: usize| {
        let name = format!("{{\"metadata\":{{\"name\":\"n{number}\"}}");
        let first = stream::once(async move { Ok::<Bytes, Infallible>(Bytes::from(name)) });
        let body = Body::from_stream(first.chain(stream::pending()));
        let request = Request::post(MAPS).header("content-type", "application/json").body(body).unwrap();
        tokio::spawn(server.router().oneshot(request))
    };
    let slow: Vec<_> = (0..PLACES).map(begin).collect();
    while !get(&server, "/metrics").await.body.as_str().unwrap().contains("changes_under_way 200\n") {
        tokio::task::yield_now().await;
    }
    let refused = post(&server, MAPS, &map(0)).await;
    assert_eq!((refused.status, refused.message()), (429, "Too many requests, please try again later."));
    assert_eq!(get(&server, MAPS).await.status, 200);
    for answered in slow {
        assert_eq!(answered.await.unwrap().unwrap().status(), 504);
    }
    assert_eq!(post(&server, MAPS, &map(0)).await.status, 201);
}

#[tokio::test]
async fn a_body_without_end_is_cut_at_the_limit() {
    let server = Server::builder().build().await.unwrap();
    let chunk = Bytes::from(vec![b' '; 64 << 10]);
    let body = Body::from_stream(stream::repeat_with(move || Ok::<Bytes, Infallible>(chunk.clone())));
    let request = Request::post(MAPS).header("content-type", "application/json").body(body).unwrap();
    let answer = answer(server.router().oneshot(request).await.unwrap()).await;
    assert_eq!((answer.status, answer.message()), (413, "Request entity too large: limit is 3145728"));
}

#[tokio::test]
async fn pages_show_one_state_until_it_is_forgotten() {
    let server = Server::builder().build().await.unwrap();
    for number in 0..50 {
        assert_eq!(post(&server, MAPS, &map(number)).await.status, 201);
    }
    let page = |token: String| {
        let server = server.clone();
        async move {
            get(&server, &format!("{MAPS}?limit=7&labelSelector=parity%3D0&continue={token}")).await.body
        }
    };
    let mut names = Vec::new();
    let mut token = String::new();
    loop {
        let body = page(token).await;
        let items = body["items"].as_array().unwrap();
        names.extend(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
        // What comes and goes between two pages is in none of them.
        delete(&server, &format!("{MAPS}/m0048"), None).await;
        post(
            &server,
            MAPS,
            &json!({"metadata": {"name": format!("n{}", names.len()), "labels": {"parity": "0"}}}),
        )
        .await;
        token = body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    let expected: Vec<String> = (0..50).step_by(2).map(|number| format!("m{number:04}")).collect();
    assert_eq!(names, expected);
    let token = page(String::new()).await["metadata"]["continue"].as_str().unwrap().to_owned();
    post(&server, MAPS, &map(100)).await;
    server.store().compact(server.store().revision());
    let gone = get(&server, &format!("{MAPS}?limit=7&continue={token}")).await;
    assert_eq!((gone.status, &gone.body["reason"]), (410, &json!("Expired")));
}

#[tokio::test(start_paused = true)]
async fn pages_are_shown_for_five_to_ten_minutes() {
    let server = Server::builder().build().await.unwrap();
    let housekeeper = server.clone();
    let housekeeping = tokio::spawn(async move { housekeeper.housekeeping().await });
    for number in 0..10 {
        post(&server, MAPS, &map(number)).await;
    }
    let page = get(&server, &format!("{MAPS}?limit=4")).await.body;
    let token = page["metadata"]["continue"].as_str().unwrap();
    let next = format!("{MAPS}?limit=4&continue={token}");
    post(&server, MAPS, &map(20)).await;
    tokio::time::sleep(Duration::from_secs(301)).await;
    let second = get(&server, &next).await.body;
    assert_eq!(second["metadata"]["remainingItemCount"], 2, "what came later is not in it");
    tokio::time::sleep(Duration::from_secs(300)).await;
    let gone = get(&server, &next).await;
    assert_eq!((gone.status, &gone.body["reason"]), (410, &json!("Expired")));
    let token = gone.body["metadata"]["continue"].as_str().unwrap();
    let anew = get(&server, &format!("{MAPS}?limit=4&continue={token}")).await.body;
    assert_eq!(anew["items"][0]["metadata"]["name"], "m0004");
    assert_eq!(anew["metadata"]["remainingItemCount"], 3, "it goes on in the newest state");
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    let exact = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(get(&server, &exact).await.status, 410);
    let watch = format!("{MAPS}?watch=true&resourceVersion={version}&timeoutSeconds=1");
    let watch = send(&server, "GET", &watch, "", None).await;
    let told = watch.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&told).contains("m0020"), "watches begin there as ever");
    housekeeping.abort();
}

/// The first event of a watch that was opened before `change` and read after it.
async fn late(server: &Server, change: impl Future<Output = ()>) -> Value {
    let watch =
        send(server, "GET", &format!("{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=5"), "", None).await;
    let mut body = watch.into_body();
    change.await;
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        text.extend_from_slice(frame.data_ref().unwrap());
        if text.ends_with(b"\n") {
            break;
        }
    }
    serde_json::from_slice(text.split(|byte| *byte == b'\n').next().unwrap()).unwrap()
}

#[tokio::test]
async fn a_watcher_that_reads_too_late_is_told_so() {
    let server = Server::builder().build().await.unwrap();
    let event = late(&server, async {
        for number in 0..3 {
            post(&server, MAPS, &map(number)).await;
        }
        server.store().compact(server.store().revision());
    })
    .await;
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    let event = late(&server, async {
        post(&server, MAPS, &map(9)).await;
    })
    .await;
    assert_eq!(event["type"], "ADDED", "the next one is served as ever");
}

#[tokio::test]
async fn many_watchers_see_every_change_and_leave_nothing_behind() {
    const WATCHERS: usize = 500;
    let server = Server::builder().build().await.unwrap();
    let path = format!("{MAPS}?watch=true&timeoutSeconds=60");
    let mut bodies = Vec::new();
    for _ in 0..WATCHERS {
        bodies.push(send(&server, "GET", &path, "", None).await.into_body());
    }
    // Half of them leave before anything happens.
    bodies.truncate(WATCHERS / 2);
    assert_eq!(post(&server, MAPS, &map(1)).await.status, 201);
    let seen = bodies.into_iter().map(|mut body| async move {
        let frame = tokio::time::timeout(Duration::from_secs(20), body.frame()).await;
        let bytes = frame.unwrap().unwrap().unwrap().into_data().unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()["object"]["metadata"]["name"] == "m0001"
    });
    assert!(futures::future::join_all(seen).await.into_iter().all(|seen| seen));
}
