//! `admit check`: what would come of applying manifests, over what was there before.
//!
//! Reads the new objects, the old ones (from files or from a git revision) and the policies; pairing and deciding is
//! the policy package's affair.

mod git;

use std::path::PathBuf;
use std::sync::Arc;

use admit_policy::PolicySet;
use admit_policy::apply::{self, FieldValidation, Options, Rehearsal};
use admit_policy::manifest::Document;
use admit_policy::request::UserInfo;
use admit_policy::suite::Suite;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::render::check::{self, ObjectReport, Report};
use super::render::{self, Output, Palette};

/// Arguments of `admit check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Objects are paired with old ones by kind, namespace and name: one with an old one is updated, transition rules and \
ratcheting included; one that equals its old one is not sent at all; all others are created. Definitions, policies, \
Namespaces and params among the manifests are in force. Objects of built-in kinds are taken as written, without a \
server's defaults. A schema, rule or policy speaks with kube-apiserver's words.

Examples:
  admit check -f manifests/ --policies policies/
  admit check -f manifests/ --policies policies/ --old-git origin/main
  admit check -f new.yaml --old old.yaml --policies crd.yaml
  kubectl get widgets -A -o yaml > live.yaml; admit check -f ./... --old live.yaml --policies crd.yaml
  helm template chart | admit check -f - --policies policies/ -o json

Exit codes: 0 everything is admitted, 1 something is refused, 2 usage or unreadable input, 3 a policy or CRD of \
--policies does not compile, 4 internal error")]
pub(super) struct CheckArgs {
    /// Manifests to apply: files, folders (`./...` too), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH", required = true)]
    filenames: Vec<PathBuf>,

    /// The objects that are there before: files, folders, or `-`
    #[arg(long, value_name = "PATH")]
    old: Vec<PathBuf>,

    /// The objects that are there before: the same paths at a git revision
    #[arg(long, value_name = "REV", conflicts_with = "old")]
    old_git: Option<String>,

    /// Policies, bindings, CRDs and params: files or folders
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// Where objects without a namespace go
    #[arg(short, long, default_value = "default")]
    namespace: String,

    /// Who applies
    #[arg(long = "as", value_name = "USER", default_value = "admin")]
    user: String,

    /// A group that the user is in; may be given several times
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,

    /// What fields that no schema knows lead to
    #[arg(long, value_enum, default_value_t)]
    validate: Validate,

    /// Name every policy and rule that looked at an object
    #[arg(short, long)]
    verbose: bool,

    /// How results are written
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// The values of kubectl's `--validate`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Validate {
    #[default]
    Strict,
    Warn,
    Ignore,
}

impl CheckArgs {
    pub(super) fn run(self) -> Exit {
        match self.report() {
            Ok(report) => {
                render::print(&match self.output {
                    Output::Text => check::text(&report, self.verbose, Palette::of_stdout()),
                    Output::Json => check::json(&report),
                });
                if report.refused() > 0 { Exit::Differs } else { Exit::Expected }
            }
            Err(fault) => process::fail(&fault),
        }
    }

    fn report(&self) -> Result<Report, Fault> {
        if [&self.filenames, &self.old, &self.policies]
            .into_iter()
            .flatten()
            .filter(|path| load::is_stdin(path))
            .count()
            > 1
        {
            return Err(Fault::usage("standard input can be read only once"));
        }
        let policies = load::documents(&self.policies)?;
        let new = manifests(&self.filenames)?;
        let old = self.old_documents()?;
        if new.is_empty() {
            return Err(Fault::usage("no manifests to check"));
        }
        let of_manifests = new.iter().filter(|document| apply::is_in_force(&document.value, &policies));
        let set = PolicySet::load(policies.iter().chain(of_manifests))
            .map_err(|errors| load::not_compiled(&errors))?;
        let (new_values, old_values) = (values(&new), values(&old));
        let paired =
            apply::pair(&new_values, &old_values, set.documents(), &self.namespace).map_err(|errors| {
                let mistakes: Vec<_> = errors
                    .iter()
                    .filter_map(|(position, error)| Some(new.get(*position)?.mistake(error.to_string())))
                    .collect();
                unreadable(load::not_compiled(&mistakes))
            })?;
        let existing = old_values.iter().chain(&new_values).cloned();
        let rehearsal = Rehearsal::new(&set, existing, self.options());
        let objects = paired.pairs.into_iter().filter_map(|pair| {
            let document = new.get(pair.position)?;
            let applied = rehearsal.apply(&pair);
            Some(ObjectReport {
                file: document.file.to_string(),
                line: document.position("").line,
                identity: pair.identity,
                applied,
            })
        });
        let objects = objects.collect();
        let identity = |value: &Value| apply::Identity::of(value, set.documents(), &self.namespace).ok();
        let left = paired.left.iter().filter_map(|position| identity(old_values.get(*position)?)).collect();
        let undecided = set.policies().next().is_none() && set.documents().crds().is_empty();
        Ok(Report { objects, left, undecided })
    }

    fn old_documents(&self) -> Result<Vec<Document>, Fault> {
        match &self.old_git {
            Some(revision) => git::documents(revision, &self.filenames),
            None => manifests(&self.old),
        }
    }

    fn options(&self) -> Options {
        Options {
            user: UserInfo {
                username: self.user.clone(),
                groups: self.groups.clone(),
                ..UserInfo::default()
            },
            field_validation: match self.validate {
                Validate::Strict => FieldValidation::Strict,
                Validate::Warn => FieldValidation::Warn,
                Validate::Ignore => FieldValidation::Ignore,
            },
        }
    }
}

/// Objects; suites that stand beside them are none.
fn manifests(paths: &[PathBuf]) -> Result<Vec<Document>, Fault> {
    let mut documents = load::documents(paths).map_err(unreadable)?;
    documents.retain(|document| !Suite::is(&document.value));
    Ok(documents)
}

/// Manifests are input, unlike policies.
fn unreadable(fault: Fault) -> Fault {
    Fault { exit: Exit::Usage, ..fault }
}

fn values(documents: &[Document]) -> Vec<Arc<Value>> {
    documents.iter().map(|document| Arc::new(document.value.clone())).collect()
}
