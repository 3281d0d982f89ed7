//! Clean-up before an object goes: done once and to the end, told where it cannot be done, given up in time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use admit::controllers::kit::controller::{Failure, Next};
use admit::controllers::kit::events::Events;
use admit::controllers::kit::finalizer::{Cleanup, Finalizer, FinalizerError};
use admit::controllers::kit::retry::Remedy;
use admit_apiserver::Server;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

const NAME: &str = "example.dev/cleanup";

/// What comes of each attempt to clean up, and what was said and done.
#[derive(Default)]
struct Worker {
    attempts: Mutex<VecDeque<Result<(), Away>>>,
    story: Mutex<Vec<String>>,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the database is away")]
struct Away;

impl Failure for Away {
    fn remedy(&self) -> Remedy {
        Remedy::Change
    }
}

impl Cleanup for Worker {
    type Object = ConfigMap;
    type Error = Away;

    async fn keep(&self, _: &ConfigMap) -> Result<Next, Away> {
        self.story.lock().unwrap().push("kept".to_owned());
        Ok(Next::After(Duration::from_mins(5)))
    }

    async fn clean(&self, _: &ConfigMap) -> Result<(), Away> {
        self.story.lock().unwrap().push("cleaned".to_owned());
        self.attempts.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn tell(&self, _: &ConfigMap, left: &str) {
        self.story.lock().unwrap().push(left.to_owned());
    }
}

struct Bench {
    maps: Api<ConfigMap>,
    client: Client,
    worker: Worker,
    events: Events,
    finalizer: Finalizer,
}

impl Bench {
    async fn new(patience: Option<Duration>, attempts: &[Result<(), Away>]) -> Self {
        let server = Server::builder().build().await.unwrap();
        let client = Client::new(server.router(), "default");
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        let worker = Worker { attempts: Mutex::new(attempts.iter().copied().collect()), ..Worker::default() };
        let events = Events::new(client.clone(), "test");
        Self { maps, client, worker, events, finalizer: Finalizer { name: NAME, patience } }
    }

    async fn look(&self, now: Timestamp) -> Result<Next, FinalizerError<Away>> {
        let map = self.maps.get("a").await.unwrap();
        self.finalizer.look(&self.maps, &map, &self.worker, &self.events, now).await
    }

    async fn finalizers(&self) -> Vec<String> {
        self.maps.get("a").await.unwrap().metadata.finalizers.unwrap_or_default()
    }

    fn story(&self) -> Vec<String> {
        self.worker.story.lock().unwrap().clone()
    }

    async fn delete(&self) {
        self.maps.delete("a", &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn the_finalizer_comes_before_any_work_and_goes_after_the_clean_up() {
    let bench = Bench::new(None, &[]).await;
    let now = Timestamp::now();
    assert_eq!(bench.look(now).await.unwrap(), Next::Settled);
    assert_eq!(
        (bench.finalizers().await, bench.story().len()),
        (vec![NAME.to_owned()], 0),
        "nothing is made yet"
    );
    assert_eq!(bench.look(now).await.unwrap(), Next::After(Duration::from_mins(5)));
    bench.delete().await;
    assert_eq!(bench.look(now).await.unwrap(), Next::Settled);
    assert!(bench.maps.get_opt("a").await.unwrap().is_none());
    assert_eq!(bench.story(), ["kept", "cleaned"]);
}

#[tokio::test]
async fn what_cannot_be_cleaned_up_is_told_and_tried_again() {
    let bench = Bench::new(None, &[Err(Away), Err(Away), Ok(())]).await;
    let later = Timestamp::now() + Duration::from_hours(1_000);
    bench.look(later).await.unwrap();
    bench.delete().await;
    for _ in 0..2 {
        let error = bench.look(later).await.unwrap_err();
        assert_eq!(error.to_string(), "not cleaned up yet: the database is away");
        assert_eq!(error.remedy(), Remedy::Wait, "an object that goes does not change");
        assert_eq!(bench.finalizers().await, [NAME]);
    }
    bench.look(later).await.unwrap();
    assert!(bench.maps.get_opt("a").await.unwrap().is_none());
    let told = "not cleaned up yet: the database is away";
    assert_eq!(bench.story(), ["cleaned", told, "cleaned", told, "cleaned"]);
}

#[tokio::test]
async fn after_its_patience_an_object_is_let_go_and_an_event_says_what_stays() {
    let bench = Bench::new(Some(Duration::from_mins(10)), &[Err(Away), Err(Away)]).await;
    let now = Timestamp::now();
    bench.look(now).await.unwrap();
    bench.delete().await;
    assert!(bench.look(now + Duration::from_mins(9)).await.is_err());
    bench.look(now + Duration::from_mins(11)).await.unwrap();
    assert!(bench.maps.get_opt("a").await.unwrap().is_none());
    let events: Api<Event> = Api::default_namespaced(bench.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let told = events.iter().find(|event| event.reason.as_deref() == Some("CleanupAbandoned")).unwrap();
    let note = told.note.as_deref().unwrap();
    assert!(
        note.ends_with("without having been cleaned up: not cleaned up yet: the database is away"),
        "{note}"
    );
}
