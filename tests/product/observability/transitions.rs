//! The table of transitions (OB §3), a test for each of its rows and in it each of the six edges, in both ways that lead there: by the
//! library, which asks the table before it writes, and past it, where the server's policies hold the same table.

use admit::controllers::observability::crd::{ObservabilityAddon, ObservabilityAddonStatus};
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::Meaning::{
    self, Disabled, ForwardFailure, ForwardSuccessful, NotSupported, UpdateFailure, UpdateSuccessful,
};
use admit::controllers::observability::vocabulary::SEED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, PostParams};

use super::SPOKE;
use super::place::{Place, with};
use crate::support::testcluster::Process;

/// The columns.
const NEW: [Meaning; 6] =
    [UpdateSuccessful, UpdateFailure, ForwardSuccessful, ForwardFailure, Disabled, NotSupported];

struct Edges {
    place: Place,
    /// The endpoint operator's account, which may say everything that the table allows.
    account: Process,
}

impl Edges {
    async fn report(&self, name: &str, meaning: Meaning, message: &str) -> Outcome {
        let report = Report::of(&SEED, SEED.collector, meaning, message).unwrap();
        let reporter = Reporter::new(self.account.client.clone(), &SEED).to(SPOKE, name);
        reporter.report(&report).await.unwrap()
    }

    /// The condition as somebody writes it who asks no table.
    async fn write(&self, name: &str, meaning: Meaning) -> Result<ObservabilityAddon, kube::Error> {
        let api: Api<ObservabilityAddon> = Api::namespaced(self.account.client.clone(), SPOKE);
        let mut object = api.get(name).await.unwrap();
        let condition = Condition {
            type_: SEED.collector.to_owned(),
            status: "True".to_owned(),
            reason: SEED.called(meaning).unwrap().to_owned(),
            message: "written".to_owned(),
            observed_generation: None,
            last_transition_time: Time(jiff::Timestamp::now()),
        };
        object.status = Some(ObservabilityAddonStatus { conditions: vec![condition] });
        api.replace_status(name, &PostParams::default(), &object).await
    }

    /// An add-on of its own whose collector says `old`.
    async fn begin(&self, name: &str, old: Option<Meaning>) {
        self.place.create(&with(SPOKE, |it| it["metadata"]["name"] = name.into())).await;
        if let Some(old) = old {
            assert_eq!(self.report(name, old, "before").await, Outcome::Written);
        }
    }

    async fn stored(&self, name: &str) -> Option<String> {
        let object = self.place.addons(SPOKE).get(name).await.unwrap();
        object.conditions().iter().find(|it| it.type_ == SEED.collector).map(|it| it.reason.clone())
    }
}

/// `y` may follow, `-` may not, `=` is the same, which may be said in other words.
async fn row(old: Option<Meaning>, verdicts: &str) {
    let place = Place::new().await;
    let account = place.account();
    let edges = Edges { place, account };
    let verdicts: Vec<&str> = verdicts.split_whitespace().collect();
    assert_eq!(verdicts.len(), NEW.len());
    let before = old.and_then(|old| SEED.called(old)).map(ToOwned::to_owned);
    for (number, (new, verdict)) in NEW.into_iter().zip(verdicts).enumerate() {
        let edge = format!("{old:?} to {new:?}");
        let name = SEED.called(new).unwrap();
        let after = if verdict == "-" { before.clone() } else { Some(name.to_owned()) };
        assert_eq!(verdict == "=", before.as_deref() == Some(name), "the diagonal: {edge}");

        let own = format!("reported-{number}");
        edges.begin(&own, old).await;
        let outcome = edges.report(&own, new, "after").await;
        let not_allowed = Outcome::NotAllowed { from: before.clone().unwrap_or_default(), to: name };
        let wanted = if verdict == "-" { not_allowed } else { Outcome::Written };
        assert_eq!(outcome, wanted, "{edge}");
        assert_eq!(edges.stored(&own).await, after, "{edge}");

        let own = format!("written-{number}");
        edges.begin(&own, old).await;
        match edges.write(&own, new).await {
            Ok(_) => assert_ne!(verdict, "-", "{edge}"),
            Err(error) => {
                let told = error.to_string();
                assert_eq!(verdict, "-", "{edge}: {told}");
                assert!(told.contains("reason transition not allowed by the table"), "{edge}: {told}");
            }
        }
        assert_eq!(edges.stored(&own).await, after, "{edge}");
    }
}

#[tokio::test]
async fn ob_03_01_anything_may_be_said_first() {
    row(None, "y y y y y y").await;
}

#[tokio::test]
async fn ob_03_02_after_an_update_that_succeeded() {
    row(Some(UpdateSuccessful), "= y y y y y").await;
}

#[tokio::test]
async fn ob_03_03_after_an_update_that_failed() {
    row(Some(UpdateFailure), "y = - - y y").await;
}

#[tokio::test]
async fn ob_03_04_after_a_forward_that_succeeded() {
    row(Some(ForwardSuccessful), "y y = y y y").await;
}

#[tokio::test]
async fn ob_03_05_after_a_forward_that_failed() {
    row(Some(ForwardFailure), "y y y = y y").await;
}

#[tokio::test]
async fn ob_03_06_after_metrics_were_switched_off() {
    row(Some(Disabled), "y y - - = y").await;
}

#[tokio::test]
async fn ob_03_07_after_what_is_not_supported() {
    row(Some(NotSupported), "y y - - y =").await;
}
