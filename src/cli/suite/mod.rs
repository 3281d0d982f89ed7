//! `admit test`: runs test suites against the policies and CRDs that they name.
//!
//! ```text
//! paths ──discover──► Source ──prepare──► Ready ──runner──► Report ──render──► standard output
//!                              cases with what they test      and a ledger of what was evaluated
//! ```
//!
//! The policy package defines the meaning of a case; `render` formats the results.

mod cache;
mod case;
mod coverage;
mod definitions;
mod discover;
pub(super) mod parallel;
mod prepare;
mod recorded_case;
mod runner;
mod untested;
mod values;
mod watch;

use std::path::PathBuf;

use admit_policy::LoadOptions;
use clap::{Args, ValueEnum};
use regex_automata::meta::Regex;

pub(super) use self::case::{Loaded, PreparedCase, Test};
use self::coverage::Ledger;
pub(super) use self::definitions::Tested;
pub(super) use self::discover::{Source, sources};
pub(super) use self::prepare::SuiteLoader;
pub(super) use self::recorded_case::one;
use self::watch::Watch;
use super::Exit;
use super::offline_plugins::OfflinePluginArgs;
use super::process::{self, Fault};
use super::releases::{self, Limited, ReleaseArgs};
use super::render::coverage as drawing;
use super::render::suites::{self, Report};
use super::render::{self, Palette};
use super::{schema, whole};

const EXAMPLES: &str = "\
Objects of built-in kinds are checked as a server checks them before it evaluates policies, its admission plugins \
included, by the Namespaces, LimitRanges, ResourceQuotas, ServiceAccounts and classes among the documents, \
`namespaces` and `params`. What an object names and none of these contains is assumed to exist, and is noted. To \
expect a refusal by the server itself, give its message: `message`.

Examples:
  admit test policies/                           # everything below a folder (also policies/...)
  admit test -v -run 'final' policies/...        # cases by name, each one named
  admit test --crds crds/ tests/                 # suites in the OpenShift API's shape
  cat a.suite.yaml | admit test -                # a suite from standard input
  admit test -o junit policies/ > results.xml    # for a CI server
  admit test --coverage --coverage-lcov cov.info --coverage-html cov.html policies/
  admit test --require-tests --fail-fast policies/
  admit test --kube-versions 1.30..1.37 policies/ # what servers of these releases would say
  admit test --watch policies/                   # again whenever a file changes
  admit schema suite                             # the format of suites, for editors

Exit codes: 0 every case as expected, 1 a case differs (or, with --require-tests, something is reached by no case), 2 \
usage or unreadable input, 3 a policy or CRD does not compile, 4 internal error";

/// Arguments of `admit test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TestArgs {
    /// Suites, or folders searched for `*.suite.yaml` and `*.testsuite.yaml` (also `./...`), `-` for standard input
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// Folder with the CRDs that `*.testsuite.yaml` suites name [default: those beside their `tests` folder]
    #[arg(long, value_name = "DIR")]
    crds: Option<PathBuf>,

    /// Run only cases whose name matches the regular expression (also written `-run`)
    #[arg(long, value_name = "REGEX")]
    run: Option<String>,

    /// Name every suite and case, not only those that fail
    #[arg(short, long)]
    verbose: bool,

    /// Stop at the first case that fails
    #[arg(long)]
    fail_fast: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    /// Fail if no case reaches a policy, or a definition with rules, among the paths
    #[arg(long, conflicts_with = "releases")]
    require_tests: bool,

    /// Accept objects of kinds that no policy uses in the documents of a suite
    #[arg(long)]
    ignore_unknown: bool,

    /// Report which expressions, and which branches of each, the cases reached (on standard error unless results are text)
    #[arg(long, conflicts_with = "releases")]
    coverage: bool,

    /// Write the coverage as an lcov tracefile
    #[arg(long, value_name = "FILE", conflicts_with = "releases")]
    coverage_lcov: Option<PathBuf>,

    /// Write the coverage as an HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "releases")]
    coverage_html: Option<PathBuf>,

    /// Run again whenever a suite, or a file that it loads, changes, until interrupted
    #[arg(long, conflicts_with_all = ["coverage_lcov", "coverage_html", "releases"])]
    watch: bool,

    #[command(flatten)]
    plugins: OfflinePluginArgs,

    #[command(flatten)]
    releases: ReleaseArgs,

    /// Print the JSON Schema of suites, or of what `-o json` writes, and run nothing
    #[arg(long, value_enum, value_name = "OF")]
    print_schema: Option<Schema>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Text for humans: what fails, and the totals
    #[default]
    Text,
    /// One JSON document
    Json,
    /// JUnit XML, for CI servers
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
    /// Test Anything Protocol 14
    Tap,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Schema {
    Suite,
    Result,
}

impl TestArgs {
    pub(super) fn run(self) -> Exit {
        if let Some(schema) = self.print_schema {
            return schema::print(match schema {
                Schema::Suite => schema::Subject::Suite,
                Schema::Result => schema::Subject::Test,
            });
        }
        let outcome = match self.releases.asked() {
            Some(asked) => self.by_release(&asked),
            None if self.watch => self.again_and_again(),
            None => self.once().map(|(exit, _)| exit),
        };
        outcome.unwrap_or_else(|fault| process::fail(&fault))
    }

