//! Renders the result of `admit explain`: the value of every expression that was evaluated.

use std::collections::BTreeSet;

use admit_policy::apply::{Applied, Change, Identity};
use admit_policy::explanation::{Part, tree};
use admit_policy::{ExpressionId, ObjectChange, Origin, Recorded, RecordedTrace, suite};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::Palette;
use super::check::{Outcome, applied_json, identity_json, missed_json, missed_line, refusal, rule_lines};
use super::diff;
use super::suites::CaseReport;

/// The longest text of an expression or value in a tree; longer ones are cut.
const TEXT: usize = 100;
/// The most parts of one part that are drawn; a macro over a long list has many.
const PARTS: usize = 40;

/// A decision, with the evaluations of its expressions.
#[derive(Debug)]
pub(in crate::cli) struct Explained {
    pub(in crate::cli) file: String,
    pub(in crate::cli) line: usize,
    pub(in crate::cli) subject: Subject,
    pub(in crate::cli) recorded: IndexMap<ExpressionId, Recorded>,
}

#[derive(Debug)]
pub(in crate::cli) enum Subject {
    Case(Box<CaseReport>),
    Object(Box<(Identity, Applied)>),
}

impl Explained {
    /// Whether a definition or a check of the server rejected the object.
    fn is_refused_before_policies(&self) -> bool {
        match &self.subject {
            Subject::Case(_) => false,
            Subject::Object(object) => object.1.refusal.is_some() && object.1.outcomes.is_empty(),
        }
    }

    /// Whether the case passed, or the object is admitted.
    pub(in crate::cli) fn is_expected(&self) -> bool {
        match &self.subject {
            Subject::Case(report) => report.result.passed(),
            Subject::Object(object) => object.1.refusal.is_none(),
        }
    }
}

/// Renders the outcome and its reason, then a tree for every evaluated expression, and finally the policies that were not evaluated:
/// only their number if others were, unless `verbose`.
pub(in crate::cli) fn text(explained: &[Explained], verbose: bool, palette: Palette) -> String {
    let mut lines = Vec::new();
    for (index, one) in explained.iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        head(&mut lines, one, palette);
        if one.is_refused_before_policies() {
            lines.push("  no policy is asked about what cannot be stored".to_owned());
        }
        if one.recorded.is_empty() {
            lines.push("  no expression was evaluated".to_owned());
        }
        let mut origin = None;
        for (id, recorded) in &one.recorded {
            if origin != Some(&id.origin) {
                lines.push(format!("  {}", origin_text(&id.origin)));
                origin = Some(&id.origin);
            }
            expression(&mut lines, id, recorded, palette);
        }
        lines.extend(missed(one, verbose).into_iter().map(|line| format!("  {line}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn head(lines: &mut Vec<String>, one: &Explained, palette: Palette) {
    let place = format!("{}:{}", one.file, one.line);
    let coloured = |word: &str| if one.is_expected() { palette.green(word) } else { palette.red(word) };
    match &one.subject {
        Subject::Case(report) => {
            let outcome = coloured(report.result.outcome.as_str());
            lines.push(format!("{outcome}  {}  {place}", report.name));
            if !report.result.message.is_empty() {
                lines.push(format!("  {}: {}", report.result.field, report.result.message));
            }
            for mismatch in &report.result.mismatches {
                lines.push(format!(
                    "  {}: expected `{}`, not `{}`",
                    mismatch.what, mismatch.expected, mismatch.actual
                ));
            }
            lines.extend(report.result.notes.iter().map(|note| format!("  note: {note}")));
        }
        Subject::Object(object) => {
            let (identity, applied) = &**object;
            let outcome = coloured(Outcome::of(applied).as_str());
            // For an unchanged object, the outcome already says so.
            let change = if applied.change == Change::Unchanged { "" } else { applied.change.as_str() };
            let gap = if change.is_empty() { "" } else { " " };
            lines.push(format!("{outcome}  {change}{gap}{identity}  {place}"));
            let refused = applied.refusal.iter().flat_map(refusal);
            lines.extend(refused.chain(rule_lines(applied)).map(|line| format!("  {line}")));
        }
    }
}

/// Returns why policies were not evaluated. If none was, that is the answer; otherwise it is a detail.
fn missed(one: &Explained, verbose: bool) -> Vec<String> {
    let (missed, nothing_else) = match &one.subject {
        Subject::Case(report) => (&report.result.missed, report.result.outcome == suite::Outcome::Unmatched),
        Subject::Object(object) => (&object.1.missed, matches!(Outcome::of(&object.1), Outcome::Unmatched)),
    };
    if verbose || nothing_else {
        return missed.iter().map(missed_line).collect();
    }
    let policies: BTreeSet<&str> = missed.iter().map(|missed| &*missed.policy).collect();
    match policies.len() {
        0 => Vec::new(),
        1 => vec!["1 policy does not match (-v)".to_owned()],
        many => vec![format!("{many} policies do not match (-v)")],
    }
}

fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Policy { name } => format!("policy {name}"),
        Origin::Mutating { name } => format!("mutating policy {name}"),
        Origin::Definition { name, version } => format!("definition {name}, version {version}"),
        Origin::Configuration { kind, name } => format!("{kind} {name}").trim_end().to_owned(),
    }
}

fn expression(lines: &mut Vec<String>, id: &ExpressionId, recorded: &Recorded, palette: Palette) {
    for (index, trace) in recorded.traces.iter().enumerate() {
        // Variables are evaluated again for messages.
        if recorded.traces.iter().take(index).any(|earlier| earlier == trace) {
            continue;
        }
        let at = if trace.at.is_empty() { String::new() } else { format!(" at {}", trace.at) };
        lines.push(format!("    {}{at}, cost {}", id.path, trace.cost));
        for part in tree(&recorded.text, trace) {
            draw(lines, &part, 3, palette);
        }
        if trace.omitted > 0 {
            lines.push(format!("      … and {} more values", trace.omitted));
        }
        lines.extend(trace.change.iter().flat_map(changed).map(|line| format!("      {line}")));
    }
    let shown = u64::try_from(recorded.traces.len()).unwrap_or(u64::MAX);
    if recorded.evaluations > shown {
        lines.push(format!("    … and {} more evaluations", recorded.evaluations - shown));
    }
}

/// Returns the difference that a mutation made.
fn changed(change: &ObjectChange) -> Vec<String> {
    let ObjectChange { before, after } = change;
    if before == after {
        return vec!["changes nothing".to_owned()];
    }
    let written = |object: &Value| super::json(object);
    let difference = diff::lines(&written(before), &written(after)).into_iter();
    std::iter::once("changes the object:".to_owned()).chain(difference).collect()
}

fn draw(lines: &mut Vec<String>, part: &Part<'_>, depth: usize, palette: Palette) {
    let round = part.round.map(|round| format!("#{round} ")).unwrap_or_default();
    let outcome = match part.outcome {
        Ok(value) if value == "true" => palette.green(value),
        Ok(value) if value == "false" => palette.red(value),
        Ok(value) => one_line(value),
        Err(error) => palette.red(&format!("error: {error}")),
    };
    lines.push(format!("{}{round}{}  = {outcome}", "  ".repeat(depth), one_line(part.text)));
    for below in part.parts.iter().take(PARTS) {
        draw(lines, below, depth + 1, palette);
    }
    if let Some(more) = part.parts.len().checked_sub(PARTS).filter(|more| *more > 0) {
        lines.push(format!("{}… and {more} more", "  ".repeat(depth + 1)));
    }
}

/// Returns the text on one line.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= TEXT {
        return text;
    }
    text.chars().take(TEXT - 1).chain(['…']).collect()
}

