//! `admit states`: draws which values of a field may follow one another under the policies and definitions.

mod drawn;
mod inputs;

use std::path::{Path, PathBuf};
use std::time::Instant;

use admit_analysis::states::{Diagram, FieldPath, Picture, Subject, compare};
use admit_apiserver::BuiltinKinds;
use admit_policy::LoadOptions;
use admit_policy::manifest::Document;
use admit_policy::suite::{StatesCase, StatesOf, Suite};
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

pub(super) use self::drawn::Drawn;
pub(super) use self::inputs::Inputs;
use self::inputs::passed_over;
use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::progress::Progress;
use super::render::{self, states as drawing};
use super::value_parsers::limit;

/// Arguments of `admit states`.
#[derive(Debug, Args)]
#[command(after_help = "\
A transition is allowed if an object that is reachable under the rules makes it: -v and -o json show one. It is forbidden if \
rules that read this field and few others refuse all of their values. Otherwise it is undecided: none of the many objects \
tried makes it, which were generated from the schema, the constants in rules, -f, and the objects of suites beside the \
policies. It is always allowed if every rule that reads the field accepts it, whatever else the object contains.

Without --field, every field is drawn that has few values and that some rule compares with its old value. A field that may be \
any string has the strings that rules name, and `other` for the rest. --state draws what is not a single field: the value of \
an expression over the object. If it reads few fields with few values, the transitions are decided over all of their \
combinations. --expect compares with a Mermaid stateDiagram-v2, which may be in a Markdown file, or with the `states` of a \
suite, which admit test also runs: each difference is named.

Examples:
  admit states --policies policies/datagather --policies deploy/crds
  admit states --policies policies --policies deploy/crds --kind MustGather -o mermaid
  admit states --policies crd.yaml --field status.phase -o svg > phase.svg
  admit states --policies crd.yaml --field status.phase -o dot | dot -Tpng > phase.png
  admit states --policies crd.yaml --field status.phase --expect phases.mmd
  admit states --policies crd.yaml --state 'ready=has(self.status) && self.status.ready'

Exit codes: 0 everything is decided, and as expected, 1 something differs from --expect, 2 usage or unreadable input, 3 a \
policy or CRD does not compile, 4 internal error, 5 something is undecided")]
pub(super) struct StatesArgs {
    /// Policies, bindings, CRDs and params: files or folders
    #[arg(long, value_name = "PATH", default_value = ".")]
    policies: Vec<PathBuf>,

    /// Objects to start from: files, folders (also `./...`), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,

    /// Kind to draw: DataGather, or DataGather.v1alpha1.insights.openshift.io [default: every kind]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Field to draw: `status.phase`, `status.conditions[type=Ready].status` [default: those that rules compare]
    #[arg(long, value_name = "PATH")]
    field: Option<FieldPath>,

    /// CEL expression over `self` to draw instead of a field; may be given several times
    ///
    /// It evaluates to a string or a bool, and `NAME=` before it names it.
    #[arg(long = "state", value_name = "EXPR", conflicts_with = "field")]
    states: Vec<String>,

    /// Consider only objects for which this CEL expression over `self` is true, from their creation on
    #[arg(long = "where", value_name = "EXPR")]
    only: Option<String>,

    /// User to try where rules depend on the user; may be given several times
    #[arg(long = "as", value_name = "USER")]
    users: Vec<String>,

    /// File with the expected transitions: a Mermaid diagram, or a suite with `states`
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Time limit for finding objects; whatever was not tried by then is undecided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: SignedDuration,

    /// Show an object for every allowed transition
    #[arg(short, long)]
    verbose: bool,

    /// Accept objects of kinds that no policy uses in the files of --policies
    #[arg(long)]
    ignore_unknown: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Text for humans: the allowed transitions, and the rules that forbid the others
    #[default]
    Text,
    /// Mermaid stateDiagram-v2
    Mermaid,
    /// Graphviz graph
    Dot,
    /// SVG picture, for light and dark colour schemes
    Svg,
    /// One JSON document
    Json,
}

impl StatesArgs {
    pub(super) fn run(self) -> Exit {
        match self.drawn() {
            Ok(drawn) => {
                render::print(&match self.output {
                    Format::Text => drawing::text(&drawn, self.verbose),
                    Format::Mermaid => drawing::mermaid(&drawn),
                    Format::Dot => drawing::dot(&drawn),
                    Format::Svg => drawing::svg(&drawn),
                    Format::Json => drawing::json(&drawn),
                });
                if !matches!(self.output, Format::Text | Format::Json) {
                    drawn.differences.iter().for_each(|difference| process::warn(&difference.to_string()));
                }
                drawn.exit()
            }
            Err(fault) => process::fail(&fault),
        }
    }

