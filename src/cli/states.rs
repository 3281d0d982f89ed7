//! `admit states`: draws which values of a field may follow one another under the policies and definitions.

use std::path::{Path, PathBuf};
use std::time::Instant;

use admit_analysis::states::{Diagram, Difference, FieldPath, Inquiry, Picture, PictureError, compare};
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use admit_policy::suite::Suite;
use admit_policy::{GroupVersionKind, LoadOptions, PolicySet, UserInfo};
use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use serde_json::Value;

use super::Exit;
use super::process::{self, Fault};
use super::progress::Progress;
use super::render::{self, states as drawing};
use super::value_parsers::limit;
use super::{conversion, load};

/// Arguments of `admit states`.
#[derive(Debug, Args)]
#[command(after_help = "\
A change is allowed where an object that came to be under the rules makes it: -v and -o json show one. It is forbidden where rules that \
look at this field and few others refuse all of their values. Else it is undecided: no object was found that makes it among \
so many that were tried, which were made of the schema, the constants in rules, -f, and the objects of suites beside the policies.

Without --field, every field is drawn whose few values some rule compares with what they were before. A field that may have any \
text has the texts that rules name, and `other` for the rest. --expect compares with a Mermaid stateDiagram-v2, which may stand in \
a Markdown file: each difference is named.

Examples:
  admit states --policies policies/datagather --policies deploy/crds
  admit states --policies policies --policies deploy/crds --kind MustGather -o mermaid
  admit states --policies crd.yaml --field status.phase -o dot | dot -Tsvg > phase.svg
  admit states --policies crd.yaml --field status.phase --expect phases.mmd

Exit codes: 0 everything is decided, and as expected, 1 something differs from --expect, 2 usage or unreadable input, \
3 a policy or CRD does not compile, 4 internal error, 5 something is undecided")]
pub(super) struct StatesArgs {
    /// Policies, bindings, CRDs and params: files or folders
    #[arg(long, value_name = "PATH", default_value = ".")]
    policies: Vec<PathBuf>,

    /// Objects to start from: files, folders (`./...` too), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    filenames: Vec<PathBuf>,

    /// The kind whose objects are drawn: DataGather, or DataGather.v1alpha1.insights.openshift.io [default: every kind]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// The field that is drawn: `status.phase`, `status.conditions[type=Ready].status` [default: those that rules compare]
    #[arg(long, value_name = "PATH")]
    field: Option<FieldPath>,

    /// A user to try where rules ask who it is; may be given several times
    #[arg(long = "as", value_name = "USER")]
    users: Vec<String>,

    /// A Mermaid diagram of what is to be allowed
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// How long to look for objects; what was not tried then is undecided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    timeout: SignedDuration,

    /// Show an object for every change that is allowed
    #[arg(short, long)]
    verbose: bool,

    /// Let files of --policies have objects of kinds that no policy uses
    #[arg(long)]
    ignore_unknown: bool,

    /// How results are written
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people: what is allowed, by which rule the rest is forbidden
    #[default]
    Text,
    /// A Mermaid stateDiagram-v2
    Mermaid,
    /// A graph for Graphviz
    Dot,
    /// One document
    Json,
}

/// What is drawn, and what it is drawn from.
struct Inputs {
    set: PolicySet,
    documents: Vec<Document>,
    given: Vec<Value>,
    users: Vec<UserInfo>,
}

/// All pictures, and where the one that was expected differs.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) pictures: Vec<Picture>,
    pub(super) differences: Vec<Difference>,
}

impl Drawn {
    pub(super) fn exit(&self) -> Exit {
        let differs = self.differences.iter().any(|difference| !difference.is_undecided());
        if differs {
            Exit::Differs
        } else if self.differences.is_empty() && self.pictures.iter().all(Picture::is_decided) {
            Exit::Expected
        } else {
            Exit::Undecided
        }
    }
}

