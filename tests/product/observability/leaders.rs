//! Row 35 for add-ons: the leader of two processes is stopped in the middle of what it does for one, and goes on later, as one that knows
//! nothing of the time between. Each rollout is told once all the same; an aggregate that is right stays right until a component says
//! something else; what the hub shows never goes back.

use std::time::Duration;

use admit::controllers::observability::aggregate::aggregated;
use admit::controllers::observability::crd::{ObservabilityAddon, TOLD};
use admit::controllers::observability::report::{Report, Reporter};
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::place::NAME;
use super::{HUB, SPOKE, addon};
use crate::running::Workplace;
use crate::soak::{percent, scaled};
use crate::support::leaders::{PATIENCE, Pair, Seen, Stop, has_clocks, lengths};
use crate::support::reliability::Row;
use crate::support::shipped::create;

const COLLECTOR: &str = "metrics-collector-deployment";

/// When the leader is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// The collector's Deployment is another one.
    RolledOut,
    /// That was told and noted; the collector reports while the leader stands still.
    Told,
    /// The collector has reported.
    Reported,
    /// The hub shows that.
    Shown,
    /// The hub asks for something else.
    Asked,
}

const STEPS: [Step; 5] = [Step::RolledOut, Step::Reported, Step::Asked, Step::Told, Step::Shown];

struct Place {
    pair: Pair,
    spoke: Seen,
    hub: Seen,
}

impl Place {
    async fn new(apart: Option<&str>) -> Self {
        let workplace = Workplace::new();
        // No policy helps them: what is not done twice is not tried twice.
        std::fs::create_dir(workplace.path().join("none")).unwrap();
        let server = ["--controllers=mustgather", "--policies=none"];
        let pair = Pair::new(workplace, &server, apart, |command| {
            command.args(["--controllers=observability", "--hub-namespace", HUB]);
        })
        .await;
        for name in [SPOKE, HUB] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            create(&pair.client, &namespace).await;
        }
        let seen =
            |namespace| Seen::of(Api::<ObservabilityAddon>::namespaced(pair.client.clone(), namespace));
        let (spoke, hub) = (seen(SPOKE), seen(HUB));
        create(&pair.client, &addon(HUB)).await;
        Self { pair, spoke, hub }
    }

    fn addons(&self, namespace: &str) -> Api<ObservabilityAddon> {
        Api::namespaced(self.pair.client.clone(), namespace)
    }

    async fn until(&self, namespace: &str, so: impl Fn(&ObservabilityAddon) -> bool + Send) {
        let (api, wanted) =
            (self.addons(namespace), |object: Option<&ObservabilityAddon>| object.is_some_and(&so));
        let waiting = tokio::time::timeout(PATIENCE, await_condition(api.clone(), NAME, wanted));
        if waiting.await.is_err() {
            panic!("{namespace}: {:#?}\n{}", api.get_opt(NAME).await, self.pair.logs());
        }
    }

    async fn roll_out(&self, image: &str) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
        let deployments: Api<DynamicObject> =
            Api::namespaced_with(self.pair.client.clone(), SPOKE, &resource);
        let labels = json!({"app": COLLECTOR});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": COLLECTOR, "namespace": SPOKE},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
            },
        });
        let (as_tests, wanted) = (PatchParams::apply("tests").force(), Patch::Apply(deployment));
        deployments.patch(COLLECTOR, &as_tests, &wanted).await.unwrap();
    }

    /// The collector fails, and says so in words that it never said before.
    async fn report(&self, message: &str) {
        let report = Report::of(&SEED, SEED.collector, Meaning::ForwardFailure, message).unwrap();
        Reporter::new(self.pair.client.clone(), &SEED).report(&report).await.unwrap();
    }

    /// One stop of the leader, at `step` of a rollout, of what the collector says then and of what the hub asks for then; whether there
    /// was another leader then.
    async fn round(&self, number: u32, step: Step, stop: Stop) -> bool {
        let leader = self.pair.leader(None).await;
        self.until(SPOKE, |_| true).await;
        let (name, interval) = (format!("round {number}"), 15 + number);
        let mark = |it: &ObservabilityAddon| it.annotations().get(TOLD[0]).cloned();
        let before = mark(&self.addons(SPOKE).get(NAME).await.unwrap());
        let mut succeeded = false;
        self.roll_out(&format!("image:{number}")).await;
        if step == Step::RolledOut {
            succeeded = self.pair.stop(leader, stop, || {}).await;
        }
        // A collector that runs anew takes longer to report than it takes to note that.
        self.until(SPOKE, |it| says(it, "UpdateSuccesful") && mark(it) != before).await;
        if step == Step::Told {
            let (other, ()) = tokio::join!(self.pair.stop(leader, stop, || {}), self.report(&name));
            succeeded = other;
        } else {
            self.report(&name).await;
        }
        if step == Step::Reported {
            succeeded = self.pair.stop(leader, stop, || {}).await;
        }
        let shown = |it: &ObservabilityAddon| {
            let degraded = it.conditions().iter().find(|it| it.type_ == "Degraded");
            degraded.is_some_and(|it| it.status == "True" && it.message.ends_with(&name))
        };
        self.until(HUB, shown).await;
        if step == Step::Shown {
            succeeded = self.pair.stop(leader, stop, || {}).await;
        }
        let asked = Patch::Merge(json!({"spec": {"interval": interval}}));
        self.addons(HUB).patch(NAME, &PatchParams::default(), &asked).await.unwrap();
        if step == Step::Asked {
            succeeded = self.pair.stop(leader, stop, || {}).await;
        }
        self.until(SPOKE, |it| it.spec.others.get("interval") == Some(&json!(interval))).await;
        succeeded
    }

    /// What must be true of all that was seen.
    async fn judge(&self, rounds: usize) {
        self.pair.leader(None).await;
        let [spoke, hub] = [&self.spoke, &self.hub].map(|seen| -> Vec<ObservabilityAddon> {
            let all = seen.all().remove(NAME).unwrap_or_default();
            all.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect()
        });
        let mut told = 0;
        for pair in spoke.windows(2) {
            let [old, new] = pair else { continue };
            let (before, after) = (component(old), component(new));
            let reason = after.and_then(|it| SEED.reason(&it.reason));
            let allowed = reason.is_none_or(|it| SEED.allows(before.map(|it| it.reason.as_str()), it));
            assert!(allowed, "{before:?} to {after:?}\n{}", self.pair.logs());
            told += usize::from(before != after && says(new, "UpdateSuccesful"));
            let spoilt = before == after && is_right(old) && !is_right(new);
            assert!(!spoilt, "an aggregate went back: {old:#?} {new:#?}\n{}", self.pair.logs());
        }
        assert_eq!(told, rounds, "rollouts told\n{}", self.pair.logs());
        // Each status of the hub is one of the spoke's, none older than the one before.
        let mut left = spoke.iter().peekable();
        for shown in hub.iter().filter(|it| !it.conditions().is_empty()) {
            while left.peek().is_some_and(|it| it.conditions() != shown.conditions()) {
                left.next();
            }
            assert!(left.peek().is_some(), "the hub went back to {shown:#?}\n{}", self.pair.logs());
        }
    }
}

