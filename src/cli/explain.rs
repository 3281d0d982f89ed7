//! `admit explain`: shows the value of every expression that was evaluated for one test case or for manifests.

use std::path::{Path, PathBuf};

use admit_policy::{Keep, Recording};
use clap::Args;

use super::Exit;
use super::check::InputArgs;
use super::process::{self, Fault};
use super::render::explain::{self, Explained, Subject};
use super::render::{self, Output, Palette};
use super::suite;

/// Arguments of `admit explain`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("input").args(["filenames", "suite"]).required(true))]
#[command(after_help = "\
Each evaluated expression is drawn as a tree of its parts with the values that they had. `#2` marks the evaluation of \
a macro for its third item. What is not drawn was not evaluated: `a && b` does not need `b` if `a` is false. Policies \
that do not match are counted at the end, and listed with -v, or if no other policy was evaluated.

Examples:
  admit explain policies/cyndi/bounds.suite.yaml --case 'a threshold beyond all hosts'
  admit explain -f widget.yaml --policies policies/
  admit explain -f widget.yaml --old-git HEAD --policies crd.yaml

Exit codes: 0 the case passes or the manifests are admitted, 1 the case fails or a manifest is refused, 2 usage or \
unreadable input, 3 a policy or CRD does not compile, 4 internal error")]
pub(super) struct ExplainArgs {
    /// Suite to explain a case of: `*.suite.yaml` or `*.testsuite.yaml`
    #[arg(conflicts_with = "filenames")]
    suite: Option<PathBuf>,

    /// Name of the suite's case to explain; not needed if there is only one
    #[arg(long, value_name = "NAME", requires = "suite", conflicts_with = "filenames")]
    case: Option<String>,

    /// Folder with the CRDs that a `*.testsuite.yaml` suite names
    #[arg(long, value_name = "DIR", requires = "suite", conflicts_with = "filenames")]
    crds: Option<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    /// Explain for each policy that was not evaluated why it was not
    #[arg(short, long)]
    verbose: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl ExplainArgs {
    pub(super) fn run(self) -> Exit {
        let explained = match &self.suite {
            Some(suite) => self.case(suite).map(|case| vec![case]),
            None => self.manifests(),
        };
        match explained {
            Ok(explained) => {
                render::print(&match self.output {
                    Output::Text => explain::text(&explained, self.verbose, Palette::of_stdout()),
                    Output::Json => explain::json(&explained),
                });
                if explained.iter().all(Explained::is_expected) { Exit::Expected } else { Exit::Differs }
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn case(&self, suite: &Path) -> Result<Explained, Fault> {
        let recording = Recording::new(Keep::TRACES);
        let plugins = self.input.plugins.chosen()?;
        let crds = self.crds.as_deref();
        let report = suite::one((suite, self.case.as_deref()), crds, plugins, &recording)?;
        let file = suite.display().to_string();
        Ok(Explained {
            file,
            line: report.place.line,
            subject: Subject::Case(Box::new(report)),
            recorded: recording.finish(),
        })
    }

    fn manifests(&self) -> Result<Vec<Explained>, Fault> {
        let inputs = self.input.read()?;
        let rehearsal = inputs.rehearsal();
        let explained = inputs.pairs().map(|pair| {
            let recording = Recording::new(Keep::TRACES);
            let applied = rehearsal.apply_recorded(&pair, &recording);
            let (file, at) = inputs.place(&pair);
            let subject = Subject::Object(Box::new((pair.identity, applied)));
            Explained { file, line: at.line, subject, recorded: recording.finish() }
        });
        Ok(explained.collect())
    }
}
