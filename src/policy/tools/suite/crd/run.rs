//! Runs one case: the requests that the OpenShift project's own runner sends, in its order, each decided as the API
//! server does.
//!
//! ```text
//! create ─► status ─► (definition restored: write once more) ─► update ─► status ─► compare what is stored
//! ```

use serde_json::{Value, json};

use super::text::{Agreement, agreement};
use super::variant::{Variant, VariantError};
use super::{CrdCase, Outcome};
use crate::crd::{CompiledCrd, Scope, Write, Written};
use crate::report::recording::Recording;
use crate::tools::suite::{CaseResult, Mismatch};

/// Metadata that servers set, which no suite can know.
const OF_THE_SERVER: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Runs `case` under each definition it is for; the first result that differs from the expectation counts. Evaluations of rules are
/// added to `recording`.
///
/// [`CrdSuite`](super::CrdSuite) has an example.
pub fn run(case: &CrdCase, variants: &[&Variant], recording: Option<&Recording>) -> CaseResult {
    let mut first = None;
    for variant in variants {
        let mut result = Run { case, variant, recording }.result();
        if !result.passed() {
            result.notes.push(format!("with {}", variant.file));
            return result;
        }
        first.get_or_insert(result);
    }
    first.unwrap_or_else(|| {
        let found = Mismatch::new("outcome", case.expected().as_str(), Outcome::Unmatched.as_str());
        CaseResult { outcome: Outcome::Unmatched, mismatches: vec![found], ..CaseResult::default() }
    })
}

struct Run<'a> {
    case: &'a CrdCase,
    variant: &'a Variant,
    recording: Option<&'a Recording>,
}

/// Why a case ends before its last step.
enum Stop {
    /// The last request was decided, with this result.
    Decided(Box<CaseResult>),
    /// A preparatory request was rejected.
    Unprepared { step: &'static str, message: String },
}

impl From<VariantError> for Stop {
    fn from(error: VariantError) -> Self {
        Self::Unprepared { step: "definition", message: error.to_string() }
    }
}

impl Run<'_> {
    fn result(&self) -> CaseResult {
        match self.stored() {
            Ok(stored) => self.compare(&stored),
            Err(Stop::Decided(result)) => *result,
            Err(Stop::Unprepared { step, message }) => CaseResult {
                outcome: Outcome::Error,
                mismatches: vec![
                    Mismatch::new("outcome", self.case.expected().as_str(), Outcome::Error.as_str()),
                    Mismatch::new(step, "accepted", &message),
                ],
                message,
                ..CaseResult::default()
            },
        }
    }

    /// The object after the last request, when all were accepted as expected.
    fn stored(&self) -> Result<Value, Stop> {
        let (crd, version) = (&self.variant.crd, self.variant.version()?);
        let Some(updated) = &self.case.updated else {
            let write = Write { crd, version, old: None, status: false, eval: self.recording.into() };
            let created = write.decide(&body(&self.case.initial, crd));
            return self.decided(&created, self.case.expected_error.as_deref());
        };
        let initial = self.initial()?;
        let write = Write { crd, version, old: Some(&initial), status: false, eval: self.recording.into() };
        let body = same_object(body(updated, crd), &initial);
        let stored = self.decided(&write.decide(&body), self.case.expected_error.as_deref())?;
        if updated.get("status").is_none() {
            return Ok(stored);
        }
        let write = Write { old: Some(&stored), status: true, ..write };
        self.decided(&write.decide(&body), self.case.expected_status_error.as_deref())
    }

    /// The object that an update starts from, as read from the store.
    fn initial(&self) -> Result<Value, Stop> {
        let restored = &self.variant.crd;
        let patched = self.case.patches.as_ref().map(|patch| self.variant.patched(patch)).transpose()?;
        let crd = patched.as_ref().unwrap_or(restored);
        let name = self.variant.version()?.name();
        let version =
            crd.version(name).ok_or_else(|| Stop::from(VariantError::NoVersion(name.to_owned())))?;
        let body = body(&self.case.initial, crd);
        let write = Write { crd, version, old: None, status: false, eval: self.recording.into() };
        let mut stored = version.stored(&accepted("initial object", write.decide(&body), crd)?);
        if self.case.initial.get("status").is_some() {
            let write = Write { old: Some(&stored), status: true, ..write };
            stored = version.stored(&accepted("initial status", write.decide(&body), crd)?);
        }
        if patched.is_none() {
            return Ok(stored);
        }
        let version = self.variant.version()?;
        let old = version.stored(&stored);
        let write =
            Write { crd: restored, version, old: Some(&old), status: false, eval: self.recording.into() };
        accepted("initial object under the restored definition", write.decide(&stored), restored)
            .map(|stored| version.stored(&stored))
    }

