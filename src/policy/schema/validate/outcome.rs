//! The result of one validation: its failures, each with the message by which it is deduplicated, and the number of
//! checks that passed.

use admit_apimachinery::field_error::{BadValue, FieldError, FieldErrorKind};
use admit_apimachinery::findings::{Finding as _, Room};
use admit_apimachinery::go;
use serde_json::Value;

use crate::read::path::Path;

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

struct Failure<'r> {
    /// The validator's own message; of failures with equal messages only the first is reported.
    message: String,
    /// The place, for failures that belong to one.
    name: Option<String>,
    kind: FieldErrorKind,
    value: BadValue,
    detail: String,
    _taken: Taken<'r>,
}

/// The space reserved for a failure, released when the failure is dropped: failed alternatives and unchanged values are tolerated.
struct Taken<'r> {
    room: &'r Room,
    bytes: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

/// See the module's head.
pub(super) struct Outcome<'r> {
    failures: Vec<Failure<'r>>,
    /// Failures that there was no room for.
    more: usize,
    matches: u32,
    room: &'r Room,
}

impl<'r> Outcome<'r> {
    /// Starts without failures. Failures are recorded as long as there is `room`.
    pub(super) const fn new(room: &'r Room) -> Self {
        Self { failures: Vec::new(), more: 0, matches: 0, room }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.failures.is_empty() && self.more == 0
    }

    /// Returns how many checks passed, as the validator counts them.
    pub(super) const fn matches(&self) -> u32 {
        self.matches
    }

    /// Counts one check.
    pub(super) const fn step(&mut self) {
        self.matches = self.matches.saturating_add(1);
    }

    pub(super) fn merge(&mut self, other: Self) {
        if self.failures.is_empty() {
            self.failures = other.failures;
        } else {
            other.failures.into_iter().for_each(|failure| self.add(failure));
        }
        self.more = self.more.saturating_add(other.more);
        self.matches = self.matches.saturating_add(other.matches);
    }

    /// Merges an outcome and counts it as a check.
    pub(super) fn merge_step(&mut self, other: Self) {
        self.merge(other);
        self.step();
    }

    /// The same without its failures.
    pub(super) fn forgiven(self) -> Self {
        Self { failures: Vec::new(), more: 0, ..self }
    }

    /// Compares with all other failures, of which there are at most [`MAX_FINDINGS`](admit_apimachinery::findings::MAX_FINDINGS).
    fn add(&mut self, failure: Failure<'r>) {
        if self.failures.iter().all(|known| known.message != failure.message) {
            self.failures.push(failure);
        }
    }

    /// Adds a failure at `path` with the text of `error`; `problem` completes the validator's message about it. If there is no space,
    /// neither is built.
    fn reword(&mut self, path: &Path<'_>, error: impl FnOnce() -> (String, FieldError)) {
        if self.room.is_full() {
            self.more = self.more.saturating_add(1);
            return;
        }
        let (problem, FieldError { kind, bad_value, detail, field: _ }) = error();
        let name = name(path);
        let message = format!("{name} in body {problem}");
        self.told(message, Some(name), (kind, bad_value), Some(detail));
    }

    /// Without a detail of its own, the message is used.
    fn told(
        &mut self,
        message: String,
        name: Option<String>,
        (kind, value): (FieldErrorKind, BadValue),
        detail: Option<String>,
    ) {
        let detail = detail.unwrap_or_else(|| message.clone());
        let texts = message.len().saturating_add(detail.len());
        let bytes = texts.saturating_add(name.as_ref().map_or(0, String::len)).saturating_add(value.size());
        self.room.take(bytes);
        let taken = Taken { room: self.room, bytes };
        self.add(Failure { message, name, kind, value, detail, _taken: taken });
    }

    /// A failure that the API server cannot place.
    pub(super) fn general(&mut self, message: impl FnOnce() -> String) {
        if self.room.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.told(message(), None, (FieldErrorKind::Invalid, "".into()), None);
        }
    }

    /// `problem` completes the sentence "NAME in body …".
    pub(super) fn invalid<V: Into<BadValue>>(
        &mut self,
        path: &Path<'_>,
        value: V,
        problem: impl FnOnce() -> String,
    ) {
        self.place(path, FieldErrorKind::Invalid, value, problem);
    }

    pub(super) fn invalid_type(&mut self, path: &Path<'_>, expected: &str, found: &str) {
        let problem = || format!("must be of type {expected}: {}", go::quote(found));
        self.place(path, FieldErrorKind::TypeInvalid, found, problem);
    }

    fn place<V: Into<BadValue>>(
        &mut self,
        path: &Path<'_>,
        kind: FieldErrorKind,
        value: V,
        problem: impl FnOnce() -> String,
    ) {
        if self.room.is_full() {
            self.more = self.more.saturating_add(1);
            return;
        }
        let name = name(path);
        let message = format!("{name} in body {}", problem());
        self.told(message, Some(name), (kind, value.into()), None);
    }

    pub(super) fn required(&mut self, path: &Path<'_>) {
        self.reword(path, || ("is required".to_owned(), FieldError::required("", "")));
    }

    pub(super) fn too_long(&mut self, path: &Path<'_>, max: i64) {
        self.reword(path, || (format!("should be at most {max} chars long"), FieldError::too_long("", max)));
    }

    pub(super) fn too_many(&mut self, path: &Path<'_>, actual: i64, max: i64, what: &str) {
        self.reword(path, || {
            (format!("should have at most {max} {what}"), FieldError::too_many("", actual, max))
        });
    }

    pub(super) fn not_supported(&mut self, path: &Path<'_>, value: &Value, supported: &[Value]) {
        self.reword(path, || {
            let supported: Vec<String> = supported
                .iter()
                .map(|value| value.as_str().map_or_else(|| go::json::text(value), ToOwned::to_owned))
                .collect();
            let problem = format!("should be one of [{}]", supported.join(" "));
            (problem, FieldError::not_supported("", value, supported.iter().map(String::as_str)))
        });
    }

    /// A failure with a sentence of its own.
    pub(super) fn sentence<V: Into<BadValue>>(
        &mut self,
        path: &Path<'_>,
        value: V,
        message: impl FnOnce() -> String,
    ) {
        if self.room.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.told(message(), Some(name(path)), (FieldErrorKind::Invalid, value.into()), None);
        }
    }

    /// The failures as field errors below `prefix`.
    pub(super) fn into_errors(self, prefix: &Path<'_>) -> Vec<FieldError> {
        let place =
            |name: Option<String>| match name.as_deref().map(|name| name.strip_prefix('.').unwrap_or(name)) {
                None | Some("") => prefix.to_string(),
                Some(name) if prefix.is_nil() => name.to_owned(),
                Some(name) => prefix.child(name).to_string(),
            };
        let error = |failure: Failure<'_>| {
            FieldError::new(failure.kind, place(failure.name), failure.value, failure.detail)
        };
        let more = (self.more > 0).then(|| FieldError::and_more(self.more));
        self.failures.into_iter().map(error).chain(more).collect()
    }
}
