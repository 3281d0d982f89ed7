//! What would come of applying manifests.

use std::fmt::Write as _;

use admit_policy::apply::{Applied, Change, Identity};
use admit_policy::decision::{PolicyOutcome, RuleOutcome, Skipped, Status, Verdict};
use admit_policy::vap::Missed;
use serde_json::{Value, json};

use super::{Output, Palette, counted};

/// Draws what came of objects one after the other, none of which is kept.
#[derive(Debug)]
pub(in crate::cli) struct Drawing {
    output: Output,
    style: Style,
    counts: [usize; Outcome::ALL.len()],
    /// What was drawn, in JSON, where the next has a comma before it.
    drawn: usize,
}

/// How much is said, and in which colours.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Style {
    pub(in crate::cli) verbose: bool,
    /// Nothing but what is refused; it is counted among all others all the same.
    pub(in crate::cli) only_denied: bool,
    pub(in crate::cli) palette: Palette,
}

/// What is said after all objects.
#[derive(Debug)]
pub(in crate::cli) struct Rest<'i> {
    /// Old objects that have no new one.
    pub(in crate::cli) left: &'i [Identity],
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

impl Drawing {
    pub(in crate::cli) fn new(output: Output, style: Style) -> Self {
        Self { output, style, counts: Default::default(), drawn: 0 }
    }

    /// How many objects would be refused.
    pub(in crate::cli) fn refused(&self) -> usize {
        self.count(Outcome::Deny)
    }

    fn count(&self, outcome: Outcome) -> usize {
        Outcome::ALL.iter().zip(self.counts).find(|(of, _)| **of == outcome).map_or(0, |(_, count)| count)
    }

    fn objects(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The next object.
    pub(in crate::cli) fn object(&mut self, object: &ObjectReport) -> String {
        let outcome = object.outcome();
        let mut counts = Outcome::ALL.iter().zip(&mut self.counts);
        if let Some((_, count)) = counts.find(|(of, _)| **of == outcome) {
            *count = count.saturating_add(1);
        }
        let mut out = String::new();
        if self.style.only_denied && outcome != Outcome::Deny {
            return out;
        }
        match self.output {
            Output::Text => draw(&mut out, object, self.style.verbose, self.style.palette),
            Output::Json => {
                out.push_str(if self.drawn == 0 { "{\n  \"objects\": [\n    " } else { ",\n    " });
                out.push_str(&deeper(&object_json(object), "\n    "));
            }
        }
        self.drawn = self.drawn.saturating_add(1);
        out
    }

    /// What comes after the last object.
    pub(in crate::cli) fn rest(&self, rest: &Rest<'_>) -> String {
        match self.output {
            Output::Text => self.sums(rest),
            Output::Json => self.summary(rest.left),
        }
    }

    fn sums(&self, Rest { left, undecided }: &Rest<'_>) -> String {
        let mut out = String::new();
        if !self.style.only_denied {
            left.iter().for_each(|identity| line(&mut out, &format!("{:<10}{:<11}{identity}", "left", "-")));
        }
        let sums: Vec<String> = Outcome::ALL
            .into_iter()
            .map(|outcome| (self.count(outcome), outcome))
            .filter(|(count, _)| *count > 0)
            .map(|(count, outcome)| format!("{count} {}", outcome.counted()))
            .collect();
        let palette = self.style.palette;
        let word = if self.refused() > 0 { palette.red("FAIL") } else { palette.green("OK") };
        let _ = write!(out, "{word}: {}: {}", counted(self.objects(), "object"), sums.join(", "));
        if !left.is_empty() {
            let _ = write!(out, "; {} without a new one, left as it is", counted(left.len(), "old object"));
        }
        if *undecided && self.count(Outcome::Unmatched) > 0 {
            out.push_str("; there are no policies and no definitions (--policies)");
        }
        out.push('\n');
        out
    }

    /// One document in all: `{"objects": [{…, "outcome", "status", "rules"}], "left", "summary"}`.
    fn summary(&self, left: &[Identity]) -> String {
        let left: Vec<Value> = left.iter().map(identity_json).collect();
        let mut summary = json!({"objects": self.objects()});
        if let Value::Object(fields) = &mut summary {
            let counts =
                Outcome::ALL.map(|outcome| (outcome.as_str().to_owned(), json!(self.count(outcome))));
            fields.extend(counts);
        }
        let objects = if self.drawn == 0 { "{\n  \"objects\": []" } else { "\n  ]" };
        let (left, summary) = (deeper(&left.into(), "\n  "), deeper(&summary, "\n  "));
        format!("{objects},\n  \"left\": {left},\n  \"summary\": {summary}\n}}\n")
    }
}

/// Indented below a field; a text in JSON has no line feeds of its own.
fn deeper(document: &Value, indented: &str) -> String {
    format!("{document:#}").replace('\n', indented)
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

/// One line an object, below it what was said.
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
