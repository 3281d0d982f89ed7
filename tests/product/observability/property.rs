//! Five writers at random: two collectors, the endpoint operator, the keeper, and one that overwrites clumsily. Whatever they do, and
//! in whatever order requests come: no edge is ever stored that the table does not allow, the aggregate ends right, the hub equals the
//! spoke, and the keeper writes no more often than something changed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use admit::controllers::observability::aggregate::aggregated;
use admit::controllers::observability::crd::ObservabilityAddon;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use super::place::{NAME, Place, with_hub};
use super::{HUB, Running, SPOKE, addon};
use crate::soak::{Random, percent, scaled};
use crate::support::reliability::Row;

/// What was stored on the spoke, version after version.
#[derive(Default)]
struct History {
    edges: Vec<String>,
    versions: usize,
    last: Option<ObservabilityAddon>,
}

impl History {
    fn hear(&mut self, object: ObservabilityAddon) {
        self.versions += 1;
        for new in object.conditions().iter().filter(|condition| SEED.is_component(condition)) {
            let old = self.last.iter().flat_map(|last| last.conditions()).find(|old| old.type_ == new.type_);
            let old = old.map(|old| old.reason.as_str());
            let allowed = SEED.reason(&new.reason).is_some_and(|reason| SEED.allows(old, reason));
            if !allowed {
                self.edges.push(format!("{}: {old:?} to {}", new.type_, new.reason));
            }
        }
        let lost = |last: &ObservabilityAddon| {
            let types = last.conditions().iter().filter(|condition| SEED.is_component(condition));
            types.filter(|old| !object.conditions().iter().any(|new| new.type_ == old.type_)).count()
        };
        if self.last.as_ref().is_some_and(|last| lost(last) > 0) {
            self.edges.push("a component went".to_owned());
        }
        self.last = Some(object);
    }
}

const MEANINGS: [Meaning; 6] = [
    Meaning::UpdateSuccessful,
    Meaning::UpdateFailure,
    Meaning::ForwardSuccessful,
    Meaning::ForwardFailure,
    Meaning::Disabled,
    Meaning::NotSupported,
];

/// One writer's step; whether something was stored.
async fn step(random: &mut Random, client: &Client, held: &mut Option<ObservabilityAddon>) -> bool {
    let message = format!("{}", random.below(3));
    let report = async |component, meaning| {
        let report = Report::of(&SEED, component, meaning, message).unwrap();
        // A conflict that lasts is an answer too: who reports looks again at its next turn.
        Reporter::new(client.clone(), &SEED).report(&report).await.is_ok_and(|it| it == Outcome::Written)
    };
    let components = [SEED.collector, SEED.workloads_collector];
    match random.below(5) {
        writer @ 0..=1 => report(components[writer], MEANINGS[2 + random.below(2)]).await,
        2..=3 => report(components[random.below(2)], MEANINGS[random.below(6)]).await,
        _ => clumsy(random, client, held).await,
    }
}

/// Writes back what it read long ago, or what it makes up, without asking the table.
async fn clumsy(random: &mut Random, client: &Client, held: &mut Option<ObservabilityAddon>) -> bool {
    let api: Api<ObservabilityAddon> = Api::namespaced(client.clone(), SPOKE);
    let there = api.get(NAME).await.unwrap();
    let Some(mut written) = held.take() else {
        *held = Some(there);
        return false;
    };
    written.metadata.resource_version.clone_from(&there.metadata.resource_version);
    let status = written.status.get_or_insert_default();
    match random.below(4) {
        0 => status.conditions.retain(|condition| !SEED.is_standard(condition)),
        1 => drop(status.conditions.pop()),
        2 => {
            let reason = SEED.reasons[random.below(SEED.reasons.len())].name;
            status.conditions.iter_mut().take(1).for_each(|it| reason.clone_into(&mut it.reason));
        }
        _ => {}
    }
    let answered = api.replace_status(NAME, &PostParams::default(), &written).await;
    // What says what is there already is taken, and stores nothing.
    answered.is_ok_and(|it| it.metadata.resource_version != there.metadata.resource_version)
}

async fn follow(place: &Place, history: Arc<Mutex<History>>) {
    let mut events = Box::pin(watcher(place.addons(SPOKE), watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event.unwrap() {
            Event::InitApply(object) | Event::Apply(object) => history.lock().unwrap().hear(object),
            Event::Init | Event::InitDone => {}
            Event::Delete(_) => panic!("nobody deletes it"),
        }
    }
}

fn revision(object: &ObservabilityAddon) -> u64 {
    object.metadata.resource_version.as_ref().unwrap().parse().unwrap()
}

async fn play(seed: u64, steps: usize) {
    let place = Place::new().await;
    for namespace in [SPOKE, HUB] {
        place.create(&addon(namespace)).await;
    }
    let history = Arc::new(Mutex::new(History::default()));
    let stored = AtomicUsize::new(0);
    let account = place.account();
    account.wire.shuffle(seed);
    let mut followed = Box::pin(follow(&place, Arc::clone(&history)));
    // Its first version is heard before anybody writes a second.
    let heard = async {
        while history.lock().unwrap().last.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = heard => {}
        () = &mut followed => panic!("the watch has ended"),
    }
    let keeper = Running::start(account.client.clone(), with_hub());
    let writers: Vec<_> = (0..4).map(|_| place.account()).collect();
    let played = async {
        let playing = writers.iter().zip(1..).map(|(process, number)| {
            process.wire.shuffle(seed.wrapping_mul(31) + number);
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number) | 1);
            let stored = &stored;
            async move {
                let mut held = None;
                for _ in 0..steps / 4 {
                    if step(&mut random, &process.client, &mut held).await {
                        stored.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        futures::future::join_all(playing).await;
        let right =
            |it: &ObservabilityAddon| aggregated(it.conditions(), &SEED, Timestamp::UNIX_EPOCH).is_none();
        let spoke = place.until(SPOKE, right).await;
        place.until(HUB, |it| it.conditions() == spoke.conditions()).await;
        // Told of by the watch as well.
        while history.lock().unwrap().last.as_ref().map(revision) < Some(revision(&spoke)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = played => {}
        () = followed => panic!("the watch has ended"),
    }
    keeper.end().await;
    let history = history.lock().unwrap();
    assert_eq!(history.edges, Vec::<String>::new(), "seed {seed}");
    assert_eq!(account.wire.denied(), Vec::<String>::new(), "seed {seed}: the keeper was denied a write");
    let changes = stored.load(Ordering::Relaxed);
    // The first version is that of its creation.
    let own = history.versions - 1 - changes;
    assert!(own <= changes, "seed {seed}: {own} writes for {changes} changes");
    let is_copy = |name: &&String| name.contains(HUB) && name.ends_with("/status");
    let shown = account.wire.writes().iter().filter(is_copy).count();
    assert!(shown <= changes + own, "seed {seed}: {shown} copies of {} versions", changes + own);
    assert!(changes > steps / 20, "seed {seed}: only {changes} of {steps} steps changed anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn ob_09_five_writers_never_store_an_illegal_edge() {
    for seed in 1..=2 {
        play(seed, 400).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "half an hour: scripts/soak runs it"]
async fn row_47_five_writers_at_full_length() {
    let mut row = Row::full(47, "five writers of an add-on, at random", percent());
    let (seeds, steps) = (scaled(50), 10_000);
    for seed in 1..=u64::try_from(seeds).unwrap() {
        play(seed, steps).await;
    }
    row.measured(json!({"seeds": seeds, "steps": steps, "illegalEdges": 0, "writesDenied": 0}));
}
