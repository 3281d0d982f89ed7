//! Implements `PodSecurity`: enforces the Pod Security Standards that a namespace's labels set, and warns of and audits others. The
//! [settings](super::settings) give defaults and exemptions. Read from k8s.io/pod-security-admission of Kubernetes 1.36.

mod baseline;
mod check;
mod restricted;
mod setters;
mod subject;

use std::collections::{BTreeMap, HashSet};

use admit_apimachinery::field_error::together;
use admit_apimachinery::go;
use serde_json::Value;

use super::alone::{Alone, Turn};
use super::pods::{items, text};
use super::settings::{Level, LevelVersion, PodSecurity, Policy};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::resources::Scope;
use crate::status::{Cause, Refusal};
use crate::{interrupt, object};

use self::check::Failures;
use self::subject::Subject;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "PodSecurity", mutate: None, validate: Some(validate), alone: Alone::By(alone) };

/// The number of existing pods that are checked when a namespace gets a stricter level.
const MOST_PODS: usize = 3_000;

/// Subresources of pods whose writes cannot change a checked field.
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// Resources with pod templates, and the paths of these.
const TEMPLATES: [(&str, &str, &str); 8] = [
    ("", "replicationcontrollers", "/spec/template"),
    ("", "podtemplates", "/template"),
    ("apps", "replicasets", "/spec/template"),
    ("apps", "deployments", "/spec/template"),
    ("apps", "statefulsets", "/spec/template"),
    ("apps", "daemonsets", "/spec/template"),
    ("batch", "jobs", "/spec/template"),
    ("batch", "cronjobs", "/spec/jobTemplate/spec/template"),
];

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    let info = &request.review.call.info;
    if !info.builtin || !matches!(request.review.operation, Operation::Create | Operation::Update) {
        return Ok(());
    }
    match (info.group.as_str(), info.plural.as_str(), request.review.subresource()) {
        ("", "namespaces", "") => of_namespace(request),
        ("", "pods", subresource) if !IGNORED.contains(&subresource) => of_pod(request),
        (group, plural, "") => {
            let row = TEMPLATES.iter().find(|row| (row.0, row.1) == (group, plural));
            if let Some(template) =
                row.and_then(|row| request.object().pointer(row.2)).filter(|it| it.is_object())
            {
                of_template(request, template);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks a namespace: new or changed labels must be valid; existing pods that violate a stricter level are reported as
/// warnings.
fn of_namespace(request: &Request<'_>) -> Result<(), Refusal> {
    let (namespace, set) = (request.object(), settings(request));
    let (policy, wrong) = Policy::of(namespace, &set.defaults);
    if request.review.operation == Operation::Create {
        refuse_labels(request, &wrong)?;
        warn_of_exemption(request, &policy);
        return Ok(());
    }
    let (old, old_wrong) = Policy::of(request.old(), &set.defaults);
    if wrong != old_wrong {
        refuse_labels(request, &wrong)?;
    }
    let is_relaxed =
        policy.enforce.version == old.enforce.version && policy.enforce.level <= old.enforce.level;
    if policy.enforce == old.enforce || policy.enforce.level == Level::Privileged || is_relaxed {
        return Ok(());
    }
    if set.namespaces.iter().any(|exempt| exempt == object::name(namespace)) {
        warn_of_exemption(request, &policy);
        return Ok(());
    }
    for warning in of_existing(request, object::name(namespace), policy.enforce)? {
        request.review.call.warnings.add(warning);
    }
    Ok(())
}

fn settings<'r>(request: &Request<'r>) -> &'r PodSecurity {
    &request.live.settings.pod_security
}

/// Warns of labels in a namespace that is exempt, where they have no effect.
fn warn_of_exemption(request: &Request<'_>, policy: &Policy) {
    let (namespace, set) = (request.object(), settings(request));
    let name = object::name(namespace);
    let is_exempt = set.namespaces.iter().any(|exempt| exempt == name);
    if is_exempt && !policy.is_privileged() && *policy != set.defaults {
        request.review.call.warnings.add(format!(
            "namespace {} is exempt from Pod Security, and the policy ({}) will be ignored",
            go::quote(name),
            policy.labelled(namespace)
        ));
    }
}

/// Returns whether the namespace or the user is exempt; adds an audit annotation if so.
fn is_exempt(request: &Request<'_>) -> bool {
    let set = settings(request);
    let has = |list: &[String], name: &str| list.iter().any(|exempt| exempt == name);
    let why = if has(&set.namespaces, request.namespace()) {
        "namespace"
    } else if has(&set.usernames, &request.review.call.identity.username) {
        "user"
    } else {
        return false;
    };
    annotate(request, "exempt", why.to_owned());
    true
}

/// Returns whether the pod's runtime class is exempt.
fn runs_exempt(request: &Request<'_>, pod: &Value) -> bool {
    let class = text(pod, "/spec/runtimeClassName");
    !class.is_empty() && settings(request).runtime_classes.iter().any(|exempt| exempt == class)
}

fn refuse_labels(request: &Request<'_>, causes: &[Cause]) -> Result<(), Refusal> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(&request.review.call.info, request.name(), causes.to_vec()))
}

/// Builds warnings about the pods of a namespace, grouped by failures.
fn of_existing(
    request: &Request<'_>,
    namespace: &str,
    enforce: LevelVersion,
) -> Result<Vec<String>, Refusal> {
    let mut pods = request.all_packed("pods", Some(namespace))?;
    if !settings(request).runtime_classes.is_empty() {
        pods.retain(|pod| !runs_exempt(request, &pod.object.values()));
    }
    let mut controllers = HashSet::new();
    // One pod of each controller comes first, as the pods of a controller are alike.
    let (first, others): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
        interrupt::checkpoint();
        let head = pod.object.head();
        let mut owners = items(&head, "/metadata/ownerReferences");
        owners
            .find(|owner| owner["controller"] == true)
            .is_none_or(|owner| controllers.insert(text(owner, "/uid").to_owned()))
    });
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in first.into_iter().chain(others).take(MOST_PODS) {
        interrupt::checkpoint();
        let pod = pod.object.values();
        let failures = check::evaluate(enforce, &Subject::of(&pod));
        if !failures.is_empty() {
            found.entry(failures.reasons()).or_default().push(object::name(&pod).to_owned());
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > MOST_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
            pods.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {} violate the new PodSecurity enforce level {}",
            go::quote(namespace),
            go::quote(&enforce.to_string())
        ));
    }
    let mut decorated: Vec<String> = found
        .into_iter()
        .map(|(reasons, pods)| {
            let least = pods.iter().min().map(String::as_str).unwrap_or_default();
            match pods.len() {
                1 => format!("{least}: {reasons}"),
                2 => format!("{least} (and 1 other pod): {reasons}"),
                count => format!("{least} (and {} other pods): {reasons}", count.saturating_sub(1)),
            }
        })
        .collect();
    decorated.sort();
    warnings.extend(decorated);
    Ok(warnings)
}

