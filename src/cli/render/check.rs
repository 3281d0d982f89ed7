//! What would come of applying manifests.

use std::fmt::Write as _;

use admit_policy::apply::{Applied, Change, Identity};
use admit_policy::decision::{PolicyOutcome, RuleOutcome, Skipped, Status, Verdict};
use admit_policy::vap::Missed;
use serde_json::{Value, json};

use super::{Palette, counted};

/// What came of all objects, in order, and the old ones that have no new one.
#[derive(Debug)]
pub(in crate::cli) struct Report {
    pub(in crate::cli) objects: Vec<ObjectReport>,
    pub(in crate::cli) left: Vec<Identity>,
    /// There is no definition and no policy at all.
    pub(in crate::cli) undecided: bool,
}

/// What came of one object.
#[derive(Debug)]
pub(in crate::cli) struct ObjectReport {
    pub(in crate::cli) file: String,
    pub(in crate::cli) line: usize,
    pub(in crate::cli) identity: Identity,
    pub(in crate::cli) applied: Applied,
}

/// One word for it; of several that hold, the weightiest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Deny,
    Unchanged,
    Unmatched,
    Warn,
    Audit,
    Allow,
}

impl Report {
    /// How many objects would be refused.
    pub(in crate::cli) fn refused(&self) -> usize {
        self.count(Outcome::Deny)
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.objects.iter().filter(|object| object.outcome() == outcome).count()
    }
}

impl ObjectReport {
    fn outcome(&self) -> Outcome {
        Outcome::of(&self.applied)
    }
}

impl Outcome {
    pub(super) fn of(applied: &Applied) -> Self {
        if applied.refusal.is_some() {
            Self::Deny
        } else if applied.change == Change::Unchanged {
            Self::Unchanged
        } else if !applied.is_matched() {
            Self::Unmatched
        } else if !applied.warnings.is_empty() {
            Self::Warn
        } else if applied.is_audited() {
            Self::Audit
        } else {
            Self::Allow
        }
    }

    const ALL: [Self; 6] =
        [Self::Allow, Self::Deny, Self::Warn, Self::Audit, Self::Unmatched, Self::Unchanged];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Unchanged => "unchanged",
            Self::Unmatched => "unmatched",
            Self::Warn => "warn",
            Self::Audit => "audit",
            Self::Allow => "allow",
        }
    }

    /// As the summary counts it.
    fn counted(self) -> &'static str {
        match self {
            Self::Deny => "denied",
            Self::Unchanged => "unchanged",
            Self::Unmatched => "matched by nothing",
            Self::Warn => "allowed with warnings",
            Self::Audit => "allowed and audited",
            Self::Allow => "allowed",
        }
    }
}

/// One line an object, below it what was said, and the sums.
pub(in crate::cli) fn text(report: &Report, verbose: bool, palette: Palette) -> String {
    let mut out = String::new();
    for object in &report.objects {
        draw(&mut out, object, verbose, palette);
    }
    for identity in &report.left {
        line(&mut out, &format!("{:<10}{:<11}{identity}", "left", "-"));
    }
    let sums: Vec<String> = Outcome::ALL
        .into_iter()
        .map(|outcome| (report.count(outcome), outcome))
        .filter(|(count, _)| *count > 0)
        .map(|(count, outcome)| format!("{count} {}", outcome.counted()))
        .collect();
    let word = if report.refused() > 0 { palette.red("FAIL") } else { palette.green("OK") };
    let _ = write!(out, "{word}: {}: {}", counted(report.objects.len(), "object"), sums.join(", "));
    if !report.left.is_empty() {
        let _ =
            write!(out, "; {} without a new one, left as it is", counted(report.left.len(), "old object"));
    }
    if report.undecided && report.count(Outcome::Unmatched) > 0 {
        out.push_str("; there are no policies and no definitions (--policies)");
    }
    out.push('\n');
    out
}

fn draw(out: &mut String, object: &ObjectReport, verbose: bool, palette: Palette) {
    let ObjectReport { file, line: at, identity, applied } = object;
    let outcome = object.outcome();
    let word = format!("{:<10}", outcome.as_str());
    let word = match outcome {
        Outcome::Deny => palette.red(&word),
        Outcome::Allow => palette.green(&word),
        Outcome::Warn | Outcome::Audit | Outcome::Unmatched | Outcome::Unchanged => word,
    };
    // Nothing is sent for what is unchanged, which the first word says already.
    let request = if applied.change == Change::Unchanged { "-" } else { applied.change.as_str() };
    line(out, &format!("{word}{request:<11}{identity}  {file}:{at}"));
    for said in applied.refusal.iter().flat_map(refusal) {
        indented(out, &said);
    }
    for warning in &applied.warnings {
        indented(out, &format!("Warning: {warning}"));
    }
    if outcome == Outcome::Audit {
        for (key, value) in &applied.audit_annotations {
            indented(out, &format!("{key}: {value}"));
        }
    }
    if verbose {
        rule_lines(applied).iter().for_each(|said| indented(out, said));
    }
}

