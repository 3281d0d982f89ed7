//! Lists the kinds of corpora: how each is recognised, and how its cases run.

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
mod fresh;
mod http;
mod kubectl;
mod policy_create;
mod policy_library;
mod ratcheting;
mod rbac;
mod seed_policies;
mod vap_matrix;

use std::io::{self, Write as _};

use serde_json::Value;

use crate::corpus::{CorpusError, Folder};
use crate::report::Check;
use crate::run::Outcome;

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

/// A kind of corpus whose cases are steps of sequences: a step depends on those before it, so that sequences are run as
/// a whole.
pub(crate) struct Replayed {
    /// As in [`Kind`].
    pub(crate) recognises: fn(&Folder) -> bool,
    /// Runs all sequences, or those with a step whose id contains the text.
    pub(crate) outcomes: fn(&Folder, Option<&str>) -> Result<Vec<Outcome>, CorpusError>,
}

const REPLAYED: &[Replayed] = &[http::KIND, kubectl::KIND];

/// Parts of a corpus: the name under which each is scored, and its outcomes.
pub(crate) type Parts = Vec<(String, Vec<Outcome>)>;

/// A kind of corpus of several parts, each of which has a score of its own.
pub(crate) struct Parted {
    /// As in [`Kind`].
    pub(crate) recognises: fn(&Folder) -> bool,
    /// The outcomes of each part, by name; of all rows, or those whose id contains the text.
    pub(crate) outcomes: fn(&Folder, Option<&str>) -> Result<Parts, CorpusError>,
}

const PARTED: &[Parted] = &[fresh::KIND];

/// How a folder is run.
pub(crate) enum Runner {
    Cases(&'static Kind),
    Sequences(&'static Replayed),
    Parts(&'static Parted),
}

pub(crate) fn of(folder: &Folder) -> Option<Runner> {
    let kind = KINDS.iter().find(|kind| (kind.recognises)(folder)).map(Runner::Cases);
    kind.or_else(|| REPLAYED.iter().find(|kind| (kind.recognises)(folder)).map(Runner::Sequences))
        .or_else(|| PARTED.iter().find(|kind| (kind.recognises)(folder)).map(Runner::Parts))
}

/// Says that a part of a corpus is of a form that is not run.
fn not_run(corpus: &str, part: &str) {
    let _ = writeln!(io::stderr(), "conformance: {corpus}: {part}: no runner for rows of this form yet");
}

/// Says which test runs a part of a corpus that takes the whole program.
fn run_elsewhere(corpus: &str, part: &str, test: &str) {
    let _ = writeln!(io::stderr(), "conformance: {corpus}: {part}: run with the program, by {test}");
}

/// Whether the folder holds sequences whose steps have this member.
fn has_step_with(folder: &Folder, member: &str) -> bool {
    folder.rows_with(&["name", "steps"]).any(|sequence| sequence["steps"][0].get(member).is_some())
}

/// The sequences that are asked for, in their order.
fn sequences<'f>(folder: &'f Folder, only: Option<&str>) -> Vec<&'f Value> {
    let asked = |sequence: &&Value| {
        let name = sequence["name"].as_str().unwrap_or_default();
        only.is_none_or(|text| steps(sequence).any(|step| format!("{name}/{}", step["n"]).contains(text)))
    };
    folder.rows_with(&["name", "steps"]).filter(asked).collect()
}

fn steps(sequence: &Value) -> impl Iterator<Item = &Value> {
    sequence["steps"].as_array().into_iter().flatten()
}

/// The definitions that are there before every sequence.
fn fixtures(folder: &Folder) -> Vec<Value> {
    let definition = |row: &Value| {
        let body = row.get("body").or_else(|| row.get("manifest")).unwrap_or(row);
        (body["kind"] == "CustomResourceDefinition").then(|| body.clone())
    };
    folder.rows_with(&[]).filter_map(definition).collect()
}
