//! Watches that are cut again and again while history is compacted: what a controller has seen in the end is what is there, and
//! nothing is looked at that did not change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};

use admit::controllers::kit::controller::{Controller, Failure, Next, Reconcile, Surroundings};
use admit::controllers::kit::events::Events;
use admit::controllers::kit::manager::Term;
use admit::controllers::kit::retry::Remedy;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::soak::{Random, percent, scaled};
use crate::support::cluster::PATIENCE;
use crate::support::reliability::Row;
use crate::support::testcluster::TestCluster;

/// Between two cuts, and between two compactions, in changes.
const CUT: usize = 20;
const COMPACT: usize = 200;

/// Remembers what it was shown: versions by name, and how often.
#[derive(Default)]
struct Looker(Mutex<BTreeMap<String, (String, usize)>>);

#[derive(Debug)]
struct Never(Infallible);

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl std::error::Error for Never {}

impl Failure for Never {
    fn remedy(&self) -> Remedy {
        match self.0 {}
    }
}

impl Reconcile for Looker {
    type Object = ConfigMap;
    type Error = Never;

    async fn reconcile(&self, map: &ConfigMap) -> Result<Next, Never> {
        let mut seen = self.0.lock().unwrap();
        let entry = seen.entry(map.name_any()).or_default();
        *entry = (map.resource_version().unwrap_or_default(), entry.1 + 1);
        Ok(Next::Settled)
    }
}

/// So many objects and changes; how many looks there were.
async fn changes(objects: usize, changes: usize) -> usize {
    let cluster = TestCluster::new().await;
    let process = cluster.process_of_admin();
    let maps = |client: &Client| Api::<ConfigMap>::namespaced(client.clone(), "default");
    let (admin, mut random) = (maps(&cluster.admin), Random(33));
    let mut truth = BTreeMap::new();
    for number in 0..objects {
        let map = serde_json::from_value(json!({"metadata": {"name": format!("m{number}")}})).unwrap();
        let made = admin.create(&PostParams::default(), &map).await.unwrap();
        truth.insert(made.name_any(), made.resource_version().unwrap());
    }
    let looker = Arc::new(Looker::default());
    let (own, term) = (Arc::clone(&looker), Term::alone(CancellationToken::new()));
    let around = Surroundings::of(&term, Events::new(process.client.clone(), "looker"));
    let watched = Api::namespaced(process.client.clone(), "default");
    let controller = Controller::new("looker", watched, Default::default());
    let work = controller.run(own, around, term.stop.clone());
    let over = async {
        for change in 0..changes {
            let name = format!("m{}", random.below(objects));
            let patch = Patch::Merge(json!({"data": {"change": change.to_string()}}));
            let changed = admin.patch(&name, &PatchParams::default(), &patch).await.unwrap();
            truth.insert(name, changed.resource_version().unwrap());
            if change % COMPACT == COMPACT - 1 {
                cluster.compact();
            }
            if change % CUT == CUT - 1 {
                process.wire.cut_watches();
            }
        }
        let same = || {
            let seen = looker.0.lock().unwrap();
            truth.iter().all(|(name, version)| seen.get(name).is_some_and(|(seen, _)| seen == version))
        };
        let caught_up = async {
            while !same() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE * 4, caught_up).await.unwrap_or_else(|_| panic!("a change was missed"));
        looker.0.lock().unwrap().values().map(|(_, looks)| looks).sum()
    };
    let looks: usize = process.until_death(work, over).await.unwrap();
    assert!(looks <= objects + changes, "{looks} looks at {objects} objects with {changes} changes");
    looks
}

#[tokio::test(flavor = "multi_thread")]
async fn row_33_watches_that_are_cut_while_history_is_compacted_miss_nothing() {
    let mut row = Row::short(33, "300 objects changed, watches cut and history compacted");
    let looks = changes(300, 1_000).await;
    row.measured(
        json!({"objects": 300, "changes": 1_000, "cuts": 50, "compactions": 5, "looks": looks, "missed": 0}),
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_33_at_full_length() {
    let mut row = Row::full(33, "objects changed, watches cut and history compacted", percent());
    let (objects, count) = (scaled(10_000), scaled(100_000));
    let looks = changes(objects, count).await;
    row.measured(
        json!({"objects": objects, "changes": count, "cuts": count / CUT, "compactions": count / COMPACT,
        "looks": looks, "missed": 0}),
    );
}
