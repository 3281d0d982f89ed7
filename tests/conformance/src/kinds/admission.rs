//! Implements what the corpora of admission decisions share: scenarios of documents, requests, and the comparison of answers.

use std::sync::{Arc, OnceLock};

use admit_policy::{
    Access, AccessAttributes, Decision, Denial, Documents, Enforcement, GroupVersionKind,
    GroupVersionResource, Host, HostError, PolicyOutcome, PolicySet, Reason, Request, RuleOutcome, Scope,
    UserInfo, Verdict, manifest,
};
use serde_json::{Value, json};

use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

/// Documents in force together, compiled when the first case asks.
pub(crate) struct Scenario {
    documents: Vec<Value>,
    set: OnceLock<Result<PolicySet, String>>,
}

impl Scenario {
    /// The documents of `files` of a corpus.
    pub(crate) fn read(folder: &Folder, files: &[&str]) -> Result<Self, CorpusError> {
        let mut documents = Vec::new();
        for file in files {
            documents.extend(folder.manifests(file)?);
        }
        Ok(Self::of(documents))
    }

    pub(crate) fn of(documents: Vec<Value>) -> Self {
        Self { documents, set: OnceLock::new() }
    }

    pub(crate) fn documents(&self) -> &[Value] {
        &self.documents
    }

    /// What this scenario decides about `request`, with objects that exist beside its own.
    pub(crate) fn decide(&self, request: &Request<'_>, beside: &[Value]) -> Result<Decision, String> {
        let set = self.set.get_or_init(|| compile(&self.documents)).as_ref().map_err(Clone::clone)?;
        let mut known = set.documents().clone();
        for object in beside {
            known.insert(Arc::new(object.clone()));
        }
        // The namespace of a request always existed where answers were recorded.
        known.ensure_namespace(&request.namespace);
        let host = Cluster { known, documents: &self.documents };
        Ok(set.decide(request, &host))
    }
}

fn compile(documents: &[Value]) -> Result<PolicySet, String> {
    let mut builder = PolicySet::builder();
    for document in documents {
        builder
            .add(document)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    }
    Ok(builder.finish())
}

/// The surroundings of a recorded request.
#[derive(Debug)]
struct Cluster<'a> {
    known: Documents,
    /// For the access rules among them.
    documents: &'a [Value],
}

impl Host for Cluster<'_> {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        self.known.namespace(name)
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.known.param_scope(kind)
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.known.params(kind, namespace)
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        self.known.equivalents(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.known.convert(object, kind)
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        super::rbac::authorize(self.documents, user, attributes)
    }
}

/// Compares a decision with a recorded answer.
///
/// Where several policies or bindings fail, which one is named was chance: any of them is right.
pub(crate) fn compare(
    request: &Request<'_>,
    recorded: &Value,
    decision: &Result<Decision, String>,
) -> Vec<Check> {
    let recorded = &without_generated_name(request, recorded);
    let expected = match recorded.get("verdict").and_then(Value::as_str).unwrap_or_default() {
        "denied" => "denied",
        // Admission let them through; what failed came later.
        _ => "allowed",
    };
    let decision = match decision {
        Ok(decision) => decision,
        Err(error) => return vec![Check::new(Aspect::Verdict, expected, format!("error: {error}"))],
    };
    let verdict = if decision.allowed() { "allowed" } else { "denied" };
    let mut checks = vec![Check::new(Aspect::Verdict, expected, verdict)];
    let expected_status = status_of(recorded.get("status").filter(|_| expected == "denied"));
    let possible = possible_denials(request, decision);
    let told = decision.denial.as_ref().map_or(Value::Null, actual_status);
    let told = possible.into_iter().find(|status| *status == expected_status).unwrap_or(told);
    checks.push(Check::new(Aspect::Text, expected_status, told));
    checks.push(Check::new(Aspect::Text, sorted(warnings(recorded)), sorted(actual_warnings(decision))));
    checks.push(Check::new(Aspect::Text, annotations(recorded), json!(decision.audit_annotations)));
    checks
}

