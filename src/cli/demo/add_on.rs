//! Simulates the surroundings of an ObservabilityAddon: a hub that requests it, Deployments of collectors, a Service
//! for Prometheus, and two collectors that report with this crate's reporter, as real ones do.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::debug;

use super::{CLUSTER, LONGEST, LOOKS, NAMESPACE, PROMETHEUS, Stage};
use crate::controllers::kit::retry::Remedy;
use crate::controllers::observability::crd::{NAME, ObservabilityAddon, SPOKE_NAMESPACE};
use crate::controllers::observability::endpoint::DEPLOYMENTS;
use crate::controllers::observability::failures::Failures;
use crate::controllers::observability::report::{Report, Reporter};
use crate::controllers::observability::vocabulary::{Meaning, Vocabulary};

/// How often a collector forwards in one step: a failure is reported after the third in a row.
const FORWARDS: u32 = 5;

/// The results of the collectors' forwarding.
#[derive(Clone, Copy, Debug)]
enum Forwarding {
    Rests,
    Works,
    /// The platform collector fails, and that of user workloads works.
    Fails,
}

/// A step of the demo, with the condition that the add-on reports after it.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Progressing.
    RollOut,
    /// Available.
    Forward,
    /// Degraded: nothing reaches the hub.
    Fail,
    /// Degraded: the rollout fails.
    RollOutBadly,
    /// Disabled.
    Disable,
    /// Progressing.
    Enable,
    /// `NotSupported`.
    LosePrometheus,
    /// Progressing.
    FindPrometheus,
}

const ROUND: [Step; 13] = [
    Step::RollOut,
    Step::Forward,
    Step::Fail,
    Step::Forward,
    Step::RollOutBadly,
    Step::RollOut,
    Step::Forward,
    Step::Disable,
    Step::Enable,
    Step::Forward,
    Step::LosePrometheus,
    Step::FindPrometheus,
    Step::Forward,
];

impl Step {
    fn leads_to(self) -> Meaning {
        match self {
            Self::RollOut | Self::Enable | Self::FindPrometheus => Meaning::UpdateSuccessful,
            Self::Forward => Meaning::ForwardSuccessful,
            Self::Fail => Meaning::ForwardFailure,
            Self::RollOutBadly => Meaning::UpdateFailure,
            Self::Disable => Meaning::Disabled,
            Self::LosePrometheus => Meaning::NotSupported,
        }
    }

    fn forwarding(self) -> Forwarding {
        match self {
            Self::Forward => Forwarding::Works,
            Self::Fail => Forwarding::Fails,
            Self::RollOut
            | Self::RollOutBadly
            | Self::Disable
            | Self::Enable
            | Self::LosePrometheus
            | Self::FindPrometheus => Forwarding::Rests,
        }
    }
}

/// Takes the add-on through all steps.
pub(super) async fn run(stage: &Stage, collectors: Client, vocabulary: &'static Vocabulary) {
    let forwarding = watch::Sender::new(Forwarding::Rests);
    let reporter = Reporter::new(collectors, vocabulary);
    let collect = |component, own| {
        let collector = Collector { reporter: &reporter, vocabulary, component, own };
        collector.run(stage, forwarding.subscribe())
    };
    tokio::join!(
        collect(vocabulary.collector, true),
        collect(vocabulary.workloads_collector, false),
        play(stage, vocabulary, &forwarding)
    );
}

async fn play(stage: &Stage, vocabulary: &Vocabulary, forwarding: &watch::Sender<Forwarding>) {
    let begun = begin(stage).await;
    stage.tell("make an add-on", begun);
    for (number, step) in (0_u64..).zip(ROUND.into_iter().cycle()) {
        forwarding.send_replace(step.forwarding());
        let taken = take(stage, step, number).await;
        stage.tell("go on with an add-on", taken);
        let wanted = vocabulary.called(step.leads_to());
        let since = Instant::now();
        while !says(stage, vocabulary, wanted).await && since.elapsed() < LONGEST {
            if !stage.pause(stage.step / LOOKS).await {
                return;
            }
        }
        if !stage.pause(stage.step).await {
            return;
        }
    }
}

