//! `admit mutate`: makes one small change (mutation) at a time to rules, and reports those that no test case detects.
//!
//! ```text
//! suites ──material──► policies, definitions and cases ──judged──► Report ──render──► standard output
//! ```
//!
//! Suites are loaded as by `admit test`; mutations, and what cases say about them, are computed by [`admit_analysis::mutate`].

mod judged;
mod material;
mod place;
mod report;
mod since;
mod write;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use jiff::SignedDuration;

use self::report::Score;
pub(super) use self::report::{Judged, Open, Report, Sums, Survivor};
use super::process::{self, Fault};
use super::render::{self, Palette, mutate as drawing};
use super::report_format::ReportFormat;
use super::value_parsers::limit;
use super::{Exit, load};

/// Arguments of `admit mutate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every policy, binding and definition that cases exercise is changed, one small thing at a time: a comparison, `&&` and `||`, a \
negation, a clause or `has()` left out, a number one more or less, `all` and `exists`, an operation, a resource, a requirement \
of a selector or an action left out. So are expressions that produce messages, audit annotations or changes of objects, which \
are also left out as a whole. A case whose verdict then differs from the expected one has detected the change. Literal \
messages are not changed. What no case exercises is not changed either: `admit test --require-tests` reports it.

A change that no case detects is shown with a case that would detect it: a variant of an existing case, or one that a solver \
finds (z3 or cvc5, on the PATH). If the solver proves that the change denies exactly what was denied before, it is left out \
and counted. All others are unknown, which counts as not detected. A longer --timeout gives each of them more time.

Examples:
  admit mutate policies/                         # everything below a folder
  admit mutate policies/ --definitions deploy/crds --write more.suite.yaml
  admit mutate policies/ --min-score 95          # for CI: fails below
  admit mutate policies/ --since origin/main     # only rules whose lines changed
  admit mutate policies/mustgather/timeout.suite.yaml -o sarif > mutate.sarif

Exit codes: 0 every change is detected, or with --min-score enough of them, 1 some are not, 2 usage or unreadable input, 3 a \
policy or CRD does not compile, 4 internal error, 5 some are unknown")]
pub(super) struct MutateArgs {
    /// Suites, or folders searched for `*.suite.yaml` and `*.testsuite.yaml`, as in `admit test`
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// Folder with the CRDs that `*.testsuite.yaml` suites name [default: those beside their `tests` folder]
    #[arg(long, value_name = "DIR")]
    crds: Option<PathBuf>,

    /// CRDs of the kinds that the policies match, to prove that a change makes no difference: files or folders
    #[arg(long, value_name = "PATH")]
    definitions: Vec<PathBuf>,

    /// Change only rules with lines that differ from this git revision
    #[arg(long, value_name = "REV")]
    since: Option<String>,

    /// Percentage of the changes that cases have to detect; it alone then decides between exit codes 0 and 1
    #[arg(long, value_name = "PERCENT")]
    min_score: Option<Score>,

    /// Write cases that would detect the undetected changes as a suite
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Largest number of list items and map entries that proofs consider, unless the schema allows fewer
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    items: u8,

    /// Solver to use: z3, cvc5 or a path to one [default: the first found on the PATH]
    #[arg(long, value_name = "NAME")]
    solver: Option<String>,

    /// Time limit for the whole run, of which each undetected change gets at least a two-hundredth; what is not judged by then is
    /// unknown
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: SignedDuration,

    /// Report also on every policy and definition, and how many cases were run per second
    #[arg(short, long)]
    verbose: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

impl MutateArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(report) => {
                let exit = report.exit(self.min_score);
                render::print(&match self.output {
                    ReportFormat::Text => drawing::text(&report, exit, self.verbose, Palette::of_stdout()),
                    ReportFormat::Json => drawing::json(&report),
                    ReportFormat::Sarif => drawing::sarif(&report),
                    ReportFormat::Github => drawing::github(&report),
                });
                exit
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn report(&self) -> Result<Report, Fault> {
        let end = Instant::now().checked_add(self.timeout.unsigned_abs());
        let material = material::load(&self.paths, self.crds.as_deref())?;
        let definitions = load::policy_documents(&self.definitions)?;
        let judging = judged::Judging {
            definitions: &definitions,
            since: self.since.as_deref(),
            solver: self.solver.as_deref(),
            items: usize::from(self.items),
            timeout: self.timeout.unsigned_abs(),
            end,
        };
        let report = judging.of(&material)?;
        if let Some(file) = &self.write {
            write::suite(file, &report)?;
        }
        Ok(report)
    }
}
