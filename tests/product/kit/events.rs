//! Events as somebody reads them who describes an object, against the embedded server, which holds to what the API says of them.

use admit::controllers::kit::events::{Events, Notice};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};

use crate::support::testcluster::{NAMESPACE, TestCluster};

struct Bench {
    _cluster: TestCluster,
    client: Client,
    events: Events,
}

impl Bench {
    async fn new() -> Self {
        let cluster = TestCluster::new().await;
        let client = cluster.admin.clone();
        Self { events: Events::new(client.clone(), "tests"), client, _cluster: cluster }
    }

    async fn object(&self, name: &str) -> ConfigMap {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        let map = ConfigMap { metadata, ..ConfigMap::default() };
        maps.create(&PostParams::default(), &map).await.unwrap()
    }

    async fn tell(&self, object: &ConfigMap, note: &str) {
        let note = note.to_owned();
        self.events.publish(object, Notice { warning: true, reason: "Failed", action: "Try", note }).await;
    }

    fn stored(&self) -> Api<Event> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Notes and how often each was told, as they were told first.
    async fn told(&self) -> Vec<(String, i32)> {
        let mut events = self.stored().list(&ListParams::default()).await.unwrap().items;
        events.sort_by_key(|event| event.event_time.clone());
        let told = |event: Event| (event.note.unwrap(), event.series.map_or(1, |series| series.count));
        events.into_iter().map(told).collect()
    }
}

fn times(note: &str, count: i32) -> (String, i32) {
    (note.to_owned(), count)
}

/// What is shown last is what is so.
#[tokio::test]
async fn another_note_is_another_event_and_the_same_one_counts() {
    let bench = Bench::new().await;
    let mut object = bench.object("a").await;
    for note in ["no rights", "no rights", "no room"] {
        bench.tell(&object, note).await;
    }
    assert_eq!(bench.told().await, [times("no rights", 2), times("no room", 1)]);
    // It is the same object in another version, and another one by the same name.
    object.metadata.resource_version = Some("99".to_owned());
    bench.tell(&object, "no room").await;
    object.metadata.uid = Some("another".to_owned());
    bench.tell(&object, "no room").await;
    assert_eq!(bench.told().await, [times("no rights", 2), times("no room", 2), times("no room", 1)]);
}

#[tokio::test]
async fn notes_that_always_differ_are_told_together_after_ten() {
    let bench = Bench::new().await;
    let object = bench.object("a").await;
    for number in 0..30 {
        bench.tell(&object, &format!("failed at {number}")).await;
    }
    bench.tell(&object, "failed at 4").await;
    let told = bench.told().await;
    assert_eq!(told.len(), 11, "{told:#?}");
    assert_eq!(told[4], times("failed at 4", 2));
    assert_eq!(told[10], times("(combined from similar events): failed at 10", 20));
}

/// Servers keep events for an hour.
#[tokio::test]
async fn an_event_that_is_gone_is_told_anew() {
    let bench = Bench::new().await;
    let object = bench.object("a").await;
    bench.tell(&object, "no rights").await;
    let first = bench.stored().list(&ListParams::default()).await.unwrap().items.remove(0);
    bench.stored().delete(&first.name_any(), &DeleteParams::default()).await.unwrap();
    for _ in 0..2 {
        bench.tell(&object, "no rights").await;
    }
    assert_eq!(bench.told().await, [times("no rights", 2)]);
}

/// As long as names and notes may be, and longer.
#[tokio::test]
async fn long_names_and_notes_are_cut_to_what_the_server_takes() {
    let bench = Bench::new().await;
    let object = bench.object(&"a".repeat(253)).await;
    bench.tell(&object, &"ä".repeat(2000)).await;
    let told = bench.told().await;
    assert_eq!(told.len(), 1);
    assert!(told[0].0.len() <= 1024 && told[0].0.starts_with('ä'), "{told:?}");
    let all = bench.stored().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all[0].regarding.as_ref().unwrap().name, object.metadata.name);
}

/// Two that tell the same at once are one event.
#[tokio::test]
async fn what_is_told_twice_at_once_is_one_event() {
    let bench = Bench::new().await;
    let object = bench.object("a").await;
    let telling = (0..8).map(|_| bench.tell(&object, "no rights"));
    futures::future::join_all(telling).await;
    assert_eq!(bench.told().await, [times("no rights", 8)]);
}
