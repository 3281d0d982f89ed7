//! What became of the rules that want more gathered while an alert fires. Who knows of alerts is a Prometheus, which is not asked: each
//! rule is told with that.

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