    /// Returns what to draw, if the flags say so.
    fn subjects(&self) -> Vec<Subject> {
        let field = self.field.iter().cloned().map(Subject::Field);
        field.chain(self.states.iter().map(|text| Subject::state(text))).collect()
    }

    fn drawn(&self) -> Result<Drawn, Fault> {
        let expected = self.expect.as_deref().map(Expected::read).transpose()?;
        let end = Instant::now().checked_add(self.timeout.unsigned_abs());
        let over = || end.is_some_and(|end| Instant::now() >= end);
        let options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let inputs = Inputs::read(&self.policies, &self.filenames, &self.users, options)?;
        let kinds = inputs.kinds(self.kind.as_deref())?;
        let inquiry = |kind| inputs.inquiry(kind, self.only.as_deref(), &over);
        let asked = inputs.asked(&kinds, &self.subjects(), self.only.as_deref(), &over);
        let progress = Progress::of(Some(asked.len()), "drawing");
        let (mut pictures, mut missing) = (Vec::new(), None);
        for (kind, subject) in asked {
            match inquiry(kind).picture(&subject) {
                Ok(picture) => pictures.push(picture),
                Err(error) => drop(missing.get_or_insert(passed_over(error)?)),
            }
            progress.step();
        }
        drop(progress);
        if pictures.is_empty() {
            return Err(Fault::usage(missing.map_or_else(
                || {
                    "no rule compares a field of few values with what it was before; name one with --field"
                        .to_owned()
                },
                |error| error.to_string(),
            )));
        }
        let differences = match (expected, pictures.as_slice()) {
            (None, _) => Vec::new(),
            (Some(expected), [picture]) => compare(picture, &expected.of(picture)?),
            (Some(_), several) => {
                let names = several.iter().map(|picture| {
                    format!(
                        "--kind {}.{}.{} --field '{}'",
                        picture.kind.kind, picture.kind.version, picture.kind.group, picture.subject
                    )
                });
                let names: Vec<String> = names.collect();
                let names = names.join("\n  ");
                return Err(Fault::usage(format!(
                    "--expect is for one picture; there are several:\n  {names}"
                )));
            }
        };
        Ok(Drawn { pictures, differences })
    }
}

/// The expected pictures.
enum Expected {
    Diagram(Diagram),
    /// The expectations of a suite.
    Suite(Vec<StatesCase>),
}

impl Expected {
    fn read(file: &Path) -> Result<Self, Fault> {
        let shown = file.display();
        let text = load::text(file)?;
        let suites = load::parse(&shown.to_string(), &text).unwrap_or_default();
        let suites: Vec<&Document> = suites.iter().filter(|document| Suite::is(&document.value)).collect();
        if suites.is_empty() {
            let diagram = Diagram::read(&text);
            return diagram.map(Self::Diagram).map_err(|error| Fault::usage(format!("{shown}: {error}")));
        }
        let mut states = Vec::new();
        for suite in suites {
            let suite = Suite::decode_knowing(&suite.value, Some(&BuiltinKinds));
            states.extend(suite.map_err(|error| Fault::usage(format!("{shown}: {error}")))?.states);
        }
        Ok(Self::Suite(states))
    }

    fn of(self, picture: &Picture) -> Result<Diagram, Fault> {
        let states = match self {
            Self::Diagram(diagram) => return Ok(diagram),
            Self::Suite(states) => states,
        };
        let is_it = |case: &&StatesCase| match (&case.subject, &picture.subject) {
            (StatesOf::Field(own), Subject::Field(field)) => *own == field.to_string(),
            (StatesOf::State(own), Subject::State { expression, .. }) => own.trim() == *expression,
            _ => false,
        };
        let Some(case) = states.iter().find(is_it) else {
            let what = if picture.subject.expression().is_some() { "state" } else { "field" };
            return Err(Fault::usage(format!(
                "no item of `states` in the suite is about the {what} `{}`",
                picture.subject
            )));
        };
        Diagram::listed(case.expect.iter().map(String::as_str))
            .map_err(|error| Fault::usage(format!("{}: expect: {error}", case.name)))
    }
}
