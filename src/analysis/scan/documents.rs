//! Writes reports as Kubernetes objects. Both kinds of reports have the same content, in fields of the same names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::report::{Finding, Report, Summary};

/// The name of every report, which distinguishes it from those of other tools.
const NAME: &str = "admit-scan";
const LABEL: &str = "app.kubernetes.io/managed-by";
/// The annotation with the number of results that are left out.
const LEFT_OUT: &str = "admit.dev/results-left-out";

/// The API of the reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flavour {
    /// `openreports.io/v1alpha1`: Report and ClusterReport.
    OpenReports,
    /// `wgpolicyk8s.io/v1alpha2`: PolicyReport and ClusterPolicyReport.
    PolicyReports,
}

impl Flavour {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OpenReports, Self::PolicyReports];

    /// Group and version.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::OpenReports => "openreports.io/v1alpha1",
            Self::PolicyReports => "wgpolicyk8s.io/v1alpha2",
        }
    }

    /// Returns the kinds of namespaced and of cluster-scoped reports.
    #[must_use]
    pub const fn kinds(self) -> [&'static str; 2] {
        match self {
            Self::OpenReports => ["Report", "ClusterReport"],
            Self::PolicyReports => ["PolicyReport", "ClusterPolicyReport"],
        }
    }
}

/// The reports as objects, in order of namespace.
#[must_use]
pub fn documents(reports: &BTreeMap<String, Report>, flavour: Flavour) -> Vec<Value> {
    reports.iter().map(|(namespace, report)| document(namespace, report, flavour)).collect()
}

fn document(namespace: &str, report: &Report, flavour: Flavour) -> Value {
    let [of_namespace, of_cluster] = flavour.kinds();
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), NAME.into());
    metadata.insert("labels".to_owned(), json!({LABEL: "admit"}));
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    if report.left_out > 0 {
        metadata.insert("annotations".to_owned(), json!({LEFT_OUT: report.left_out.to_string()}));
    }
    let Summary { pass, fail, warn, error, skip } = report.summary;
    let mut document = json!({
        "apiVersion": flavour.api_version(),
        "kind": if namespace.is_empty() { of_cluster } else { of_namespace },
        "metadata": metadata,
        "summary": {"pass": pass, "fail": fail, "warn": warn, "error": error, "skip": skip},
        "results": report.findings().map(result).collect::<Vec<_>>(),
    });
    if let (Flavour::OpenReports, Value::Object(fields)) = (flavour, &mut document) {
        fields.insert("source".to_owned(), "admit".into());
    }
    document
}

fn result(finding: &Finding) -> Value {
    let mut result = Map::new();
    let mut put = |field: &str, value: Value| drop(result.insert(field.to_owned(), value));
    put("source", "admit".into());
    put("policy", (*finding.policy).into());
    put("result", finding.outcome.as_str().into());
    put("scored", true.into());
    if !finding.rule.is_empty() {
        put("rule", finding.rule.as_str().into());
    }
    if !finding.message.is_empty() {
        put("message", finding.message.as_str().into());
    }
    if let Some(subject) = &finding.subject {
        let texts = [
            ("apiVersion", &subject.api_version),
            ("kind", &subject.kind),
            ("name", &subject.name),
            ("namespace", &subject.namespace),
            ("uid", &subject.uid),
        ];
        let told = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let object: Map<String, Value> =
            told.map(|(field, text)| (field.to_owned(), text.as_str().into())).collect();
        put("resources", json!([object]));
    }
    let mut properties = Map::new();
    if let Some(action) = finding.enforced {
        properties.insert("validationAction".to_owned(), action.as_str().into());
    }
    if let Some(excepted) = &finding.excepted {
        properties.insert("exception".to_owned(), (*excepted.name).into());
        properties.insert("exceptionReason".to_owned(), (*excepted.reason).into());
        let until = if excepted.in_force { "exceptionUntil" } else { "exceptionEnded" };
        properties.insert(until.to_owned(), (*excepted.until).into());
    }
    if !properties.is_empty() {
        put("properties", properties.into());
    }
    Value::Object(result)
}
