//! Renders test results for people: each failure with its place and reason, and totals; every suite and case on
//! request.

use std::fmt::Write as _;

use admit_policy::suite::{Mismatch, Outcome};

use super::{CaseReport, Report, RuleValues, SuiteReport};
use crate::cli::Exit;
use crate::cli::render::check::missed_line;
use crate::cli::render::{Palette, counted, diff};

pub(in crate::cli) fn text(report: &Report, verbose: bool, palette: Palette) -> String {
    let mut out = String::new();
    let told: Vec<&SuiteReport> =
        report.shown().filter(|suite| verbose || suite.exit() != Exit::Expected).collect();
    let width = told.iter().map(|suite| suite.file.chars().count()).max().unwrap_or_default();
    for suite in told {
        draw_suite(&mut out, suite, (verbose, width), palette);
    }
    line(&mut out, &painted(&last_line(report), palette));
    out
}

/// Colours the first word of the totals by the result.
fn painted(sums: &str, palette: Palette) -> String {
    match sums.split_once(':') {
        Some(("PASS", rest)) => format!("{}:{rest}", palette.green("PASS")),
        Some((word, rest)) => format!("{}:{rest}", palette.red(word)),
        None => sums.to_owned(),
    }
}

/// Returns the totals on one line.
pub(super) fn last_line(report: &Report) -> String {
    let summary = report.summary();
    let run = counted(report.shown().count() - summary.errored, "suite");
    let cases = counted(summary.cases, "case");
    let untested = report.untested.len();
    if summary.failed == 0 && summary.errored == 0 && untested == 0 {
        return format!("PASS: {cases} in {run}");
    }
    let mut sums = format!("FAIL: {} of {cases} failed in {run}", summary.failed);
    if summary.errored > 0 {
        // Writing to a string cannot fail.
        let _ = write!(sums, "; {} could not be run", counted(summary.errored, "suite"));
    }
    if untested > 0 {
        let _ = write!(sums, "; {} reached by no case", counted(untested, "document"));
    }
    sums
}

/// Returns the report of a failed case without its name, one line feed per line.
pub(super) fn failure(case: &CaseReport) -> String {
    let mut out = String::new();
    if !case.result.field.is_empty() {
        line(&mut out, &format!("at {}", case.result.field));
    }
    for Mismatch { what, expected, actual } in &case.result.mismatches {
        line(&mut out, &format!("{what} (- expected, + actual):"));
        for changed in diff::lines(expected, actual) {
            line(&mut out, &format!("  {changed}"));
        }
    }
    // A wrong outcome alone does not show the message of the rule.
    let told = |mismatch: &Mismatch| matches!(mismatch.what, "message" | "object");
    let told = case.result.mismatches.iter().any(told);
    if !told && !case.result.message.is_empty() {
        case.result.message.lines().for_each(|part| line(&mut out, &format!("said: {part}")));
    }
    case.rules.iter().for_each(|rule| draw_rule(&mut out, rule));
    // If a policy was evaluated, the skipped ones do not matter.
    if case.result.outcome == Outcome::Unmatched {
        case.result.missed.iter().for_each(|missed| line(&mut out, &missed_line(missed)));
    }
    case.result.notes.iter().for_each(|note| line(&mut out, &format!("note: {note}")));
    out
}

fn draw_rule(out: &mut String, rule: &RuleValues) {
    line(out, &format!("rule {}:", rule.place));
    rule.text.lines().for_each(|part| line(out, &format!("  | {part}")));
    rule.values.iter().for_each(|(part, value)| line(out, &format!("    {part} = {value}")));
    if rule.omitted > 0 {
        line(
            out,
            &format!("    … {}", counted(usize::try_from(rule.omitted).unwrap_or(usize::MAX), "more part")),
        );
    }
    line(out, &format!("    => {}", rule.outcome));
}

fn draw_suite(out: &mut String, suite: &SuiteReport, (verbose, width): (bool, usize), palette: Palette) {
    let word = match (&suite.fault, suite.exit()) {
        (Some(_), _) => palette.red("ERROR"),
        (None, Exit::Expected) => palette.green("ok   "),
        (None, _) => palette.red("FAIL "),
    };
    let took = format!("{:.1} ms", suite.duration.as_secs_f64() * 1000.0);
    match suite.fault {
        Some(_) => line(out, &format!("{word} {}", suite.file)),
        None => {
            let (file, cases) = (&suite.file, counted(suite.cases.len(), "case"));
            line(out, &format!("{word} {file:<width$}  {cases:>9}  {took}"));
        }
    }
    for case in &suite.cases {
        if !case.result.passed() {
            let (word, at) = (palette.red("FAIL"), case.place.line);
            line(out, &format!("    --- {word}: {}  {}:{at}", case.name, suite.file));
            failure(case).lines().for_each(|told| line(out, &format!("        {told}")));
        } else if verbose {
            line(out, &format!("    --- PASS: {} ({})", case.name, case.result.outcome.as_str()));
            case.result.notes.iter().for_each(|note| line(out, &format!("        note: {note}")));
        }
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