fn of_pod(request: &Request<'_>) -> Result<(), Refusal> {
    if is_exempt(request) {
        return Ok(());
    }
    let Some(namespace) = request.stored("namespaces", "", request.namespace()) else { return Ok(()) };
    let (policy, wrong) = Policy::of(&namespace, &settings(request).defaults);
    let pod = request.object();
    if wrong.is_empty() && policy.is_privileged() {
        annotate(request, "enforce-policy", "privileged:latest".to_owned());
        return Ok(());
    }
    if request.review.operation == Operation::Update && !is_significant(pod, request.old()) {
        return Ok(());
    }
    if runs_exempt(request, pod) {
        annotate(request, "exempt", "runtimeClass".to_owned());
        return Ok(());
    }
    let subject = Subject::of(pod);
    tell_wrong(request, &wrong);
    annotate(request, "enforce-policy", policy.enforce.to_string());
    let failures = check::evaluate(policy.enforce, &subject);
    if !failures.is_empty() {
        tell_audit(request, &policy, &subject);
        return Err(request.forbidden(&format!(
            "violates PodSecurity {}: {failures}",
            go::quote(&policy.enforce.to_string())
        )));
    }
    warn(request, &policy, &subject);
    Ok(())
}

/// Checks a pod template for warnings and audit only: the pods that are created from it are enforced.
fn of_template(request: &Request<'_>, template: &Value) {
    if is_exempt(request) {
        return;
    }
    let Some(namespace) = request.stored("namespaces", "", request.namespace()) else { return };
    let (policy, wrong) = Policy::of(&namespace, &settings(request).defaults);
    let says_nothing = [policy.warn, policy.audit].iter().all(|mode| mode.level == Level::Privileged);
    if wrong.is_empty() && says_nothing {
        return;
    }
    if runs_exempt(request, template) {
        annotate(request, "exempt", "runtimeClass".to_owned());
        return;
    }
    tell_wrong(request, &wrong);
    warn(request, &policy, &Subject::of(template));
}

