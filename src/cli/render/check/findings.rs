//! Renders the results of `admit check` as findings: GitHub annotations, SARIF and JUnit XML. Only JUnit lists what
//! is allowed.

use std::fmt::Write as _;

use serde_json::Value;

use super::text::refusal;
use super::{ObjectReport, Outcome};
use crate::cli::render::{deeper, escaped, github, sarif};

/// The names of SARIF rules, with their descriptions.
const RULES: [(&str, &str); 3] = [
    ("denied", "A server would refuse the object."),
    ("warned", "A server would take the object, and warn."),
    ("audited", "A server would take the object, and note in its audit log that it breaks a rule."),
];

/// A result that is shown beside the object.
struct Finding {
    rule: &'static str,
    level: Level,
    message: String,
}

#[derive(Clone, Copy)]
enum Level {
    Error,
    Warning,
    Note,
}

impl Finding {
    fn of(object: &ObjectReport) -> Option<Self> {
        let applied = &object.applied;
        let (rule, level, said) = match object.outcome() {
            Outcome::Deny => ("denied", Level::Error, applied.refusal.iter().flat_map(refusal).collect()),
            Outcome::Warn => ("warned", Level::Warning, applied.warnings.clone()),
            Outcome::Audit => {
                let notes = applied.audit_annotations.iter();
                ("audited", Level::Note, notes.map(|(key, value)| format!("{key}: {value}")).collect())
            }
            Outcome::Allow | Outcome::Unchanged | Outcome::Unmatched => return None,
        };
        let message = format!("{}\n{}", object.identity, said.join("\n"));
        Some(Self { rule, level, message })
    }
}

/// Renders an annotation, or an empty string if there is nothing to report.
pub(super) fn github(object: &ObjectReport) -> String {
    let mut out = String::new();
    if let Some(Finding { rule, level, message }) = Finding::of(object) {
        let level = match level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "notice",
        };
        let place = github::Place { file: &object.file, at: object.refused_at(), title: rule };
        github::annotate(&mut out, level, place, &message);
    }
    out
}

/// Returns the text before the first result, and after the last one.
pub(super) fn sarif_frame() -> (String, String) {
    let document = sarif::document(&RULES, &[]);
    let (before, after) = document.split_once("\"results\": []").unwrap_or_default();
    (format!("{before}\"results\": ["), format!("]{after}"))
}

/// Renders a result, if there is something to report.
pub(super) fn sarif(object: &ObjectReport) -> Option<String> {
    let Finding { rule, level, message } = Finding::of(object)?;
    let level = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let result: Value = sarif::result(rule, level, &message, &object.file, object.refused_at());
    Some(deeper(&result, "\n        "))
}

/// The objects of each file as a test suite. They are kept, since JUnit needs their number first.
#[derive(Debug, Default)]
pub(super) struct Junit {
    suites: Vec<Suite>,
}

#[derive(Debug, Default)]
struct Suite {
    file: String,
    cases: usize,
    failures: usize,
    skipped: usize,
    text: String,
}

impl Junit {
    pub(super) fn add(&mut self, object: &ObjectReport) {
        if self.suites.last().is_none_or(|suite| suite.file != object.file) {
            self.suites.push(Suite { file: object.file.clone(), ..Suite::default() });
        }
        let Some(suite) = self.suites.last_mut() else { return };
        suite.cases = suite.cases.saturating_add(1);
        let (name, file) = (escaped(&object.identity.to_string()), escaped(&object.file));
        // Writing to a string cannot fail.
        let _ = write!(
            suite.text,
            "    <testcase name=\"{name}\" classname=\"{file}\" file=\"{file}\" line=\"{}\"",
            object.refused_at().line
        );
        let said = Finding::of(object).map(|finding| finding.message).unwrap_or_default();
        let outcome = object.outcome();
        let inner = match outcome {
            Outcome::Allow => {
                suite.text.push_str("/>\n");
                return;
            }
            Outcome::Deny => {
                suite.failures = suite.failures.saturating_add(1);
                let said = said.split_once('\n').map_or(said.as_str(), |(_, said)| said);
                format!("<failure type=\"denied\" message=\"denied\">{}</failure>", escaped(said))
            }
            Outcome::Warn | Outcome::Audit => format!("<system-out>{}</system-out>", escaped(&said)),
            Outcome::Unchanged | Outcome::Unmatched => {
                suite.skipped = suite.skipped.saturating_add(1);
                format!("<skipped message=\"{}\"/>", outcome.counted())
            }
        };
        let _ = writeln!(suite.text, ">\n      {inner}\n    </testcase>");
    }

    pub(super) fn document(&self) -> String {
        let sum = |of: fn(&Suite) -> usize| self.suites.iter().map(of).sum::<usize>();
        let (cases, failures, skipped) =
            (sum(|suite| suite.cases), sum(|suite| suite.failures), sum(|suite| suite.skipped));
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"admit check\" tests=\"{cases}\" \
             failures=\"{failures}\" skipped=\"{skipped}\" errors=\"0\">\n"
        );
        for Suite { file, cases, failures, skipped, text } in &self.suites {
            let file = escaped(file);
            let _ = write!(
                out,
                "  <testsuite name=\"{file}\" file=\"{file}\" tests=\"{cases}\" failures=\"{failures}\" \
                 skipped=\"{skipped}\" errors=\"0\">\n{text}  </testsuite>\n"
            );
        }
        out.push_str("</testsuites>\n");
        out
    }
}