/// The causes by field; where they have none, the message of the `Status`.
pub(super) fn refusal(status: &Status) -> Vec<String> {
    let causes = status.causes();
    if causes.is_empty() || causes.iter().any(|cause| cause.field.is_empty()) {
        return vec![status.message.clone()];
    }
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// What looked at the object, and what it said.
pub(super) fn rule_lines(applied: &Applied) -> Vec<String> {
    let mut lines = Vec::new();
    if applied.validated {
        lines.push("checked by its definition".to_owned());
    }
    if applied.as_written {
        lines.push("taken as written: nothing is known of this kind, not even its defaults".to_owned());
    }
    for outcome in &applied.outcomes {
        let binding = outcome.binding.as_deref().map(|name| format!(", binding {name}")).unwrap_or_default();
        let param = outcome.param.as_deref().map(|name| format!(", params {name}")).unwrap_or_default();
        let head = format!("policy {}{binding}{param}", outcome.policy);
        lines.extend(outcome.skipped.iter().map(|skipped| format!("{head}: {}", skipped_text(skipped))));
        lines.extend(
            outcome.rules.iter().map(|rule| format!("{head}: {}: {}", rule.path, said(&rule.verdict))),
        );
    }
    lines
}

fn skipped_text(skipped: &Skipped) -> String {
    match skipped {
        Skipped::False { path } => format!("not asked: {path} is false"),
        Skipped::Failed { message } => format!("not asked: its match conditions failed, ignored: {message}"),
    }
}

/// Why a policy was not asked.
pub(in crate::cli) fn missed_line(missed: &Missed) -> String {
    let Missed { policy, binding, field, reason } = missed;
    let binding = binding.as_deref().map(|name| format!(", binding {name}")).unwrap_or_default();
    let colon = if field.is_empty() { "" } else { ": " };
    format!("policy {policy}{binding} does not match: {field}{colon}{reason}")
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Admitted => "holds".to_owned(),
        Verdict::Failed { message, .. } => format!("fails: {message}"),
        Verdict::Errored { message, denies: true } => format!("error: {message}"),
        Verdict::Errored { message, denies: false } => format!("error, ignored: {message}"),
    }
}

fn indented(out: &mut String, text: &str) {
    for part in text.lines() {
        line(out, &format!("    {part}"));
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// One document: `{"objects": [{…, "outcome", "status", "rules"}], "left", "summary"}`.
pub(in crate::cli) fn json(report: &Report) -> String {
    let objects: Vec<Value> = report.objects.iter().map(object_json).collect();
    let left: Vec<Value> = report.left.iter().map(identity_json).collect();
    let mut summary = json!({"objects": report.objects.len()});
    if let Value::Object(fields) = &mut summary {
        fields
            .extend(Outcome::ALL.map(|outcome| (outcome.as_str().to_owned(), json!(report.count(outcome)))));
    }
    super::json(&json!({"objects": objects, "left": left, "summary": summary}))
}

fn object_json(object: &ObjectReport) -> Value {
    let ObjectReport { file, line, identity, applied } = object;
    let mut document = identity_json(identity);
    if let (Value::Object(fields), Value::Object(more)) = (&mut document, applied_json(applied)) {
        fields.insert("file".to_owned(), json!(file));
        fields.insert("line".to_owned(), json!(line));
        fields.extend(more);
    }
    document
}

pub(super) fn applied_json(applied: &Applied) -> Value {
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
        "status": applied.refusal.as_ref().map(status_json),
        "warnings": applied.warnings,
        "auditAnnotations": applied.audit_annotations,
        "validated": applied.validated,
        "asWritten": applied.as_written,
        "rules": rules,
        "skipped": skipped,
    })
}

fn skipped_json(outcome: &PolicyOutcome, skipped: &Skipped) -> Value {
    let (path, message) = match skipped {
        Skipped::False { path } => (Some(path), None),
        Skipped::Failed { message } => (None, Some(message)),
    };
    json!({
        "policy": &*outcome.policy, "binding": outcome.binding.as_deref(), "params": outcome.param,
        "path": path, "message": message,
    })
}

pub(super) fn missed_json(missed: &[Missed]) -> Value {
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

pub(super) fn identity_json(identity: &Identity) -> Value {
    json!({
        "apiVersion": identity.kind.api_version(), "kind": identity.kind.kind,
        "namespace": identity.namespace, "name": identity.name,
    })
}

fn status_json(status: &Status) -> Value {
    let details = status.details.clone().unwrap_or_default();
    let causes: Vec<Value> = details
        .causes
        .iter()
        .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
        .collect();
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": status.message, "reason": status.reason,
        "details": {
            "name": details.name, "group": details.group, "kind": details.kind,
            "causes": causes,
        },
        "code": status.code,
    })
}
