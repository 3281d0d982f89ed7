//! What one check found: failures, each with the message that tells it from others, and how many checks passed.

use serde_json::Value;

use crate::error::{BadValue, FieldError, FieldErrorKind};
use crate::path::Path;

/// A path as the validator's messages write it: properties and map entries alike after a point, also the first one
/// below the document when it is a map entry or missing.
pub(super) fn name(path: &Path<'_>) -> String {
    let mut text = String::new();
    write_name(&mut text, path);
    text
}

fn write_name(text: &mut String, path: &Path<'_>) {
    match path {
        Path::Nil => {}
        Path::Root(root) => text.push_str(root),
        Path::Child(parent, name) => {
            write_name(text, parent);
            if !parent.is_nil() {
                text.push('.');
            }
            text.push_str(name);
        }
        Path::Key(parent, key) => {
            write_name(text, parent);
            text.push('.');
            text.push_str(key);
        }
        Path::Index(parent, index) => {
            write_name(text, parent);
            text.push_str(&format!("[{index}]"));
        }
    }
}

struct Failure {
    /// The validator's own sentence; of failures with the same sentence only the first is told.
    message: String,
    /// The place, for failures that belong to one.
    name: Option<String>,
    kind: FieldErrorKind,
    value: BadValue,
    detail: String,
}

/// See the module's head.
#[derive(Default)]
pub(super) struct Outcome {
    failures: Vec<Failure>,
    matches: u32,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    /// How many checks were made and passed, as far as the validator counts them.
    pub(super) const fn matches(&self) -> u32 {
        self.matches
    }

    /// Counts one check.
    pub(super) const fn step(&mut self) {
        self.matches = self.matches.saturating_add(1);
    }

    pub(super) fn merge(&mut self, other: Self) {
        for failure in other.failures {
            self.add(failure);
        }
        self.matches = self.matches.saturating_add(other.matches);
    }

    /// Merges and counts the check that was made.
    pub(super) fn merge_step(&mut self, other: Self) {
        self.merge(other);
        self.step();
    }

    /// The same without its failures.
    pub(super) fn forgiven(self) -> Self {
        Self { failures: Vec::new(), matches: self.matches }
    }

    fn add(&mut self, failure: Failure) {
        if self.failures.iter().all(|known| known.message != failure.message) {
            self.failures.push(failure);
        }
    }

    /// A failure that the API server cannot place.
    pub(super) fn general(&mut self, message: String) {
        let detail = message.clone();
        self.add(Failure { message, name: None, kind: FieldErrorKind::Invalid, value: "".into(), detail });
    }

    /// `problem` completes the sentence "NAME in body …".
    pub(super) fn invalid(&mut self, path: &Path<'_>, value: impl Into<BadValue>, problem: &str) {
        self.place(path, FieldErrorKind::Invalid, value.into(), problem);
    }

    pub(super) fn invalid_type(&mut self, path: &Path<'_>, expected: &str, found: &str) {
        let problem = format!("must be of type {expected}: {}", crate::go_text::quote(found));
        self.place(path, FieldErrorKind::TypeInvalid, found.into(), &problem);
    }

    fn place(&mut self, path: &Path<'_>, kind: FieldErrorKind, value: BadValue, problem: &str) {
        let name = name(path);
        let message = format!("{name} in body {problem}");
        let detail = message.clone();
        self.add(Failure { message, name: Some(name), kind, value, detail });
    }

    /// A failure whose text is the field error's, not the validator's.
    fn reword(&mut self, path: &Path<'_>, problem: &str, error: FieldError) {
        let name = name(path);
        let message = format!("{name} in body {problem}");
        let FieldError { kind, bad_value: value, detail, field: _ } = error;
        self.add(Failure { message, name: Some(name), kind, value, detail });
    }

    pub(super) fn required(&mut self, path: &Path<'_>) {
        self.reword(path, "is required", FieldError::required("", ""));
    }

    pub(super) fn too_long(&mut self, path: &Path<'_>, max: i64) {
        let problem = format!("should be at most {max} chars long");
        self.reword(path, &problem, FieldError::too_long("", max));
    }

    pub(super) fn too_many(&mut self, path: &Path<'_>, actual: i64, max: i64, problem: &str) {
        self.reword(path, problem, FieldError::too_many("", actual, max));
    }

    pub(super) fn not_supported(&mut self, path: &Path<'_>, value: &Value, supported: &[String]) {
        let problem = format!("should be one of [{}]", supported.join(" "));
        let error = FieldError::not_supported("", value, supported.iter().map(String::as_str));
        self.reword(path, &problem, error);
    }

    /// A failure with a sentence of its own.
    pub(super) fn sentence(&mut self, path: &Path<'_>, value: impl Into<BadValue>, message: String) {
        let detail = message.clone();
        let (name, value) = (Some(name(path)), value.into());
        self.add(Failure { message, name, kind: FieldErrorKind::Invalid, value, detail });
    }

    /// The failures as field errors below `prefix`.
    pub(super) fn into_errors(self, prefix: &Path<'_>) -> Vec<FieldError> {
        let place =
            |name: Option<String>| match name.as_deref().map(|name| name.strip_prefix('.').unwrap_or(name)) {
                None | Some("") => prefix.to_string(),
                Some(name) if prefix.is_nil() => name.to_owned(),
                Some(name) => prefix.child(name).to_string(),
            };
        self.failures
            .into_iter()
            .map(|failure| FieldError::new(failure.kind, place(failure.name), failure.value, failure.detail))
            .collect()
    }
}
