//! What `check` and `explain` read: new objects, old ones, policies; and how they are put to the policies.

use std::path::PathBuf;
use std::sync::Arc;

use admit_policy::PolicySet;
use admit_policy::apply::{self, FieldValidation, Identity, Options, Pair, Rehearsal};
use admit_policy::manifest::Document;
use admit_policy::request::UserInfo;
use admit_policy::suite::Suite;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::git;
use crate::cli::Exit;
use crate::cli::load;
use crate::cli::process::Fault;

/// Manifests and what they are applied to.
#[derive(Debug, Args)]
pub(in crate::cli) struct InputArgs {
    /// Manifests to apply: files, folders (`./...` too), `-` for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(in crate::cli) filenames: Vec<PathBuf>,

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
}

/// The values of kubectl's `--validate`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Validate {
    #[default]
    Strict,
    Warn,
    Ignore,
}

/// What was read.
#[derive(Debug)]
pub(in crate::cli) struct Inputs {
    pub(in crate::cli) set: PolicySet,
    pub(in crate::cli) pairs: Vec<Pair>,
    /// Old objects that have no new one.
    pub(in crate::cli) left: Vec<Identity>,
    new: Vec<Document>,
    existing: Vec<Arc<Value>>,
    options: Options,
}

impl Inputs {
    /// Decides about the pairs.
    pub(in crate::cli) fn rehearsal(&self) -> Rehearsal<'_> {
        Rehearsal::new(&self.set, self.existing.iter().cloned(), self.options.clone())
    }

    /// Where the new object of a pair stands: file and line.
    pub(in crate::cli) fn place(&self, pair: &Pair) -> (String, usize) {
        self.new
            .get(pair.position)
            .map(|document| (document.file.to_string(), document.position("").line))
            .unwrap_or_default()
    }
}

impl InputArgs {
    pub(in crate::cli) fn read(&self) -> Result<Inputs, Fault> {
        let paths = [&self.filenames, &self.old, &self.policies].into_iter().flatten();
        if paths.filter(|path| load::is_stdin(path)).count() > 1 {
            return Err(Fault::usage("standard input can be read only once"));
        }
        let policies = load::documents(&self.policies)?;
        let (new, old) = (manifests(&self.filenames)?, self.old_documents()?);
        if new.is_empty() {
            return Err(Fault::usage("there are no manifests"));
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
        let identity = |value: &Value| Identity::of(value, set.documents(), &self.namespace).ok();
        let left = paired.left.iter().filter_map(|position| identity(old_values.get(*position)?)).collect();
        let existing = old_values.into_iter().chain(new_values).collect();
        Ok(Inputs { left, pairs: paired.pairs, new, existing, options: self.options(), set })
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
pub(super) fn unreadable(fault: Fault) -> Fault {
    Fault { exit: Exit::Usage, ..fault }
}

fn values(documents: &[Document]) -> Vec<Arc<Value>> {
    documents.iter().map(|document| Arc::new(document.value.clone())).collect()
}
