//! Row 35 for primers: the leader of two processes is stopped in the middle of priming and goes on later, as one that knows nothing of
//! the time between. Each ClusterOperator is made once and primed once all the same, it is told once, and what its operator reports
//! meanwhile stays.

use std::collections::BTreeSet;
use std::time::Duration;

use admit::controllers::clusteroperator::crd::ClusterOperator;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::bench::{available, manifest};
use crate::running::Workplace;
use crate::soak::{percent, scaled};
use crate::support::leaders::{PATIENCE, Pair, Seen, Stop, has_clocks, lengths};
use crate::support::reliability::Row;

/// In no payload: a change of it makes the primer look, as any event does.
const BELL: &str = "bell";

/// When the leader is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// It has been told to look at the payload.
    Announced,
    /// The object is there; its status may be on the way.
    Created,
    /// As before, and the operator reports while the leader stands still.
    Reported,
    Primed,
    /// It was primed, and is deleted.
    Deleted,
}

const STEPS: [Step; 5] = [Step::Created, Step::Announced, Step::Reported, Step::Deleted, Step::Primed];

struct Place {
    pair: Pair,
    operators: Api<ClusterOperator>,
    seen: Seen,
}

impl Place {
    async fn new(apart: Option<&str>) -> Self {
        let workplace = Workplace::new();
        std::fs::create_dir(workplace.path().join("payload")).unwrap();
        let pair = Pair::new(workplace, &["--controllers=observability"], apart, |command| {
            command.args(["--controllers=clusteroperator", "--payload=payload"]);
        })
        .await;
        let operators: Api<ClusterOperator> = Api::all(pair.client.clone());
        let bell = json!({"metadata": {"name": BELL}, "spec": {}});
        operators.create(&PostParams::default(), &serde_json::from_value(bell).unwrap()).await.unwrap();
        let seen = Seen::of(operators.clone());
        Self { pair, operators, seen }
    }

    async fn until(&self, name: &str, so: impl Fn(&ClusterOperator) -> bool + Send) {
        let wanted = |object: Option<&ClusterOperator>| object.is_some_and(&so);
        let waiting = tokio::time::timeout(PATIENCE, await_condition(self.operators.clone(), name, wanted));
        if waiting.await.is_err() {
            panic!("{name}: {:#?}\n{}", self.operators.get_opt(name).await, self.pair.logs());
        }
    }

    async fn report(&self, name: &str) {
        let patch = Patch::Merge(json!({"status": available()}));
        self.operators.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// One stop of the leader, at `step` of a ClusterOperator of its own; whether there was another leader then.
    async fn round(&self, name: &str, step: Step, stop: Stop) -> bool {
        let leader = self.pair.leader(None).await;
        let file = self.pair.workplace.path().join(format!("payload/{name}.json"));
        std::fs::write(file, manifest(name).to_string()).unwrap();
        let rung = Patch::Merge(json!({"metadata": {"labels": {"for": name}}}));
        self.operators.patch(BELL, &PatchParams::default(), &rung).await.unwrap();
        match step {
            Step::Announced => {}
            Step::Created | Step::Reported => self.until(name, |_| true).await,
            Step::Primed | Step::Deleted => self.until(name, |it| rank(&json!(it)) == 1).await,
        }
        if step == Step::Deleted {
            self.operators.delete(name, &DeleteParams::default()).await.unwrap();
        }
        let meanwhile = async {
            if step == Step::Reported {
                self.report(name).await;
            }
        };
        let (succeeded, ()) = tokio::join!(self.pair.stop(leader, stop, || {}), meanwhile);
        let wanted = if step == Step::Reported { 2 } else { 1 };
        self.until(name, |it| rank(&json!(it)) == wanted).await;
        succeeded
    }

    /// How often it was told that `name` was primed.
    async fn told(&self, name: &str) -> i32 {
        let events: Api<Event> = Api::namespaced(self.pair.client.clone(), "default");
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let is_of = |event: &&Event| {
            let alone = event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(name);
            let listed =
                event.note.as_deref().and_then(|note| note.rsplit_once(": ")).map(|(_, names)| names);
            event.reason.as_deref() == Some("ClusterOperatorPrimed")
                && (alone || listed.is_some_and(|names| names.split(", ").any(|it| it == name)))
        };
        events.iter().filter(is_of).map(|event| event.series.as_ref().map_or(1, |it| it.count)).sum()
    }

    /// What must be true of all that was seen.
    async fn judge(&self, rounds: &[(String, Step)]) {
        let all = self.seen.all();
        for (name, step) in rounds {
            let seen = &all[name];
            let lives = 1 + usize::from(*step == Step::Deleted);
            let uids: BTreeSet<_> = seen.iter().map(|it| it["metadata"]["uid"].to_string()).collect();
            assert_eq!(uids.len(), lives, "{name} was made again\n{}", self.pair.logs());
            for pair in seen.windows(2) {
                let [old, new] = pair else { continue };
                let same_life = old["metadata"]["uid"] == new["metadata"]["uid"];
                let changed = old["status"] != new["status"];
                assert!(
                    !same_life || !changed || rank(old) < rank(new),
                    "{name} was primed again: {old:#} {new:#}\n{}",
                    self.pair.logs()
                );
            }
            let told = self.told(name).await;
            let most = i32::try_from(lives).unwrap();
            assert!(told <= most, "{name} was told {told} times, {step:?}\n{}", self.pair.logs());
        }
    }
}

/// Bare, primed, reported.
fn rank(object: &Value) -> u8 {
    match object["status"]["conditions"].as_array().map(Vec::as_slice) {
        None | Some([]) => 0,
        Some([first, ..]) if first["reason"] == "Primed" => 1,
        Some(_) => 2,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_35_a_leader_that_stands_still_primes_nothing_twice() {
    let mut row = Row::short(35, "leaders stopped in the middle of priming");
    let place = Place::new(None).await;
    let (mut rounds, mut successions) = (Vec::new(), 0);
    let moment = Duration::from_millis(200);
    for (number, (step, stop)) in [
        (Step::Announced, Stop::For(moment)),
        (Step::Reported, Stop::For(moment)),
        (Step::Created, Stop::UntilSucceeded),
        // Who was stopped hears of it, and whoever leads now goes on.
        (Step::Deleted, Stop::For(Duration::ZERO)),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("o{number}");
        successions += usize::from(place.round(&name, step, stop).await);
        rounds.push((name, step));
    }
    place.judge(&rounds).await;
    row.measured(json!({"stops": rounds.len(), "successions": successions, "primedTwice": 0}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "hours: scripts/soak runs it"]
async fn row_35_at_full_length() {
    let mut row = Row::full(35, "leaders of primers stopped for 0 to 60 s", percent());
    let (count, clocks) = (scaled(60), has_clocks());
    let place = Place::new(Some("-30s").filter(|_| clocks)).await;
    let (mut rounds, mut successions) = (Vec::new(), 0);
    for (number, length) in lengths(count).into_iter().enumerate() {
        let (name, step) = (format!("o{number}"), STEPS[number % STEPS.len()]);
        successions += usize::from(place.round(&name, step, Stop::For(length)).await);
        rounds.push((name, step));
    }
    place.judge(&rounds).await;
    row.measured(json!({"stops": count, "successions": successions, "primedTwice": 0,
        "clocksApart": if clocks { "30 s" } else { "no faketime: none" }}));
}