/// Renders a list: `[{"file", "line", "outcome", …, "expressions"}]`.
pub(in crate::cli) fn json(explained: &[Explained]) -> String {
    let all: Vec<Value> = explained.iter().map(one_json).collect();
    super::json(&json!({"explained": all}))
}

fn one_json(one: &Explained) -> Value {
    let mut document = match &one.subject {
        Subject::Case(report) => json!({
            "case": report.name,
            "outcome": report.result.outcome.as_str(),
            "expected": report.expected.as_str(),
            "passed": report.result.passed(),
            "message": report.result.message,
            "field": report.result.field,
            "missed": missed_json(&report.result.missed),
        }),
        Subject::Object(object) => {
            let (identity, applied) = &**object;
            let mut document = identity_json(identity);
            if let (Value::Object(fields), Value::Object(more)) = (&mut document, applied_json(applied)) {
                fields.extend(more);
                fields.insert("missed".to_owned(), missed_json(&applied.missed));
            }
            document
        }
    };
    let expressions: Vec<Value> =
        one.recorded.iter().map(|(id, recorded)| expression_json(id, recorded)).collect();
    if let Value::Object(fields) = &mut document {
        fields.insert("file".to_owned(), json!(one.file));
        fields.insert("line".to_owned(), json!(one.line));
        fields.insert("expressions".to_owned(), json!(expressions));
    }
    document
}

fn expression_json(id: &ExpressionId, recorded: &Recorded) -> Value {
    let (policy, definition, version) = match &id.origin {
        Origin::Policy { name } | Origin::Mutating { name } => (Some(name), None, None),
        Origin::Definition { name, version } => (None, Some(name), Some(version)),
        Origin::Configuration { .. } => (None, None, None),
    };
    json!({
        "policy": policy, "definition": definition, "version": version, "path": id.path,
        "expression": recorded.text, "evaluations": evaluations(recorded),
    })
}

/// Returns the recorded evaluations of one expression, each `{"at", "cost", "omitted", "tree"}`.
pub(in crate::cli) fn evaluations(recorded: &Recorded) -> Vec<Value> {
    recorded.traces.iter().map(|trace| trace_json(&recorded.text, trace)).collect()
}

fn trace_json(text: &str, trace: &RecordedTrace) -> Value {
    let tree: Vec<Value> = tree(text, trace).iter().map(part_json).collect();
    let mut drawn = json!({"at": trace.at, "cost": trace.cost, "omitted": trace.omitted, "tree": tree});
    if let (Value::Object(fields), Some(ObjectChange { before, after })) = (&mut drawn, &trace.change) {
        fields.insert("change".to_owned(), json!({"before": before, "after": after}));
    }
    drawn
}

fn part_json(part: &Part<'_>) -> Value {
    let parts: Vec<Value> = part.parts.iter().map(part_json).collect();
    json!({
        "expression": part.text, "round": part.round,
        "value": part.outcome.as_ref().ok(), "error": part.outcome.as_ref().err().map(ToString::to_string),
        "parts": parts,
    })
}
