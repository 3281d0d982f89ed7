//! Simulates two operators of a payload: one that never reports, and one that goes through every state that an
//! operator can report.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Stage;
use crate::controllers::clusteroperator::crd::{ClusterOperator, OperandVersion, OperatorCondition};

const SILENT: &str = "demo-silent";
const REPORTING: &str = "demo-reporting";
const VERSION: &str = "1.0.0";

/// What an operator reports: whether it is available, progressing and degraded, and why.
struct Report {
    conditions: [(&'static str, bool); 3],
    reason: &'static str,
    message: &'static str,
}

const ROUND: [Report; 5] = [
    report([false, true, false], "Installing", "The first rollout is under way"),
    report([true, false, false], "AsExpected", "All is well"),
    report([true, true, false], "Updating", "One of two replicas is updated"),
    report([true, false, true], "SlowAnswers", "Answers take longer than a second"),
    report([false, false, true], "NoReplicas", "No replica answers"),
];

const fn report(holds: [bool; 3], reason: &'static str, message: &'static str) -> Report {
    let [available, progressing, degraded] = holds;
    let conditions = [("Available", available), ("Progressing", progressing), ("Degraded", degraded)];
    Report { conditions, reason, message }
}

/// Returns the manifests by name.
pub(super) fn payload() -> [(&'static str, Value); 2] {
    [SILENT, REPORTING].map(|name| {
        let manifest = json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {},
            "status": {
                "versions": [{"name": "operator", "version": VERSION}],
                "relatedObjects": [{"group": "", "resource": "namespaces", "name": super::NAMESPACE}],
            },
        });
        (name, manifest)
    })
}

/// Reports each state in turn, one per step, after the ClusterOperator was created.
pub(super) async fn run(stage: &Stage) {
    for said in ROUND.iter().cycle() {
        if !stage.pause(stage.step).await {
            return;
        }
        let written = say(stage, said).await;
        stage.tell("report as an operator", written);
    }
}

async fn say(stage: &Stage, said: &Report) -> Result<(), kube::Error> {
    let api: Api<ClusterOperator> = Api::all(stage.admin.clone());
    let Some(object) = api.get_opt(REPORTING).await? else { return Ok(()) };
    let (before, now) = (object.report().conditions, Time(Timestamp::now()));
    let conditions = said.conditions.map(|(type_, holds)| {
        let status = if holds { "True" } else { "False" };
        let same = before.iter().find(|it| it.type_ == type_ && it.status == status);
        OperatorCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            last_transition_time: same.map_or_else(|| now.clone(), |it| it.last_transition_time.clone()),
            reason: Some(said.reason.to_owned()),
            message: Some(said.message.to_owned()),
        }
    });
    let versions = [OperandVersion { name: "operator".to_owned(), version: VERSION.to_owned() }];
    let patch = Patch::Merge(json!({"status": {"conditions": conditions, "versions": versions}}));
    api.patch_status(REPORTING, &PatchParams::default(), &patch).await.map(drop)
}
