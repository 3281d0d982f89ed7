//! Renders the results of `admit check` for people: a line for each object, its messages below it, and totals at the
//! end.

use std::fmt::Write as _;

use admit_policy::apply::{Applied, Change};
use admit_policy::{Missed, RuleOutcome, RulePath, Skipped, Status, Verdict};

use super::totals::{ByPolicy, Totals};
use super::{ObjectReport, Outcome, Rest, Style};
use crate::cli::render::{Palette, counted};

/// The heads of the columns of totals.
const COLUMNS: [&str; 4] = ["objects", "denied", "warned", "audited"];
/// The width between two columns.
const GAP: usize = 2;

/// Renders one line for the object, with its messages below it.
pub(super) fn draw(out: &mut String, object: &ObjectReport, verbose: bool, palette: Palette) {
    let ObjectReport { identity, applied, .. } = object;
    let outcome = object.outcome();
    let word = format!("{:<10}", outcome.as_str());
    let word = match outcome {
        Outcome::Deny => palette.red(&word),
        Outcome::Allow => palette.green(&word),
        Outcome::Warn | Outcome::Audit | Outcome::Unmatched | Outcome::Unchanged => word,
    };
    // An unchanged object has no request.
    let request = if applied.change == Change::Unchanged { "-" } else { applied.change.as_str() };
    line(out, &format!("{word}{request:<11}{identity}  {}", object.place()));
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

/// Returns the causes by field, or the message of the `Status` if there are none.
pub(in crate::cli::render) fn refusal(status: &Status) -> Vec<String> {
    let causes = status.causes();
    if causes.is_empty() || causes.iter().any(|cause| cause.field.is_empty()) {
        return vec![status.message.clone()];
    }
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// Returns a line for each rule that evaluated the object, with its message.
pub(in crate::cli::render) fn rule_lines(applied: &Applied) -> Vec<String> {
    let mut lines = Vec::new();
    if applied.validated {
        lines.push("checked by its definition".to_owned());
    }
    if applied.as_written {
        lines.push("taken as written: nothing is known of this kind, not even its defaults".to_owned());
    }
    lines.extend(applied.assumed.iter().map(|named| format!("{named} is in no file: taken as being there")));
    for outcome in &applied.outcomes {
        let binding = outcome.binding.as_deref().map(|name| format!(", binding {name}")).unwrap_or_default();
        let param = outcome.param.as_deref().map(|name| format!(", params {name}")).unwrap_or_default();
        let head = format!("policy {}{binding}{param}", outcome.policy);
        lines.extend(outcome.skipped.iter().map(|skipped| format!("{head}: {}", skipped_text(skipped))));
        lines.extend(outcome.rules.iter().map(|rule| format!("{head}: {}: {}", rule.path, said(rule))));
    }
    lines
}

fn skipped_text(skipped: &Skipped) -> String {
    match skipped {
        Skipped::False { path } => format!("not asked: {path} is false"),
        Skipped::Failed { message } => format!("not asked: its match conditions failed, ignored: {message}"),
        Skipped::Excepted(excepted) => format!("not asked: {excepted}"),
    }
}

/// Returns a line about why a policy was not evaluated.
pub(in crate::cli) fn missed_line(missed: &Missed) -> String {
    let Missed { policy, binding, field, reason } = missed;
    let binding = binding.as_deref().map(|name| format!(", binding {name}")).unwrap_or_default();
    let colon = if field.is_empty() { "" } else { ": " };
    format!("policy {policy}{binding} does not match: {field}{colon}{reason}")
}

fn said(rule: &RuleOutcome) -> String {
    match &rule.verdict {
        Verdict::Admitted if matches!(rule.path, RulePath::Mutation(_)) => "applied".to_owned(),
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

/// Renders the totals after all objects.
pub(super) fn sums(totals: &Totals, rest: &Rest<'_>, style: Style) -> String {
    let Rest { left, undecided } = rest;
    let mut out = String::new();
    if !style.only_denied {
        left.iter().for_each(|identity| line(&mut out, &format!("{:<10}{:<11}{identity}", "left", "-")));
    }
    // A single object's own lines are enough.
    if totals.objects() > 1 {
        by_policy(&mut out, &totals.policies());
    }
    let palette = style.palette;
    let word = if totals.count(Outcome::Deny) > 0 { palette.red("FAIL") } else { palette.green("OK") };
    let _ = write!(out, "{word}: {}", totals.sentence());
    if !left.is_empty() {
        let _ = write!(out, "; {} without a new one, left as it is", counted(left.len(), "old object"));
    }
    match totals.assuming() {
        0 => {}
        1 => out.push_str("; 1 object names what no file has, taken as being there (-v)"),
        count => {
            let _ = write!(out, "; {count} objects name what no file has, taken as being there (-v)");
        }
    }
    if *undecided && totals.count(Outcome::Unmatched) > 0 {
        out.push_str("; there are no policies and no definitions (--policies)");
    }
    out.push('\n');
    out
}

/// Renders a line for each evaluated policy, sorted by denials.
fn by_policy(out: &mut String, rows: &[ByPolicy<'_>]) {
    if rows.is_empty() {
        return;
    }
    let width =
        rows.iter().map(|row| row.name.chars().count()).chain(["policy".len()]).max().unwrap_or_default();
    let _ = write!(out, "{:<width$}", "policy");
    COLUMNS.iter().for_each(|column| {
        let _ = write!(out, "{:GAP$}{column}", "");
    });
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{:<width$}", row.name);
        for (column, count) in COLUMNS.iter().zip([row.objects, row.denied, row.warned, row.audited]) {
            let _ = write!(out, "{:GAP$}{count:>1$}", "", column.len());
        }
        out.push('\n');
    }
}
