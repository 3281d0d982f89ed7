//! The sequence of the design document against the embedded server, with the shipped definition and policies in force.

use admit::controllers::observability::crd::ObservabilityAddon;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use admit_apiserver::{Identity, Server};
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::place::{Place, with_hub};
use super::{HUB, Running, SPOKE, addon, told};
use crate::support::cluster::PATIENCE;
use crate::support::shipped::{create, documents, policies};

/// A server that is spoke and hub at once, as three clients see it.
struct Clusters {
    admin: Client,
    /// The account of the keeper, which may also say what became of updates.
    endpoint: Client,
    /// Collects, and is nobody's operator.
    collector: Client,
}

impl Clusters {
    async fn new() -> Self {
        let server = Server::builder().build().await.unwrap();
        let admin = Client::new(server.router(), "default");
        for namespace in ["admit-system", SPOKE, HUB] {
            create(
                &admin,
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .await;
        }
        let policies = policies("observability");
        for document in documents("deploy/crds/observabilityaddons.yaml").iter().chain(&policies) {
            create(&admin, document).await;
        }
        let params = policies.iter().find(|document| document["kind"] == "ConfigMap").unwrap();
        let operators = params["data"]["endpointOperators"].as_str().unwrap();
        let client_of = |user: &str| {
            let identity = Identity::new(user, ["system:masters".to_owned()]);
            Client::new(server.router().layer(axum::Extension(identity)), "default")
        };
        let endpoint = client_of(operators.split(',').next().unwrap());
        let clusters = Self { admin, endpoint, collector: client_of("collector") };
        for namespace in [SPOKE, HUB] {
            create(&clusters.admin, &addon(namespace)).await;
        }
        clusters
    }

    fn addons(&self, namespace: &str) -> Api<ObservabilityAddon> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// Waits until the object in `namespace` says so.
    async fn until(&self, namespace: &str, wanted: &str) -> Value {
        let says = |object: Option<&ObservabilityAddon>| {
            object.is_some_and(|object| told(&serde_json::to_value(object).unwrap()) == [wanted])
        };
        let waiting = await_condition(self.addons(namespace), "observability-addon", says);
        let found =
            timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{namespace}: never {wanted}"));
        serde_json::to_value(found.unwrap().unwrap()).unwrap()
    }
}

async fn report(client: &Client, component: &'static str, meaning: Meaning, message: &str) -> Outcome {
    let report = Report::of(&SEED, component, meaning, message).unwrap();
    Reporter::new(client.clone(), &SEED).report(&report).await.unwrap()
}

#[tokio::test]
async fn ob_07_15_from_the_start_until_both_collectors_forward() {
    let clusters = Clusters::new().await;
    let keeper = Running::start(clusters.endpoint.clone(), with_hub());
    let (mc, uwl) = (SEED.collector, SEED.workloads_collector);
    for component in [mc, uwl] {
        let updated = report(&clusters.endpoint, component, Meaning::UpdateSuccessful, "updated").await;
        assert_eq!(updated, Outcome::Written);
    }
    clusters.until(SPOKE, "Progressing/UpdateSuccesful").await;
    clusters.until(HUB, "Progressing/UpdateSuccesful").await;
    let forwarded = report(&clusters.collector, mc, Meaning::ForwardSuccessful, "sent").await;
    assert_eq!(forwarded, Outcome::Written);
    clusters.until(SPOKE, "Progressing/UpdateSuccesful").await;
    assert_eq!(report(&clusters.collector, uwl, Meaning::ForwardSuccessful, "sent").await, Outcome::Written);
    let spoke = clusters.until(SPOKE, "Available/ForwardSuccessful").await;
    let hub = clusters.until(HUB, "Available/ForwardSuccessful").await;
    assert_eq!(hub["status"], spoke["status"]);

    report(&clusters.collector, uwl, Meaning::ForwardFailure, "Metrics failed").await;
    let spoke = clusters.until(SPOKE, "Degraded/ForwardFailure").await;
    let conditions = spoke["status"]["conditions"].as_array().unwrap();
    let of = |type_: &str| conditions.iter().find(|condition| condition["type"] == type_).unwrap();
    assert_eq!(of("Degraded")["message"], "UwlMetricsCollectorStatus: Metrics failed");
    assert_eq!(of("Available")["status"], "False");
    keeper.end().await;
}

#[tokio::test]
async fn ob_07_08_what_may_not_follow_is_skipped_here_and_refused_there() {
    let clusters = Clusters::new().await;
    let mc = SEED.collector;
    report(&clusters.endpoint, mc, Meaning::UpdateFailure, "no image").await;
    let before = clusters.addons(SPOKE).get("observability-addon").await.unwrap();
    let skipped = report(&clusters.collector, mc, Meaning::ForwardSuccessful, "sent").await;
    assert_eq!(skipped.to_string(), "skipped: ForwardSuccessful may not follow UpdateFailure");
    let same = report(&clusters.endpoint, mc, Meaning::UpdateFailure, "no image").await;
    assert_eq!(same, Outcome::Same);
    assert_eq!(clusters.addons(SPOKE).get("observability-addon").await.unwrap(), before);

    // Whoever does not ask the table is refused by the policy that holds it.
    let mut status = json!(before.status);
    status["conditions"][0]["reason"] = json!("ForwardSuccessful");
    let patch = Patch::Merge(json!({"status": status}));
    let written =
        clusters.addons(SPOKE).patch_status("observability-addon", &PatchParams::default(), &patch).await;
    let error = written.unwrap_err().to_string();
    assert!(error.contains("reason transition not allowed by the table"), "{error}");
}

/// A refusal by a policy is an answer, not an error, and is not tried again.
#[tokio::test]
async fn ob_06_a_collector_does_not_say_what_operators_say() {
    let clusters = Clusters::new().await;
    let refused = report(&clusters.collector, SEED.collector, Meaning::UpdateSuccessful, "updated").await;
    let Outcome::Refused(message) = refused else { panic!("{refused}") };
    assert!(message.as_str().contains("observability-endpoint-operators"), "{message}");
}

/// With nothing new, nothing is written, however often it is looked at.
#[tokio::test]
async fn ob_07_06_the_same_again_is_not_written() {
    let place = Place::new().await;
    for namespace in [SPOKE, HUB] {
        place.create(&addon(namespace)).await;
    }
    place.report(SEED.collector, Meaning::UpdateSuccessful).await;
    let first = Running::start(place.account().client, with_hub());
    place.until_told(HUB, "Progressing/UpdateSuccesful").await;
    first.end().await;
    let account = place.account();
    let second = Running::start(account.client.clone(), with_hub());
    place.report(SEED.workloads_collector, Meaning::NotSupported).await;
    place.until_told(HUB, "NotSupported/NotSupported").await;
    second.end().await;
    let path = "/apis/observability.open-cluster-management.io/v1beta1/namespaces";
    let written =
        |namespace: &str| format!("PUT {path}/{namespace}/observabilityaddons/observability-addon/status");
    assert_eq!(account.wire.writes(), [written(SPOKE), written(HUB)]);
}
