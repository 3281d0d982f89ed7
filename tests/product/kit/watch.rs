//! Watches of what is not there: asked for less and less often, complained of once, and followed as soon as it comes.

use std::time::Duration;

use admit::controllers::datagather::{Settings, run};
use admit::controllers::policies::ClusterCache;
use http::Method;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::cluster::{DATAGATHERS, FakeCluster};
use crate::support::logs;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WATCHED_FOR: Duration = Duration::from_mins(10);
/// With waits of up to 20 s, half of which is left to chance: a request every 10 s at most, and some while the waits grow.
const MOST: usize = 70;

fn warnings(logged: &str) -> Vec<&str> {
    logged.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_controller_without_its_definition_asks_ever_less_often_and_warns_once() {
    let cluster = FakeCluster::new(&[]).without(DATAGATHERS);
    let (logs, dir) = (logs::capture(), tempfile::tempdir().unwrap());
    let shutdown = CancellationToken::new();
    let controller = tokio::spawn(run(cluster.client(), Settings::new(dir.path()), shutdown.clone()));
    sleep(WATCHED_FOR).await;
    let asked = cluster.count(&Method::GET, DATAGATHERS);
    assert!((20..MOST).contains(&asked), "{asked} lists in {WATCHED_FOR:?}");
    let logged = logs.take();
    assert_eq!(warnings(&logged).len(), 1, "{:#?}", warnings(&logged));
    // It is followed as soon as it comes.
    cluster.define(DATAGATHERS);
    cluster.until_asked(&Method::GET, DATAGATHERS, asked + 2).await;
    shutdown.cancel();
    controller.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_policies_look_at_is_asked_for_ever_less_often_and_warned_of_once() {
    let cluster = FakeCluster::new(&[]);
    let logs = logs::capture();
    let shutdown = CancellationToken::new();
    let (cache, _driver) = ClusterCache::new(cluster.client());
    let following = tokio::spawn(cache.follow_definitions(shutdown.clone()));
    sleep(WATCHED_FOR).await;
    let asked = cluster.count(&Method::GET, DEFINITIONS);
    assert!((20..MOST).contains(&asked), "{asked} lists in {WATCHED_FOR:?}");
    let logged = logs.take();
    assert_eq!(warnings(&logged).len(), 1, "{:#?}", warnings(&logged));
    shutdown.cancel();
    following.await.unwrap();
}
