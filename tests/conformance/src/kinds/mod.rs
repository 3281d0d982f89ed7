//! The kinds of corpora: how each is recognised, and what its cases ask.

mod admission;
mod cel_compile_errors;
mod cel_expressions;
mod cel_spec;
mod cel_values;
mod crd_cel;
mod crd_matrix;
mod crd_registration;
mod crd_suites;
mod custom_resource;
mod policy_create;
mod policy_library;
mod ratcheting;
mod rbac;
mod seed_policies;
mod vap_matrix;

use crate::corpus::{CorpusError, Folder};
use crate::report::Check;

/// One case of a corpus. `run` asks our code and compares; a panic in it counts as a failure.
pub(crate) trait Case: Sync {
    fn id(&self) -> &str;
    fn run(&self) -> Vec<Check>;
}

/// The cases of a corpus.
pub(crate) type Cases = Vec<Box<dyn Case>>;

/// A kind of corpus.
pub(crate) struct Kind {
    /// Whether a folder is of this kind, told by its files' shape alone.
    pub(crate) recognises: fn(&Folder) -> bool,
    pub(crate) cases: fn(&Folder) -> Result<Cases, CorpusError>,
}

/// In order of precedence: the first that recognises a folder runs it.
const KINDS: &[Kind] = &[
    cel_expressions::KIND,
    cel_compile_errors::KIND,
    cel_spec::KIND,
    crd_cel::KIND,
    crd_matrix::KIND,
    crd_registration::KIND,
    crd_suites::KIND,
    policy_library::KIND,
    seed_policies::KIND,
    vap_matrix::KIND,
];

pub(crate) fn of(folder: &Folder) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.recognises)(folder))
}