/// The parts of a recorded Status that a decision answers for.
fn status_of(status: Option<&Value>) -> Value {
    status.map_or(Value::Null, |status| {
        let details = status.get("details").cloned().unwrap_or_default();
        json!({
            "code": status.get("code"),
            "reason": status.get("reason"),
            "message": status.get("message"),
            "name": details.get("name").cloned().unwrap_or_else(|| json!("")),
            "group": details.get("group").cloned().unwrap_or_else(|| json!("")),
            "kind": details.get("kind").cloned().unwrap_or_else(|| json!("")),
            "causes": details.get("causes").cloned().unwrap_or_else(|| json!([])),
        })
    })
}

fn actual_status(denial: &Denial) -> Value {
    let status = &denial.status;
    let details = status.details.clone().unwrap_or_default();
    let causes: Vec<Value> = status.causes().iter().map(|cause| json!({"message": cause.message})).collect();
    json!({
        "code": status.code,
        "reason": status.reason,
        "message": status.message,
        "name": details.name,
        "group": details.group,
        "kind": details.kind,
        "causes": causes,
    })
}

/// What each policy with each binding would have told, had it been looked at first.
fn possible_denials(request: &Request<'_>, decision: &Decision) -> Vec<Value> {
    let first_denial = |outcome: &PolicyOutcome| {
        let denies = |rule: &&RuleOutcome| rule.enforced.contains(&Enforcement::Deny);
        let (message, reason) = match &outcome.rules.iter().find(denies)?.verdict {
            Verdict::Failed { message, reason } => (message, *reason),
            Verdict::Errored { message, .. } => (message, Reason::Invalid),
            Verdict::Admitted => return None,
        };
        let with = outcome.binding.as_ref().map(|name| format!(" with binding '{name}'")).unwrap_or_default();
        let text = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {message}", outcome.policy);
        Some(actual_status(&Denial::new(request, text, reason)))
    };
    decision.outcomes.iter().filter_map(first_denial).collect()
}

/// A generated name differs between the recorded review and the recorded answer: the review's is put in its place.
fn without_generated_name(request: &Request<'_>, recorded: &Value) -> Value {
    let generated =
        request.object.as_ref().and_then(|object| object.value().pointer("/metadata/generateName").cloned());
    let name = recorded.pointer("/status/details/name").and_then(Value::as_str);
    match (generated, name) {
        (Some(_), Some(name)) => {
            let text = recorded.to_string().replace(name, &request.name);
            serde_json::from_str(&text).unwrap_or_else(|_| recorded.clone())
        }
        _ => recorded.clone(),
    }
}

fn warnings(recorded: &Value) -> Vec<String> {
    let warnings = recorded.get("warnings").and_then(Value::as_array).into_iter().flatten();
    // Other warnings are the API server's own business.
    let of_policies = |text: &&str| text.contains("ValidatingAdmissionPolicy");
    warnings.filter_map(Value::as_str).filter(of_policies).map(ToOwned::to_owned).collect()
}

/// Without the API server's own, such as how long it took.
fn annotations(recorded: &Value) -> Value {
    let all = recorded.get("auditAnnotations").and_then(Value::as_object).into_iter().flatten();
    let of_policies =
        |(key, _): &(&String, &Value)| !key.contains(".k8s.io/") || key.starts_with("validation.policy.");
    Value::Object(all.filter(of_policies).map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// In the form of a Warning header.
fn actual_warnings(decision: &Decision) -> Vec<String> {
    let framed = |text: &String| format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    decision.warnings.iter().map(framed).collect()
}

fn sorted(mut texts: Vec<String>) -> Value {
    texts.sort();
    json!(texts)
}

impl Folder {
    /// The documents of a manifest file of the corpus.
    pub(crate) fn manifests(&self, file: &str) -> Result<Vec<Value>, CorpusError> {
        let documents = manifest::read(file, &quote_letters(&self.text(file)?)).map_err(|errors| {
            let problem = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            CorpusError::Content { path: self.path.join(file), problem }
        })?;
        Ok(documents.into_iter().map(|document| document.value).collect())
    }
}

/// The writer of the recordings left the letters `y` and `n` unquoted and meant text. Kubernetes' reader, and so ours,
/// takes them for booleans.
fn quote_letters(text: &str) -> String {
    let quote = |line: &str| match line.rsplit_once(' ') {
        Some((front, letter @ ("y" | "Y" | "n" | "N"))) if front.ends_with([':', '-']) => {
            format!("{front} '{letter}'\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(quote).collect()
}
