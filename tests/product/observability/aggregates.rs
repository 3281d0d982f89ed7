//! The table of aggregation (OB §4) as the keeper writes it, and the words and places of what it writes.

use admit::controllers::observability::Settings;
use admit::controllers::observability::crd::ObservabilityAddon;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::Meaning::{
    self, Disabled, ForwardFailure, ForwardSuccessful, NotSupported, UpdateFailure, UpdateSuccessful,
};
use admit::controllers::observability::vocabulary::SEED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::wait::await_condition;
use serde_json::json;
use tokio::time::timeout;

use super::place::{Place, with};
use super::{Running, SPOKE, told};
use crate::support::cluster::PATIENCE;

struct Bench {
    place: Place,
    keeper: Running,
}

impl Bench {
    async fn new() -> Self {
        let place = Place::new().await;
        let keeper = Running::start(place.account().client, Settings::new(&SEED));
        Self { place, keeper }
    }

    async fn create(&self, name: &str) {
        self.place.create(&with(SPOKE, |it| it["metadata"]["name"] = name.into())).await;
    }

    async fn report(&self, name: &str, component: &'static str, meaning: Meaning, message: &str) {
        let report = Report::of(&SEED, component, meaning, message).unwrap();
        let reporter = Reporter::new(self.place.account().client, &SEED).to(SPOKE, name);
        assert_eq!(reporter.report(&report).await.unwrap(), Outcome::Written, "{name}");
    }

    /// Waits until the one standard condition that is True is `wanted`.
    async fn until(&self, name: &str, wanted: &str) -> ObservabilityAddon {
        let api = self.place.addons(SPOKE);
        let so = |object: Option<&ObservabilityAddon>| object.is_some_and(|it| told(&json!(it)) == [wanted]);
        match timeout(PATIENCE, await_condition(api.clone(), name, so)).await {
            Ok(found) => found.unwrap().unwrap(),
            Err(_) => panic!("{name}: never {wanted}: {:#?}", api.get(name).await.unwrap().conditions()),
        }
    }
}

fn of<'c>(object: &'c ObservabilityAddon, type_: &str) -> &'c Condition {
    let mut found = object.conditions().iter().filter(|it| it.type_ == type_);
    let one = found.next().unwrap_or_else(|| panic!("no {type_}"));
    assert_eq!(found.next(), None, "{type_} is there twice");
    one
}

/// All sixteen pairs at once, each in an add-on of its own, and what stands above and below them.
#[tokio::test]
async fn ob_04_each_pair_of_the_table_becomes_its_aggregate() {
    let bench = Bench::new().await;
    let (ff, fs, uf, us) = (ForwardFailure, ForwardSuccessful, UpdateFailure, UpdateSuccessful);
    let columns = [ff, fs, uf, us];
    let table =
        [(ff, [ff, ff, ff, ff]), (fs, [ff, fs, uf, us]), (uf, [ff, uf, uf, uf]), (us, [ff, us, uf, us])];
    let rows = table.into_iter().flat_map(|(mc, row)| columns.into_iter().zip(row).map(move |it| (mc, it)));
    let mut pairs: Vec<_> = rows.map(|(mc, (uwl, wanted))| (mc, uwl, wanted)).collect();
    assert_eq!(pairs.len(), 16);
    for other in columns {
        pairs.extend([(Disabled, other, other), (NotSupported, other, NotSupported)]);
    }
    pairs.extend([(Disabled, Disabled, Disabled), (Disabled, NotSupported, NotSupported)]);
    for (number, (mc, uwl, _)) in pairs.iter().enumerate() {
        let name = format!("pair-{number}");
        bench.create(&name).await;
        bench.report(&name, SEED.collector, *mc, "of the platform").await;
        bench.report(&name, SEED.workloads_collector, *uwl, "of workloads").await;
    }
    for (number, (mc, uwl, wanted)) in pairs.iter().enumerate() {
        let type_ = match wanted {
            ForwardFailure | UpdateFailure => "Degraded",
            ForwardSuccessful => "Available",
            UpdateSuccessful => "Progressing",
            Disabled => "Disabled",
            _ => "NotSupported",
        };
        let reason = SEED.called(*wanted).unwrap();
        let object = bench.until(&format!("pair-{number}"), &format!("{type_}/{reason}")).await;
        let message = match type_ {
            "Available" => "observability-controller add-on is available.",
            "Progressing" => "observability-controller add-on is progressing.",
            "Disabled" => "observability-controller add-on is disabled.",
            // Both say it: the first by name tells.
            _ if mc == wanted => "MetricsCollectorStatus: of the platform",
            _ => "UwlMetricsCollectorStatus: of workloads",
        };
        assert_eq!(of(&object, type_).message, message, "{mc:?} and {uwl:?}");
    }
    bench.keeper.end().await;
}

#[tokio::test]
async fn ob_04_a_message_is_cut_to_256_characters() {
    let bench = Bench::new().await;
    bench.create("a").await;
    bench.report("a", SEED.collector, UpdateFailure, &"ä".repeat(300)).await;
    let object = bench.until("a", "Degraded/UpdateFailure").await;
    let message = &of(&object, "Degraded").message;
    assert_eq!(message.chars().count(), 256);
    assert!(message.starts_with("MetricsCollectorStatus: ää") && message.ends_with("ä..."), "{message}");
    bench.keeper.end().await;
}

/// What was told stays where it is, False, with its reason and its time; what is told anew comes behind it.
#[tokio::test]
async fn ob_04_the_other_standard_conditions_are_false_in_their_place() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let (mut last, mut types) = (None, vec![SEED.collector]);
    for (meaning, type_) in [
        (UpdateSuccessful, "Progressing"),
        (ForwardSuccessful, "Available"),
        (ForwardFailure, "Degraded"),
        (ForwardSuccessful, "Available"),
    ] {
        bench.report("a", SEED.collector, meaning, "m").await;
        let reason = SEED.called(meaning).unwrap();
        let object = bench.until("a", &format!("{type_}/{reason}")).await;
        if !types.contains(&type_) {
            types.push(type_);
        }
        let order: Vec<_> = object.conditions().iter().map(|it| it.type_.as_str()).collect();
        assert_eq!(order, types);
        if let Some((before, was)) = last {
            let (old, new): (&Condition, &Condition) = (of(&before, was), of(&object, was));
            assert_eq!((old.status.as_str(), new.status.as_str()), ("True", "False"));
            assert_eq!(
                (&new.reason, &new.last_transition_time),
                (&old.reason, &old.last_transition_time),
                "{was}"
            );
        }
        last = Some((object, type_));
    }
    bench.keeper.end().await;
}