fn warn(request: &Request<'_>, policy: &Policy, subject: &Subject<'_>) {
    tell_audit(request, policy, subject);
    if let Some(text) = would_violate(policy.warn, subject) {
        request.review.call.warnings.add(text);
    }
}

fn tell_audit(request: &Request<'_>, policy: &Policy, subject: &Subject<'_>) {
    if let Some(violations) = would_violate(policy.audit, subject) {
        annotate(request, "audit-violations", violations);
    }
}

/// Adds invalid labels to the audit event; they count as the strictest level.
fn tell_wrong(request: &Request<'_>, wrong: &[Cause]) {
    if !wrong.is_empty() {
        let told = together(wrong.iter().map(ToString::to_string));
        annotate(request, "error", format!("Failed to parse policy: {told}"));
    }
}

/// Adds an annotation to the audit event.
fn annotate(request: &Request<'_>, name: &str, value: String) {
    let key = format!("pod-security.kubernetes.io/{name}");
    request.review.call.warnings.annotate([(key, value)]);
}

fn would_violate(level: LevelVersion, subject: &Subject<'_>) -> Option<String> {
    let failures: Failures = check::evaluate(level, subject);
    (!failures.is_empty())
        .then(|| format!("would violate PodSecurity {}: {failures}", go::quote(&level.to_string())))
}

/// Returns whether an update of a pod can change a check: new images or containers. Other checked fields are
/// immutable.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let lists = ["/spec/containers", "/spec/initContainers"].into_iter().any(|list| {
        let (new, old): (Vec<_>, Vec<_>) = (items(pod, list).collect(), items(old, list).collect());
        new.len() != old.len() || new.iter().zip(&old).any(|(new, old)| new["image"] != old["image"])
    });
    let mut ephemeral = items(pod, "/spec/ephemeralContainers");
    lists
        || ephemeral.any(|container| {
            let mut before = items(old, "/spec/ephemeralContainers");
            before
                .find(|before| before["name"] == container["name"])
                .is_none_or(|before| before["image"] != container["image"])
        })
}

/// Without labels or settings every pod is admitted.
fn alone(request: &Request<'_>) -> Turn {
    let is_labelled = || {
        let namespace = request.stored("namespaces", "", request.namespace());
        namespace.is_some_and(|namespace| {
            object::meta_map(&namespace, "labels")
                .any(|(key, _)| key.starts_with("pod-security.kubernetes.io/"))
        })
    };
    let is_set = request.live.settings.pod_security != PodSecurity::default();
    Turn::acts_if(request.review.call.info.scope == Scope::Cluster || is_set || is_labelled())
}

#[cfg(test)]
mod tests;
