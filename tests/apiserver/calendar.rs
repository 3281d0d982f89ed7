//! A server at any time: what it writes, what it shows and what it believes go by its own clock, whatever the machine's
//! shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use admit_apiserver::{Clock, Server};
use axum::body::Body;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::corpus;
use crate::harness::{Answer, answer, delete, get, post};

const DAY: i64 = 24 * 60 * 60;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A server whose clock the test moves.
struct Place {
    server: Server,
    seconds: Arc<AtomicI64>,
}

impl Place {
    async fn at(start: Timestamp) -> Self {
        let seconds = Arc::new(AtomicI64::new(start.as_second()));
        let shown = Arc::clone(&seconds);
        let clock = Clock::new(move || Timestamp::from_second(shown.load(Ordering::SeqCst)).unwrap());
        Self { server: Server::builder().clock(clock).build().await.unwrap(), seconds }
    }

    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    fn stamp(&self, later: i64) -> Value {
        let time = Timestamp::from_second(self.seconds.load(Ordering::SeqCst) + later).unwrap();
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
    }

    async fn asked(&self, path: &str, header: (&str, String)) -> Answer {
        let request = Request::builder().uri(path).header(header.0, header.1).body(Body::empty()).unwrap();
        answer(self.server.router().oneshot(request).await.unwrap()).await
    }
}

#[tokio::test]
async fn a_server_lives_at_the_time_of_its_clock() {
    let recorded = corpus::clock().now();
    for days in [-4000, -400, 0, 400, 4000] {
        let place = Place::at(recorded + SignedDuration::from_secs(days * DAY)).await;
        times_are_of_the_clock(&place).await;
        ages_are_counted_by_the_clock(&place).await;
        tokens_live_by_the_clock(&place).await;
        deletions_take_their_time_by_the_clock(&place).await;
    }
}

async fn times_are_of_the_clock(place: &Place) {
    let created =
        post(&place.server, CONFIG_MAPS, &json!({"metadata": {"name": "a"}, "data": {"a": "b"}})).await;
    assert_eq!(created.body["metadata"]["creationTimestamp"], place.stamp(0));
    assert_eq!(created.body["metadata"]["managedFields"][0]["time"], place.stamp(0));
    let namespace = get(&place.server, "/api/v1/namespaces/default").await;
    assert_eq!(namespace.body["metadata"]["creationTimestamp"], place.stamp(0));
    let service = get(&place.server, "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps").await;
    assert_eq!(service.body["status"]["conditions"][0]["lastTransitionTime"], place.stamp(0));
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = post(&place.server, reviews, &json!({})).await;
    assert_eq!(review.body["metadata"]["creationTimestamp"], place.stamp(0));
}

async fn ages_are_counted_by_the_clock(place: &Place) {
    place.pass(3 * DAY);
    let table = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned());
    let shown = place.asked(&format!("{CONFIG_MAPS}/a"), table.clone()).await;
    assert_eq!(shown.body["rows"][0]["cells"], json!(["a", 1, "3d"]));
    let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion=0&timeoutSeconds=1");
    let streamed = place.asked(&watch, table).await;
    // One event, so that the body is one document.
    assert_eq!(streamed.body["object"]["rows"][0]["cells"], json!(["a", 1, "3d"]));
}

async fn tokens_live_by_the_clock(place: &Place) {
    assert_eq!(post(&place.server, ACCOUNTS, &json!({"metadata": {"name": "joe"}})).await.status, 201);
    let asked = json!({"spec": {"expirationSeconds": 600}});
    let issued = post(&place.server, &format!("{ACCOUNTS}/joe/token"), &asked).await.body;
    assert_eq!(issued["status"]["expirationTimestamp"], place.stamp(600));
    let bearer = ("authorization", format!("Bearer {}", issued["status"]["token"].as_str().unwrap()));
    // Known, and allowed nothing.
    assert_eq!(place.asked(CONFIG_MAPS, bearer.clone()).await.status, 403);
    place.pass(599);
    assert_eq!(place.asked(CONFIG_MAPS, bearer.clone()).await.status, 403);
    place.pass(1);
    assert_eq!(place.asked(CONFIG_MAPS, bearer).await.status, 401);
}

async fn deletions_take_their_time_by_the_clock(place: &Place) {
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "registry.example/x:1"}]}});
    assert_eq!(post(&place.server, PODS, &pod).await.status, 201);
    let going = delete(&place.server, &format!("{PODS}/p"), Some(&json!({"gracePeriodSeconds": 50}))).await;
    assert_eq!(going.body["metadata"]["deletionTimestamp"], place.stamp(50));
    let namespaces = "/api/v1/namespaces";
    assert_eq!(post(&place.server, namespaces, &json!({"metadata": {"name": "x"}})).await.status, 201);
    let going = delete(&place.server, &format!("{namespaces}/x"), None).await;
    assert_eq!(going.body["metadata"]["deletionTimestamp"], place.stamp(0));
}