fn component(object: &ObservabilityAddon) -> Option<&Condition> {
    object.conditions().iter().find(|it| it.type_ == SEED.collector)
}

fn says(object: &ObservabilityAddon, reason: &str) -> bool {
    component(object).is_some_and(|it| it.reason == reason)
}

fn is_right(object: &ObservabilityAddon) -> bool {
    aggregated(object.conditions(), &SEED, Timestamp::UNIX_EPOCH).is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn row_35_a_leader_that_stands_still_says_nothing_twice_of_an_add_on() {
    let mut row = Row::short(35, "leaders stopped in the middle of an add-on");
    let place = Place::new(None).await;
    let moment = Duration::from_millis(200);
    let stops = [
        (Step::RolledOut, Stop::For(moment)),
        (Step::Reported, Stop::For(moment)),
        (Step::Told, Stop::UntilSucceeded),
        // Who was stopped hears of it, and whoever leads now goes on.
        (Step::Asked, Stop::For(Duration::ZERO)),
    ];
    let mut successions = 0;
    for ((step, stop), number) in stops.into_iter().zip(0..) {
        successions += usize::from(place.round(number, step, stop).await);
    }
    place.judge(stops.len()).await;
    row.measured(json!({"stops": stops.len(), "successions": successions, "toldTwice": 0, "wentBack": 0}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "hours: scripts/soak runs it"]
async fn row_35_at_full_length() {
    let mut row = Row::full(35, "leaders of add-ons stopped for 0 to 60 s", percent());
    let (count, clocks) = (scaled(60), has_clocks());
    let place = Place::new(Some("-30s").filter(|_| clocks)).await;
    let mut successions = 0;
    for (length, number) in lengths(count).into_iter().zip(0_u32..) {
        let step = STEPS[usize::try_from(number).unwrap() % STEPS.len()];
        successions += usize::from(place.round(number, step, Stop::For(length)).await);
    }
    place.judge(count).await;
    row.measured(json!({"stops": count, "successions": successions, "toldTwice": 0, "wentBack": 0,
        "clocksApart": if clocks { "30 s" } else { "no faketime: none" }}));
}
