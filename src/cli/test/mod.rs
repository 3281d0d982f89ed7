//! `admit test`: runs declared test suites against the policies and CRDs that they name.
//!
//! ```text
//! paths ──discover──► Source ──prepare──► cases with what they test ──runner──► Report ──render──► standard output
//! ```
//!
//! What a case means is the policy package's affair; drawing what came of it is that of `render`.

mod cache;
mod definitions;
mod discover;
mod parallel;
mod prepare;
mod runner;

use std::path::{Path, PathBuf};

use admit_policy::recording::Recording;
use clap::{Args, ValueEnum};
use regex_automata::meta::Regex;

use self::prepare::Workshop;
use super::Exit;
use super::process::{self, Fault};
use super::render::suites::{self, CaseReport, Report};
use super::render::{self, Palette};

/// Arguments of `admit test`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  admit test policies/\n  admit test -v -run 'final' ./...\n  admit test -o json a.suite.yaml\n  admit test --crds crds/ tests/a.testsuite.yaml"
)]
pub(super) struct TestArgs {
    /// Suites, or folders searched for `*.suite.yaml` and `*.testsuite.yaml` (`./...` and `-` for standard input are
    /// understood)
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// Where the definitions are that `*.testsuite.yaml` suites name [default: what lies beside their `tests` folder]
    #[arg(long, value_name = "DIR")]
    crds: Option<PathBuf>,

    /// Run only cases whose name matches the regular expression (also written `-run`)
    #[arg(long, value_name = "REGEX")]
    run: Option<String>,

    /// Name every case, not only those that fail
    #[arg(short, long)]
    verbose: bool,

    /// Stop at the first case that fails
    #[arg(long)]
    fail_fast: bool,

    /// How results are written
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people: a line a suite, more for what fails
    #[default]
    Text,
    /// One document
    Json,
    /// JUnit's XML, for CI servers
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// Test Anything Protocol 14
    Tap,
}

impl TestArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(report) => self.write(&report),
            Err(fault) => process::fail(&fault),
        }
    }

    fn report(&self) -> Result<Report, Fault> {
        let pattern = self.run.as_deref().map(compile).transpose()?;
        let sources = discover::sources(&self.paths, self.crds.is_some())?;
        let workshop = Workshop::new(self.crds.as_deref(), pattern);
        let report = runner::run(&workshop, &sources, self.fail_fast);
        match &self.run {
            Some(pattern) if report.is_empty() => Err(Fault::usage(format!("no case matches `{pattern}`"))),
            _ => Ok(report),
        }
    }

    fn write(&self, report: &Report) -> Exit {
        for suite in &report.suites {
            suite.warnings.iter().for_each(|warning| process::warn(warning));
            suite.fault.iter().for_each(|fault| {
                process::fail(fault);
            });
        }
        render::print(&match self.output {
            Format::Text => suites::text(report, self.verbose, Palette::of_stdout()),
            Format::Json => suites::json(report),
            Format::Junit => suites::junit(report),
            Format::Sarif => suites::sarif(report),
            Format::Github => suites::github(report),
            Format::Tap => suites::tap(report),
        });
        report.exit()
    }
}

/// Runs one case of a suite, and adds what its expressions did to `recording`. No `name` is needed where there is only
/// one case.
///
/// # Errors
/// What keeps the suite from being run, or when the case is not told from the others.
pub(super) fn one(
    suite: &Path,
    crds: Option<&Path>,
    name: Option<&str>,
    recording: &Recording,
) -> Result<CaseReport, Fault> {
    let file = suite.display();
    let sources = discover::sources(&[suite.to_owned()], crds.is_some())?;
    let [source] = sources.as_slice() else {
        return Err(Fault::usage(format!("`{file}` has several suites; name one")));
    };
    let cases = Workshop::new(crds, None).prepare(source)?.cases;
    let mut wanted = cases.iter().filter(|case| name.is_none_or(|name| case.name() == name));
    match (wanted.next(), wanted.next()) {
        (Some(case), None) => Ok(case.run_recorded(Some(recording))),
        (found, _) => {
            let problem = match (name, found) {
                (Some(name), None) => format!("no case of `{file}` is called `{name}`"),
                (Some(name), Some(_)) => format!("several cases of `{file}` are called `{name}`"),
                (None, _) => format!("`{file}` has {} cases", cases.len()),
            };
            let names: Vec<String> = cases.iter().map(|case| format!("\n  {}", case.name())).collect();
            Err(Fault::usage(format!("{problem}; --case takes one of{}", names.concat())))
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, Fault> {
    Regex::new(pattern).map_err(|error| Fault::usage(format!("--run `{pattern}`: {error}")))
}
