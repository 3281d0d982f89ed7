//! Implements `--kube-versions`: runs a command for several Kubernetes releases.

use std::path::Path;
use std::time::Instant;

use admit_analysis::releases::facts::{Unknown, unknown_of};
use admit_analysis::releases::{Found, Releases, groups, judge, not_served};
use admit_language::lint::{REFUSED, TAKEN};
use admit_policy::lint::{Finding, Severity};
use admit_policy::manifest::{self, Document};
use admit_policy::release;
use clap::Args;
use jiff::SignedDuration;

use super::process::Fault;
use super::render::releases::{self as drawing, Asked, Run, told};
use super::value_parsers::limit;
use super::{Exit, load, render};

/// The flags that select releases.
#[derive(Clone, Debug, Args)]
pub(super) struct ReleaseArgs {
    /// Show what the API servers of these Kubernetes releases would answer: one (1.31) or a range (1.29..1.37)
    #[arg(long = "kube-versions", value_name = "RELEASES")]
    pub(super) releases: Option<Releases>,

    /// Time limit for all releases together; whatever was not evaluated by then is undecided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    pub(super) timeout: SignedDuration,
}

impl ReleaseArgs {
    /// Returns the releases, if any were requested, with the time limit.
    pub(super) fn asked(&self) -> Option<Limited<'_>> {
        let releases = self.releases.as_ref()?;
        Some(Limited {
            releases,
            within: self.timeout,
            end: Instant::now().checked_add(self.timeout.unsigned_abs()),
        })
    }
}

/// Releases with a time limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited<'a> {
    pub(super) releases: &'a Releases,
    within: SignedDuration,
    /// None if the time cannot be represented.
    end: Option<Instant>,
}

impl Limited<'_> {
    /// Whether the time limit is exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Returns the message about releases or documents that were not judged.
    pub(super) fn late(&self) -> String {
        format!("not asked within {:#}; --timeout gives it longer", self.within)
    }
}

/// Returns the verdicts of the releases about the documents: as findings, and by file.
pub(super) fn findings(documents: &[Document], asked: &Limited<'_>) -> (Vec<Finding>, Asked) {
    let releases = asked.releases;
    let report = judge(documents, releases, &|| asked.is_over());
    let documents = report.files.iter().flat_map(|file| &file.documents);
    let findings = documents.flat_map(|document| &document.found).map(finding).collect();
    let late = asked.late();
    (findings, Asked { files: report.files, unknown: unknown_of(releases).collect(), late })
}

fn finding(found: &Found) -> Finding {
    let code = REFUSED.iter().chain(&TAKEN).map(|(code, _)| *code);
    let code = code.into_iter().find(|code| code.ends_with(found.cause.as_str())).unwrap_or("refused");
    let severity = if found.cause.refuses() { Severity::Error } else { Severity::Warning };
    let mut help = format!("in {}", told(&found.releases));
    if !found.because.is_empty() {
        help = format!("{help}; {}", found.because);
    }
    Finding { code, severity, mistake: found.error.clone(), help }
}

fn told_by(outcome: &Result<String, Fault>) -> Result<&str, &str> {
    outcome.as_ref().map(String::as_str).map_err(|fault| fault.message.as_str())
}

/// Runs a command once for each group of releases that agree about the definitions at `paths`, and prints the results.
pub(super) fn run<P: AsRef<Path>>(
    asked: &Limited<'_>,
    paths: &[P],
    is_json: bool,
    mut command: impl FnMut() -> Result<(Exit, String), Fault>,
) -> Result<Exit, Fault> {
    let documents = definitions(paths)?;
    let mut runs: Vec<Run> = Vec::new();
    for group in groups(&documents, asked.releases) {
        let Some(first) = group.first().copied() else { continue };
        let missing = not_served(&documents, first);
        let (exit, outcome) = if asked.is_over() {
            (Exit::Undecided, Err(Fault::undecided(asked.late())))
        } else if missing.is_empty() {
            match release::following(first.0, &mut command) {
                Ok((exit, written)) => (exit, Ok(written)),
                Err(fault) if fault.exit == Exit::Usage => return Err(fault),
                Err(fault) => (fault.exit, Err(fault)),
            }
        } else {
            let told: Vec<String> = missing.iter().map(ToString::to_string).collect();
            (Exit::NotCompiled, Err(Fault::not_compiled(told.join("\n"))))
        };
        match runs.last_mut() {
            Some(Run { releases, exit: known, outcome: written })
                if *known == exit && told_by(written) == told_by(&outcome) =>
            {
                releases.extend(group);
            }
            _ => runs.push(Run { releases: group, exit, outcome }),
        }
    }
    let unknown: Vec<&Unknown> = unknown_of(asked.releases).collect();
    let draw = if is_json { drawing::runs_json } else { drawing::runs_text };
    render::print(&draw(&runs, &unknown));
    Ok(runs.iter().map(|run| run.exit).max().unwrap_or(Exit::Expected))
}

/// Reads the policies, bindings and definitions at `paths`; unreadable files are reported by the command itself.
fn definitions<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Document>, Fault> {
    let mut documents = Vec::new();
    for path in paths {
        for file in load::files(path.as_ref())? {
            let read = manifest::read(&file.path.display().to_string(), &file.text()?).unwrap_or_default();
            documents.extend(read.into_iter().filter(|document| {
                let kind = document.value.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
                kind == "CustomResourceDefinition"
                    || kind.contains("AdmissionPolicy")
                    || kind.contains("WebhookConfiguration")
            }));
        }
    }
    Ok(documents)
}
