//! Renders the results of `admit scan`: for people, and as a List of reports.

use std::fmt::Write as _;

use admit_analysis::scan::{Finding, Outcome, Report, Summary};
use serde_json::json as document;

use super::{Palette, counted};
use crate::cli::render;
use crate::cli::scan::Scanned;

/// Renders a paragraph for each namespace with a result that does not pass, and the totals.
pub(in crate::cli) fn text(scanned: &Scanned, palette: Palette) -> String {
    let mut out = String::new();
    for (namespace, report) in &scanned.reports {
        write_report(&mut out, namespace, report, palette);
    }
    let sum = |count: fn(&Report) -> u64| scanned.reports.values().map(count).fold(0, u64::saturating_add);
    let fails = sum(|report| report.summary.fail);
    let word = if fails > 0 { palette.red("FAIL") } else { palette.green("OK") };
    let objects = usize::try_from(sum(|report| report.objects)).unwrap_or(usize::MAX);
    let _ = write!(
        out,
        "{word}: {}: {fails} fail, {} error, {} warn, {} skip, {} pass",
        counted(objects, "object"),
        sum(|report| report.summary.error),
        sum(|report| report.summary.warn),
        sum(|report| report.summary.skip),
        sum(|report| report.summary.pass),
    );
    if scanned.late > 0 {
        let _ = write!(out, "; {} not decided in time (--timeout)", counted(scanned.late, "object"));
    }
    out.push('\n');
    out
}

fn write_report(out: &mut String, namespace: &str, report: &Report, palette: Palette) {
    let Summary { pass, fail, warn, error, skip } = report.summary;
    let place = if namespace.is_empty() { "in no namespace" } else { namespace };
    let _ = writeln!(out, "{place}: {fail} fail, {error} error, {warn} warn, {skip} skip, {pass} pass");
    for finding in report.findings() {
        write_finding(out, finding, palette);
    }
    if report.left_out > 0 {
        let _ = writeln!(out, "  … and {} more", report.left_out);
    }
}

fn write_finding(out: &mut String, finding: &Finding, palette: Palette) {
    let word = format!("{:<5}", finding.outcome.as_str());
    let word = match finding.outcome {
        Outcome::Fail => palette.red(&word),
        Outcome::Error | Outcome::Warn | Outcome::Skip => palette.yellow(&word),
        Outcome::Pass => palette.green(&word),
    };
    let subject = finding.subject.as_ref();
    let subject = subject.map(|subject| format!("{} {}", subject.kind, subject.name)).unwrap_or_default();
    let message = finding.message.replace('\n', "\n        ");
    let excepted = finding.excepted.as_ref().map(|excepted| format!("; {excepted}")).unwrap_or_default();
    let _ = writeln!(out, "  {word} {subject}: {}: {message}{excepted}", finding.policy);
}

/// Renders a List that `kubectl apply -f -` accepts, with a `summary` beside its items.
pub(in crate::cli) fn json(scanned: &Scanned) -> String {
    let sum = |count: fn(&Report) -> u64| scanned.reports.values().map(count).fold(0, u64::saturating_add);
    render::json(&document!({
        "apiVersion": "v1",
        "kind": "List",
        "items": scanned.documents(),
        "summary": {
            "objects": sum(|report| report.objects),
            "pass": sum(|report| report.summary.pass),
            "fail": sum(|report| report.summary.fail),
            "warn": sum(|report| report.summary.warn),
            "error": sum(|report| report.summary.error),
            "skip": sum(|report| report.summary.skip),
            "late": scanned.late,
            "unread": scanned.unread,
        },
    }))
}
