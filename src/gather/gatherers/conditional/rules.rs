//! Reports the rules that request more data while an alert fires. They are never followed, since no Prometheus is queried for alerts;
//! each rule is recorded with that reason.

use futures::FutureExt;
use serde_json::{Value, json};

use super::super::super::failure::Failure;
use super::super::super::gatherer::{Context, Gatherer, Run};

pub(in super::super) const ROW: Gatherer = Gatherer {
    id: "conditional/conditional_gatherer_rules",
    collects: "rules of the remote configuration that depend on alerts, which are not followed",
    path: "insights-operator/conditional-gatherer-rules.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const UNASKED: &str = "not followed: which alerts fire is asked of no Prometheus";

async fn gather(context: Context) -> Result<(), Failure> {
    let remote = &context.remote;
    if remote.rules().is_empty() {
        return Ok(());
    }
    context.recorder.warn(format!("{} rules are {UNASKED}", remote.rules().len()));
    let told = |rule: &Value| json!({"rule": rule, "errors": [UNASKED], "was_triggered": false});
    let rules: Vec<_> = remote.rules().iter().map(told).collect();
    let record = json!({"version": remote.version(), "rules": rules, "endpoint": remote.endpoint});
    context.json("insights-operator/conditional-gatherer-rules", record).await
}
