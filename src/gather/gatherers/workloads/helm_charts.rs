//! Gathers which Helm charts are installed, in which versions, and how many objects of each resource they have.

use std::collections::BTreeMap;

use futures::FutureExt;
use serde_json::{Value, json};

use super::super::super::failure::Failure;
use super::super::super::gatherer::{Context, Gatherer, Run};
use super::super::super::lister::{self, Resource};
use super::super::{hashed, namespace, tell, told};

pub(in super::super) const ROW: Gatherer = Gatherer {
    id: "workloads/helmchart_info",
    collects: "Helm charts by hashed namespace, with the number of their objects",
    path: "config/helmchart_info.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const fn apps(kind: &'static str, plural: &'static str) -> Resource {
    Resource { group: "apps", version: "v1", kind, plural }
}

const RESOURCES: [Resource; 5] = [
    apps("ReplicaSet", "replicasets"),
    apps("DaemonSet", "daemonsets"),
    apps("StatefulSet", "statefulsets"),
    Resource { group: "", version: "v1", kind: "Service", plural: "services" },
    apps("Deployment", "deployments"),
];
const MANAGED: &str = "app.kubernetes.io/managed-by=Helm";
const CHART: &str = "/metadata/labels/helm.sh~1chart";
/// The most charts that are recorded, one row per namespace.
const MAX_CHARTS: usize = 10_000;

async fn gather(context: Context) -> Result<(), Failure> {
    let mut charts = Charts::default();
    let (mut served, mut missing) = (false, None);
    for resource in RESOURCES {
        match count(&context, resource, &mut charts).await {
            Err(failure @ Failure::MissingApi(_)) => missing = Some(failure),
            counted => {
                told(&context, counted)?;
                served = true;
            }
        }
    }
    if let Some(missing) = missing.filter(|_| !served) {
        return Err(missing);
    }
    if charts.dropped > 0 {
        context.recorder.warn(format!(
            "{} objects of charts past the first {MAX_CHARTS} were not counted",
            charts.dropped
        ));
    }
    if charts.by_namespace.is_empty() {
        return Ok(());
    }
    context.json("config/helmchart_info", charts.into_json()).await
}

async fn count(context: &Context, resource: Resource, charts: &mut Charts) -> Result<(), Failure> {
    let mut listing = lister::list(context, resource).labelled(MANAGED);
    while let Some(object) = listing.next().await? {
        if let Some(chart) = object.pointer(CHART).and_then(Value::as_str).filter(|chart| !chart.is_empty()) {
            charts.count(namespace(&object), chart, resource.plural);
        }
    }
    tell(context, &listing);
    Ok(())
}

type Chart = (String, String);

#[derive(Default)]
struct Charts {
    by_namespace: BTreeMap<String, BTreeMap<Chart, BTreeMap<&'static str, u64>>>,
    entries: usize,
    dropped: u64,
}

impl Charts {
    fn count(&mut self, namespace: &str, chart: &str, plural: &'static str) {
        let charts = self.by_namespace.entry(hashed::long(namespace)).or_default();
        let chart = name_and_version(chart);
        if !charts.contains_key(&chart) {
            if self.entries == MAX_CHARTS {
                self.dropped += 1;
                return;
            }
            self.entries += 1;
        }
        *charts.entry(chart).or_default().entry(plural).or_default() += 1;
    }

    fn into_json(self) -> Value {
        let rows = |charts: BTreeMap<Chart, BTreeMap<&'static str, u64>>| {
            let row = |((name, version), resources)| json!({"name": name, "version": version, "resources": resources});
            charts.into_iter().map(row).collect::<Vec<_>>()
        };
        let charts = self.by_namespace.into_iter().filter(|(_, charts)| !charts.is_empty());
        charts.map(|(namespace, charts)| (namespace, Value::Array(rows(charts)))).collect()
    }
}

/// Splits a label `NAME-VERSION`. Both may contain dashes; a version contains a dot or is one of a few words.
fn name_and_version(chart: &str) -> Chart {
    let is_version = |text: &str| text.contains('.') || matches!(text, "latest" | "beta" | "alpha");
    match chart.rsplit_once('-') {
        Some((name, version)) if is_version(version) => (name.to_owned(), version.to_owned()),
        _ => (chart.to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_taken_apart() {
        for (label, name, version) in [
            ("jenkins-0.0.3", "jenkins", "0.0.3"),
            ("node-js-1.2", "node-js", "1.2"),
            ("node-js", "node-js", ""),
            ("redis", "redis", ""),
            ("redis-latest", "redis", "latest"),
        ] {
            assert_eq!(name_and_version(label), (name.to_owned(), version.to_owned()), "{label}");
        }
    }

    #[test]
    fn objects_are_counted_by_namespace_and_chart() {
        let mut charts = Charts::default();
        for plural in ["services", "deployments", "services"] {
            charts.count("shop", "jenkins-0.0.3", plural);
        }
        charts.count("bank", "node", "services");
        let expected = json!({
            hashed::long("shop"): [{"name": "jenkins", "version": "0.0.3", "resources": {"deployments": 1, "services": 2}}],
            hashed::long("bank"): [{"name": "node", "version": "", "resources": {"services": 1}}],
        });
        assert_eq!(charts.into_json(), expected);
    }
}