    /// The object of an accepted request, unless this is where the case expects a refusal.
    fn decided(&self, written: &Written, expected: Option<&str>) -> Result<Value, Stop> {
        let crd = &self.variant.crd;
        let message = written.refusal(crd);
        let (Some(expected), Some(message)) = (expected, &message) else {
            let (expected, actual) = match (expected, message) {
                (None, None) => return Ok(self.variant.version()?.stored(&written.object)),
                (Some(expected), _) => (expected.to_owned(), Outcome::Allow),
                (None, Some(_)) => (String::new(), Outcome::Deny),
            };
            return Err(Stop::Decided(Box::new(self.refused(written, actual, &expected))));
        };
        let mut result = self.refused(written, Outcome::Deny, "");
        match agreement(expected, written, crd) {
            Agreement::Whole => {}
            Agreement::ButForValues => {
                result.notes.push(format!("expected in an older release's words: {expected}"));
            }
            Agreement::None => {
                let expected = format!("a text that contains `{expected}`");
                result.mismatches.push(Mismatch::new("message", &expected, message));
            }
        }
        Err(Stop::Decided(Box::new(result)))
    }

    /// Builds the result of a request that ends the case; `text` is an expected message that did not occur.
    fn refused(&self, written: &Written, outcome: Outcome, text: &str) -> CaseResult {
        let message = written.refusal(&self.variant.crd).unwrap_or_default();
        let mut mismatches = Vec::new();
        if outcome != self.case.expected() {
            mismatches.push(Mismatch::new("outcome", self.case.expected().as_str(), outcome.as_str()));
        }
        if !text.is_empty() {
            mismatches.push(Mismatch::new("message", &format!("a text that contains `{text}`"), &message));
        }
        let field = written.errors.first().map(|error| error.field.clone()).unwrap_or_default();
        CaseResult { outcome, message, field, mismatches, ..CaseResult::default() }
    }

    fn compare(&self, stored: &Value) -> CaseResult {
        let last = self.case.updated.as_ref().unwrap_or(&self.case.initial);
        let mut expected = self.case.expected.as_ref().unwrap_or(last).clone();
        let mut actual = stored.clone();
        for key in ["name", "namespace"] {
            set_metadata(
                &mut expected,
                key,
                actual.get("metadata").and_then(|metadata| metadata.get(key)).cloned(),
            );
        }
        for object in [&mut expected, &mut actual] {
            OF_THE_SERVER.into_iter().for_each(|key| set_metadata(object, key, None));
        }
        let mismatches = if expected == actual {
            Vec::new()
        } else {
            vec![Mismatch::new("stored object", &sorted(&expected), &sorted(&actual))]
        };
        CaseResult { outcome: Outcome::Allow, mismatches, ..CaseResult::default() }
    }
}

/// Builds a body as the runner sends it: it always sets `generateName`, in case there is no name, and a namespace.
fn body(object: &Value, crd: &CompiledCrd) -> Value {
    let mut body = object.clone();
    if body.pointer("/metadata/name").is_none() {
        set_metadata(&mut body, "name", Some("test-00000".into()));
    }
    set_metadata(&mut body, "generateName", Some("test-".into()));
    if crd.definition().scope == Scope::Namespaced {
        set_metadata(&mut body, "namespace", Some("default".into()));
    }
    body
}

/// The body of an update: of the object that is stored, whatever name the suite writes.
fn same_object(mut body: Value, stored: &Value) -> Value {
    for key in ["name", "namespace"] {
        set_metadata(&mut body, key, stored.pointer(&format!("/metadata/{key}")).cloned());
    }
    body
}

fn set_metadata(object: &mut Value, key: &str, value: Option<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    let metadata = map.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return };
    match value {
        Some(value) => {
            metadata.insert(key.to_owned(), value);
        }
        None => {
            metadata.shift_remove(key);
        }
    }
}

fn accepted(step: &'static str, written: Written, crd: &CompiledCrd) -> Result<Value, Stop> {
    match written.refusal(crd) {
        None => Ok(written.object),
        Some(message) => Err(Stop::Unprepared { step, message }),
    }
}

/// Indented JSON with maps in order of their keys, so that two objects can be compared line by line.
fn sorted(object: &Value) -> String {
    let mut object = object.clone();
    object.sort_all_objects();
    format!("{object:#}")
}
