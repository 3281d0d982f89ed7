//! Renders the results of `admit check` as one JSON document, written object by object.

use admit_policy::apply::{Applied, Identity};
use admit_policy::{Missed, PolicyOutcome, RuleOutcome, Skipped, Status, Verdict};
use serde_json::{Value, json};

use super::totals::{ByPolicy, Totals};
use super::{ObjectReport, Outcome};
use crate::cli::render::deeper;

/// Renders one object of the list, after `before` others.
pub(super) fn object(object: &ObjectReport, before: usize) -> String {
    let opening = if before == 0 { "{\n  \"objects\": [\n    " } else { ",\n    " };
    format!("{opening}{}", deeper(&object_json(object), "\n    "))
}

/// Renders the rest of the document, after `before` objects: `"left"`, `"policies"`, `"summary"`.
pub(super) fn rest(totals: &Totals, left: &[Identity], before: usize) -> String {
    let left: Vec<Value> = left.iter().map(identity_json).collect();
    let policy = |ByPolicy { name, objects, denied, warned, audited }: &ByPolicy<'_>| json!({"policy": name, "objects": objects, "denied": denied, "warned": warned, "audited": audited});
    let policies: Vec<Value> = totals.policies().iter().map(policy).collect();
    let mut summary = json!({"objects": totals.objects()});
    if let Value::Object(fields) = &mut summary {
        let counts = Outcome::ALL.map(|outcome| (outcome.as_str().to_owned(), json!(totals.count(outcome))));
        fields.extend(counts);
    }
    let objects = if before == 0 { "{\n  \"objects\": []" } else { "\n  ]" };
    let (left, policies) = (deeper(&left.into(), "\n  "), deeper(&policies.into(), "\n  "));
    let summary = deeper(&summary, "\n  ");
    format!("{objects},\n  \"left\": {left},\n  \"policies\": {policies},\n  \"summary\": {summary}\n}}\n")
}

pub(super) fn object_json(object: &ObjectReport) -> Value {
    let ObjectReport { file, identity, applied, .. } = object;
    let mut document = identity_json(identity);
    if let (Value::Object(fields), Value::Object(more)) = (&mut document, applied_json(applied)) {
        fields.insert("file".to_owned(), json!(file));
        fields.insert("line".to_owned(), json!(object.region().line));
        fields.extend(more);
    }
    document
}

pub(in crate::cli) fn applied_json(applied: &Applied) -> Value {
    let rules: Vec<Value> = applied
        .outcomes
        .iter()
        .flat_map(|outcome| outcome.rules.iter().map(move |rule| rule_json(outcome, rule)))
        .collect();
    let skipped: Vec<Value> = applied
        .outcomes
        .iter()
        .filter_map(|outcome| Some(skipped_json(outcome, outcome.skipped.as_ref()?)))
        .collect();
    json!({
        "change": applied.change.as_str(),
        "outcome": Outcome::of(applied).as_str(),
        "status": applied.refusal.as_ref().map(Status::to_value),
        "warnings": applied.warnings,
        "auditAnnotations": applied.audit_annotations,
        "validated": applied.validated,
        "asWritten": applied.as_written,
        "assumed": applied.assumed,
        "rules": rules,
        "skipped": skipped,
    })
}

fn skipped_json(outcome: &PolicyOutcome, skipped: &Skipped) -> Value {
    let (path, message) = match skipped {
        Skipped::False { path } => (Some(path), None),
        Skipped::Failed { message } => (None, Some(message.clone())),
        Skipped::Excepted(excepted) => (None, Some(excepted.to_string())),
    };
    json!({
        "policy": &*outcome.policy, "binding": outcome.binding.as_deref(), "params": outcome.param,
        "path": path, "message": message,
    })
}

pub(in crate::cli::render) fn missed_json(missed: &[Missed]) -> Value {
    let one = |Missed { policy, binding, field, reason }: &Missed| json!({"policy": policy, "binding": binding, "path": field, "reason": reason});
    missed.iter().map(one).collect()
}

fn rule_json(outcome: &PolicyOutcome, rule: &RuleOutcome) -> Value {
    let (verdict, message) = match &rule.verdict {
        Verdict::Admitted => ("admitted", None),
        Verdict::Failed { message, .. } => ("failed", Some(message)),
        Verdict::Errored { message, .. } => ("error", Some(message)),
    };
    let enforced: Vec<&str> = rule.enforced.iter().map(|action| action.as_str()).collect();
    json!({
        "policy": &*outcome.policy, "binding": outcome.binding.as_deref(), "params": outcome.param,
        "path": rule.path.to_string(), "verdict": verdict, "message": message, "enforced": enforced,
    })
}

pub(in crate::cli::render) fn identity_json(identity: &Identity) -> Value {
    json!({
        "apiVersion": identity.kind.api_version(), "kind": identity.kind.kind,
        "namespace": identity.namespace, "name": identity.name,
    })
}
