//! Simulates a request under two definitions. An object is reported only if the engine rejects it under the new one and accepts it
//! under the old one.

use std::collections::BTreeSet;
use std::sync::Arc;

use admit_policy::EvalOptions;
use admit_policy::crd::{CompiledCrd, CrdVersion, Scope, ValidateOptions, Write, Written};
use admit_policy::schema::{Malformed, Schema};
use serde_json::{Value as Json, json};

use super::changes::Change;
use super::shrink::{Request, Shrinks, shrunk};
use super::subject::is_name;
use super::view::is_open;
use super::{Counterexample, Said};

/// The kind of write; [`super::Upgrade`] has an example.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// A new object is created.
    Create,
    /// A stored object is written back; only its labels may change.
    Update,
    /// The status of a stored object is written.
    Status,
}

/// The message of the server about rules that it did not run.
const NOT_CHECKED: &str = "some validation rules were not checked";

/// The name of a field that schemas rarely declare.
const UNDECLARED: &str = "undeclared";

/// The rejected field, and the message.
type Refusal = (String, String);

fn refusals(found: Written) -> Vec<Refusal> {
    found.errors.into_iter().map(|error| (error.field.clone(), error.to_string())).collect()
}

/// Both definitions, and the kind of write.
pub(super) struct Trial<'a> {
    pub(super) old: &'a CompiledCrd,
    pub(super) new: &'a CompiledCrd,
    pub(super) versions: (&'a Arc<CrdVersion>, &'a Arc<CrdVersion>),
    pub(super) step: Step,
}

/// A request that breaks a step.
struct Broken {
    request: Request,
    found: Counterexample,
}

impl Shrinks for Broken {
    fn request(&self) -> Request {
        self.request.clone()
    }
}

impl Trial<'_> {
    /// Returns the smallest request that shows a change, starting from a solver's.
    pub(super) fn smallest(
        &self,
        change: &Change,
        request: Request,
        over: &dyn Fn() -> bool,
    ) -> Option<Counterexample> {
        let confirm = |request: &Request| self.broken(request, change);
        let mut first = confirm(&request);
        if first.is_none() && self.step == Step::Update {
            // Ratcheting accepts values that it recognises as unchanged. Undeclared fields and labels prevent that recognition.
            let mut labelled = request.0;
            labelled.get_mut("metadata")?.as_object_mut()?.insert("labels".to_owned(), json!({"a": "a"}));
            let mut extended = labelled.clone();
            extend(&mut extended, self.versions.0.schema());
            first = confirm(&(labelled, None)).or_else(|| confirm(&(extended, None)));
        }
        Some(shrunk(first?, confirm, over).found)
    }

    fn broken(&self, request: &Request, change: &Change) -> Option<Broken> {
        let (written, before, errors) = match self.step {
            Step::Create => self.created(&request.0)?,
            Step::Update => self.updated(&request.0)?,
            Step::Status => self.status(&request.0, request.1.as_ref()?)?,
        };
        let was_not_run = |refusal: &Refusal| refusal.1.contains(NOT_CHECKED);
        let shows = |refusal: &Refusal| match &change.rule {
            Some(told) => {
                let is_named = told.is_computed || refusal.1.contains(&told.words);
                is_named && (change.field.is_empty() || is_about(refusal, &change.field))
            }
            None => !was_not_run(refusal) && is_about(refusal, &change.field),
        };
        // A rule that did not run shows nothing.
        let is_shown = errors.iter().any(shows) && (change.rule.is_none() || !errors.iter().any(was_not_run));
        if !is_shown {
            return None;
        }
        let messages = errors.into_iter().map(|(_, text)| text).collect();
        let refused = Said { denied: true, failed: false, messages };
        let said = vec![Said::default(), refused];
        let subresource = if self.step == Step::Status { "status" } else { "" }.to_owned();
        let found = Counterexample { object: written, old_object: before, subresource, said };
        Some(Broken { request: request.clone(), found })
    }

    fn write<'w>(
        crd: &'w CompiledCrd,
        version: &'w CrdVersion,
        old: Option<&'w Json>,
        status: bool,
    ) -> Write<'w> {
        Write { crd, version, old, status, eval: EvalOptions::default() }
    }

    fn created(&self, written: &Json) -> Option<(Json, Option<Json>, Vec<Refusal>)> {
        let (old, new) = self.versions;
        let taken = Self::write(self.old, old, None, false).decide(written);
        let is_taken = self.is_addressed(written) && taken.errors.is_empty() && taken.warnings.is_empty();
        if !is_taken || !is_within(written, &taken.object) {
            return None;
        }
        let found = Self::write(self.new, new, None, false).decide(written);
        Some((written.clone(), None, refusals(found)))
    }

    /// Returns the stored object after the write, as the old definition reads it.
    fn stored(&self, written: &Json) -> Option<Json> {
        let mut stored = written.clone();
        let unknown = self.versions.0.read(&mut stored, Malformed::Refuse, None).ok()?;
        let found = self.versions.0.validate(&stored, None, &ValidateOptions::default());
        let is_sound = unknown.is_empty() && self.is_addressed(written) && is_within(written, &stored);
        (is_sound && found.errors.is_empty()).then_some(stored)
    }

    fn updated(&self, written: &Json) -> Option<(Json, Option<Json>, Vec<Refusal>)> {
        let (old, new) = self.versions;
        let stored = self.stored(written)?;
        // Changes one label, so that the object is not equal as a whole.
        let with_label = |object: &Json| {
            let mut object = object.clone();
            if let Some(label) = object.pointer_mut("/metadata/labels/a") {
                *label = "b".into();
            }
            object
        };
        let taken = Self::write(self.old, old, Some(&stored), false).decide(&with_label(&stored));
        if !taken.errors.is_empty() {
            return None;
        }
        let read = new.stored(&stored);
        let body = with_label(&read);
        let found = Self::write(self.new, new, Some(&read), false).decide(&body);
        Some((body, Some(read), refusals(found)))
    }

    fn status(&self, written: &Json, stored: &Json) -> Option<(Json, Option<Json>, Vec<Refusal>)> {
        let (old, new) = self.versions;
        let stored = self.stored(stored)?;
        let mut body = stored.clone();
        let map = body.as_object_mut()?;
        match written.get("status") {
            Some(status) => drop(map.insert("status".to_owned(), status.clone())),
            None => drop(map.shift_remove("status")),
        }
        let taken = Self::write(self.old, old, Some(&stored), true).decide(&body);
        if !taken.errors.is_empty() || !taken.warnings.is_empty() || !is_within(&body, &taken.object) {
            return None;
        }
        let read = new.stored(&stored);
        let found = Self::write(self.new, new, Some(&read), true).decide(&body);
        Some((body, Some(read), refusals(found)))
    }

    fn is_addressed(&self, object: &Json) -> bool {
        let is_namespaced = self.old.definition().scope == Scope::Namespaced;
        let named = object.pointer("/metadata/name").and_then(Json::as_str).is_some_and(is_name);
        named && object.pointer("/metadata/namespace").and_then(Json::as_str).is_some() == is_namespaced
    }
}