impl StatesArgs {
    pub(super) fn run(self) -> Exit {
        match self.drawn() {
            Ok(drawn) => {
                render::print(&match self.output {
                    Format::Text => drawing::text(&drawn, self.verbose),
                    Format::Mermaid => drawing::mermaid(&drawn),
                    Format::Dot => drawing::dot(&drawn),
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

    fn drawn(&self) -> Result<Drawn, Fault> {
        let expected = self.expect.as_deref().map(diagram).transpose()?;
        let end = Instant::now().checked_add(self.timeout.unsigned_abs());
        let over = || end.is_some_and(|end| Instant::now() >= end);
        let inputs = self.inputs()?;
        let kinds = self.kinds(&inputs)?;
        let inquiry = |kind| Inquiry {
            set: &inputs.set,
            documents: &inputs.documents,
            kind,
            given: &inputs.given,
            users: &inputs.users,
            over: &over,
        };
        let asked: Vec<(&GroupVersionKind, FieldPath)> = match &self.field {
            Some(field) => kinds.iter().map(|kind| (kind, field.clone())).collect(),
            None => {
                let fields = |kind| inquiry(kind).fields().into_iter().map(move |field| (kind, field));
                kinds.iter().flat_map(fields).collect()
            }
        };
        let progress = Progress::of(Some(asked.len()), "drawing");
        let (mut pictures, mut missing) = (Vec::new(), None);
        for (kind, field) in asked {
            match inquiry(kind).picture(&field) {
                Ok(picture) => pictures.push(picture),
                // Other versions, or other kinds, may have it.
                Err(error @ (PictureError::NoField { .. } | PictureError::Unbounded { .. })) => {
                    missing.get_or_insert(error);
                }
                Err(error) => return Err(Fault::internal(error)),
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
            (Some(diagram), [picture]) => compare(picture, &diagram),
            (Some(_), several) => {
                let names = several.iter().map(|picture| {
                    format!(
                        "--kind {}.{}.{} --field '{}'",
                        picture.kind.kind, picture.kind.version, picture.kind.group, picture.field
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

    fn inputs(&self) -> Result<Inputs, Fault> {
        let documents = load::policy_documents(&self.policies)?;
        let load_options = LoadOptions { ignore_unknown: self.ignore_unknown };
        let set = PolicySet::load_with(&documents, load_options)
            .map_err(|errors| load::with_hint(load::not_compiled(&errors)))?
            .converting(conversion::offline)
            .knowing(&BuiltinKinds);
        let (mut given, mut users) = (Vec::new(), Vec::new());
        let mut take = |document: Document| {
            given.push(document.value);
            Ok(())
        };
        load::each_document(&self.filenames, &mut take)?.tell();
        users
            .extend(self.users.iter().map(|name| UserInfo { username: name.clone(), ..UserInfo::default() }));
        for document in documents.iter().filter(|document| Suite::is(&document.value)) {
            // A suite that cannot be read is told where it is run.
            let Ok(suite) = Suite::decode_knowing(&document.value, Some(&BuiltinKinds)) else { continue };
            for case in suite.cases {
                let objects = [case.old_object, case.object].into_iter().flatten();
                given.extend(objects.map(|object| Value::clone(&object)));
                if !users.contains(&case.user) {
                    users.push(case.user);
                }
            }
        }
        Ok(Inputs { set, documents, given, users })
    }

    /// The kinds that are defined, or given, and were asked for.
    fn kinds(&self, inputs: &Inputs) -> Result<Vec<GroupVersionKind>, Fault> {
        let mut kinds = Vec::new();
        for crd in inputs.set.documents().crds() {
            let definition = crd.definition();
            let served = definition.versions.iter().filter(|version| version.served);
            kinds.extend(served.map(|version| {
                GroupVersionKind::new(&*definition.group, &*version.name, &*definition.names.kind)
            }));
        }
        for kind in inputs.given.iter().map(GroupVersionKind::of) {
            // Of a kind that no file defines, what a server would do is known only where it is built in.
            let is_known = inputs.set.documents().crd_of(&kind).is_some() || !kind.group.contains('.');
            if is_known && !kind.kind.is_empty() && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            return Err(Fault::usage(
                "no file of --policies defines a kind, and -f gives no object of one: name the file of its \
                 CustomResourceDefinition with --policies",
            ));
        }
        let Some(asked) = &self.kind else { return Ok(kinds) };
        let all = kinds.clone();
        kinds.retain(|kind| {
            let full = format!("{}.{}.{}", kind.kind, kind.version, kind.group);
            asked.eq_ignore_ascii_case(&kind.kind) || asked.eq_ignore_ascii_case(full.trim_end_matches('.'))
        });
        if kinds.is_empty() {
            let mut names: Vec<&str> = all.iter().map(|kind| kind.kind.as_str()).collect();
            names.dedup();
            return Err(Fault::usage(format!(
                "there is no kind `{asked}` among the files; there are: {}",
                names.join(", ")
            )));
        }
        Ok(kinds)
    }
}

fn diagram(file: &Path) -> Result<Diagram, Fault> {
    let shown = file.display();
    Diagram::read(&load::text(file)?).map_err(|error| Fault::usage(format!("{shown}: {error}")))
}