/// Whether the add-on of this cluster has the aggregate reason `reason`.
async fn says(stage: &Stage, vocabulary: &Vocabulary, reason: Option<&str>) -> bool {
    let api: Api<ObservabilityAddon> = Api::namespaced(stage.admin.clone(), SPOKE_NAMESPACE);
    let Ok(Some(found)) = api.get_opt(NAME).await else { return false };
    let mut told = found.conditions().iter().filter(|it| vocabulary.is_standard(it) && it.status == "True");
    told.any(|it| Some(it.reason.as_str()) == reason)
}

async fn begin(stage: &Stage) -> Result<(), kube::Error> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPOKE_NAMESPACE}});
    stage.apply("namespaces", &namespace).await?;
    stage.apply("services", &prometheus()).await?;
    for name in DEPLOYMENTS {
        stage.apply("deployments", &deployment(name, 0)).await?;
    }
    ask(stage, true).await
}

async fn take(stage: &Stage, step: Step, number: u64) -> Result<(), kube::Error> {
    let [platform, _] = DEPLOYMENTS;
    match step {
        Step::Forward | Step::Fail => Ok(()),
        Step::RollOut => stage.apply("deployments", &deployment(platform, number)).await,
        Step::RollOutBadly => {
            stage.apply("deployments", &deployment(platform, number)).await?;
            fail(stage, platform).await
        }
        Step::Disable => ask(stage, false).await,
        Step::Enable => ask(stage, true).await,
        Step::LosePrometheus => {
            let services: Api<Service> = Api::namespaced(stage.admin.clone(), NAMESPACE);
            match services.delete(PROMETHEUS, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                deleted => deleted.map(drop),
            }
        }
        Step::FindPrometheus => stage.apply("services", &prometheus()).await,
    }
}

/// Writes the add-on of the hub; the controller creates that of the spoke.
async fn ask(stage: &Stage, enable: bool) -> Result<(), kube::Error> {
    let add_on = json!({
        "apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
        "metadata": {"name": NAME, "namespace": CLUSTER}, "spec": {"enableMetrics": enable},
    });
    stage.apply("observabilityaddons", &add_on).await
}

fn prometheus() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": PROMETHEUS, "namespace": NAMESPACE},
        "spec": {"ports": [{"port": 9090}]},
    })
}

/// Creates a Deployment. No Deployments run here, only their status is written.
fn deployment(name: &str, number: u64) -> Value {
    let (labels, image) = (json!({"app": name}), format!("collector.invalid/collector:{number}"));
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SPOKE_NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "collector", "image": image}]},
            },
        },
    })
}

/// Marks the newest rollout of a Deployment as failed.
async fn fail(stage: &Stage, name: &str) -> Result<(), kube::Error> {
    let api: Api<Deployment> = Api::namespaced(stage.admin.clone(), SPOKE_NAMESPACE);
    let generation = api.get(name).await?.metadata.generation;
    let now = Timestamp::now().to_string();
    let status = json!({
        "observedGeneration": generation,
        "conditions": [{
            "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            "message": "the image cannot be pulled", "lastUpdateTime": now, "lastTransitionTime": now,
        }],
    });
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
}

/// A collector, reduced to the reports that it sends to its add-on.
struct Collector<'a> {
    reporter: &'a Reporter,
    vocabulary: &'static Vocabulary,
    component: &'static str,
    /// Whether it is the platform's collector, which fails when forwarding does.
    own: bool,
}

impl Collector<'_> {
    async fn run(self, stage: &Stage, forwarding: watch::Receiver<Forwarding>) {
        let mut failures = Failures::default();
        let between: Duration = stage.step / FORWARDS;
        while stage.pause(between).await {
            let (meaning, message) = match *forwarding.borrow() {
                Forwarding::Rests => continue,
                Forwarding::Fails if self.own => {
                    (Meaning::ForwardFailure, "Failed to send metrics: the hub answers 503")
                }
                Forwarding::Works | Forwarding::Fails => {
                    (Meaning::ForwardSuccessful, "Cluster metrics sent successfully")
                }
            };
            if !failures.is_told(meaning) {
                continue;
            }
            // Every vocabulary has reasons for both.
            let Ok(report) = Report::of(self.vocabulary, self.component, meaning, message) else { return };
            match self.reporter.report(&report).await {
                Ok(outcome) => debug!(component = self.component, %outcome, "a collector reported"),
                // Four writers share the add-on; on a busy machine they may conflict more often than one report retries.
                Err(error) if error.remedy() == Remedy::Reread => debug!(%error, "a collector reports again"),
                Err(error) => stage.tell("report as a collector", Err(error)),
            }
        }
    }
}