/// Adds an undeclared field to each object that may have one.
fn extend(value: &mut Json, schema: &Schema) {
    match value {
        Json::Object(map) => {
            for (name, child) in map.iter_mut() {
                if let Some(schema) = schema.child(name) {
                    extend(child, schema);
                }
            }
            if is_open(schema) && schema.child(UNDECLARED).is_none() {
                map.insert(UNDECLARED.to_owned(), "a".into());
            }
        }
        Json::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| extend(item, schema));
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Reports whether reading a document pruned nothing.
fn is_within(written: &Json, read: &Json) -> bool {
    match (written, read) {
        (Json::Object(written), Json::Object(read)) => {
            written.iter().all(|(key, value)| read.get(key).is_some_and(|read| is_within(value, read)))
        }
        (Json::Array(written), Json::Array(read)) => {
            written.len() == read.len() && written.iter().zip(read).all(|(a, b)| is_within(a, b))
        }
        (written, read) => written == read,
    }
}

/// Reports whether an error is about a field or its children, whatever the indices and keys. For some errors the server names the field
/// only in the message.
fn is_about((path, text): &Refusal, field: &str) -> bool {
    if path == "<nil>" {
        return plain(text).contains(&plain(field));
    }
    let parts: Vec<&str> = field.split("[]").collect();
    is_below(path, &parts) || is_below(&plain(path), &[&plain(field)])
}

/// Reports whether a path is that of a field or of one below it. Between the parts of the field stands an index or a key, in brackets or, as
/// the validation of schemas writes keys of maps, behind a dot.
fn is_below(path: &str, parts: &[&str]) -> bool {
    let Some((first, others)) = parts.split_first() else { return false };
    // What may follow each part. Keys may hold any character, so that there are several; each is looked at once.
    let mut rests: BTreeSet<&str> = path.strip_prefix(first).into_iter().collect();
    for part in others {
        rests = rests.into_iter().flat_map(after_key).filter_map(|rest| rest.strip_prefix(part)).collect();
    }
    rests.iter().any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns all that may follow the index or key that a text begins with.
fn after_key(text: &str) -> impl Iterator<Item = &str> {
    let close = match text.chars().next() {
        Some('[') => Some("]"),
        Some('.') => Some(""),
        _ => None,
    };
    let ends = text.char_indices().skip(1).map(|(at, _)| at).chain([text.len()]);
    close
        .into_iter()
        .flat_map(move |close| ends.clone().filter_map(move |at| text.get(at..)?.strip_prefix(close)))
}

/// Returns a path without indices and keys.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    let mut is_key = false;
    for c in path.chars() {
        match c {
            '[' => is_key = true,
            ']' => is_key = false,
            c if !is_key => plain.push(c),
            _ => {}
        }
    }
    plain
}