    /// Runs once for each group of releases with the same results.
    fn by_release(&self, asked: &Limited<'_>) -> Result<Exit, Fault> {
        if !matches!(self.output, Format::Text | Format::Json) {
            return Err(Fault::usage("--kube-versions writes text or json"));
        }
        let pattern = self.run.as_deref().map(compile).transpose()?;
        let sources = discover::sources(&self.paths, self.crds.is_some())?;
        let load_options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let plugins = self.plugins.chosen()?;
        let loader = || {
            let loader = SuiteLoader::new(self.crds.as_deref(), pattern.clone(), None);
            loader.loading(load_options).plugging(plugins.clone())
        };
        // The files that suites load are known only after they were run.
        let first = loader();
        runner::run(&first, &sources, self.fail_fast);
        let is_json = self.output == Format::Json;
        releases::run(asked, &first.used(), is_json, || {
            let report = runner::run(&loader(), &sources, self.fail_fast);
            let faults = report.suites.iter().filter_map(|suite| suite.fault.as_ref());
            let faults: Vec<String> = faults.map(ToString::to_string).collect();
            let written = if is_json {
                suites::json(&report)
            } else {
                let told = suites::text(&report, self.verbose, Palette::of_stdout());
                faults.iter().fold(told, |told, fault| format!("{told}{fault}\n"))
            };
            Ok((report.exit(), written))
        })
    }

    /// Repeats the run after each change, until the reader of the results has gone.
    fn again_and_again(&self) -> Result<Exit, Fault> {
        // Paths of an earlier run are kept: a suite that is broken at the moment names none.
        let mut paths = self.paths.clone();
        paths.extend(self.crds.clone());
        loop {
            match self.once() {
                Ok((_, used)) => paths.extend(used),
                Err(fault) => {
                    process::fail(&fault);
                }
            }
            paths.sort();
            paths.dedup();
            let watch = Watch::new(paths.clone())?;
            if !render::is_read("\nwaiting for changes\n\n") {
                return Ok(Exit::Expected);
            }
            watch.wait();
        }
    }

    /// Runs once, and returns the paths that were loaded.
    fn once(&self) -> Result<(Exit, Vec<PathBuf>), Fault> {
        let pattern = self.run.as_deref().map(compile).transpose()?;
        let sources = discover::sources(&self.paths, self.crds.is_some())?;
        let covers = self.coverage || self.coverage_lcov.is_some() || self.coverage_html.is_some();
        let ledger = (covers || self.require_tests).then(Ledger::default);
        let load_options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let loader = SuiteLoader::new(self.crds.as_deref(), pattern, ledger)
            .loading(load_options)
            .plugging(self.plugins.chosen()?);
        let mut report = runner::run(&loader, &sources, self.fail_fast);
        if let Some(pattern) = self.run.as_ref().filter(|_| report.is_empty()) {
            return Err(Fault::usage(format!("no case matches `{pattern}`")));
        }
        if let Some(ledger) = loader.ledger().filter(|_| self.require_tests) {
            report.untested = untested::untested(&self.paths, ledger)?;
        }
        self.tell(&report);
        if let Some(ledger) = loader.ledger() {
            self.tell_coverage(ledger)?;
        }
        Ok((report.exit(), loader.used()))
    }

    fn tell(&self, report: &Report) {
        for suite in &report.suites {
            suite.warnings.iter().for_each(|warning| process::warn(warning));
            suite.fault.iter().for_each(|fault| {
                process::fail(fault);
            });
        }
        for missing in &report.untested {
            process::fail(&Fault::usage(missing));
        }
        render::print(&match self.output {
            Format::Text => suites::text(report, self.verbose, Palette::of_stdout()),
            Format::Json => suites::json(report),
            Format::Junit => suites::junit(report),
            Format::Sarif => suites::sarif(report),
            Format::Github => suites::github(report),
            Format::Tap => suites::tap(report),
        });
    }

    fn tell_coverage(&self, ledger: &Ledger) -> Result<(), Fault> {
        let report = ledger.report();
        if self.coverage && self.output == Format::Text {
            render::print(&drawing::text(&report));
        } else if self.coverage {
            process::remark(&drawing::text(&report));
        }
        for (file, draw) in [
            (&self.coverage_lcov, drawing::lcov as fn(&_) -> String),
            (&self.coverage_html, drawing::html as fn(&_) -> String),
        ] {
            file.as_deref().map_or(Ok(()), |file| whole::write(file, &draw(&report)))?;
        }
        Ok(())
    }
}

fn compile(pattern: &str) -> Result<Regex, Fault> {
    let wrong = |reason: &dyn std::fmt::Display| Fault::usage(format!("--run `{pattern}`: {reason}"));
    Regex::new(pattern)
        .map_err(|error| error.syntax_error().map_or_else(|| wrong(&error), |error| wrong(error)))
}
