//! Validates an object against its schema with the verdicts and messages of kube-apiserver's OpenAPI validator,
//! including bugs that users see: which failed alternative of an `anyOf` is reported depends on how many checks each
//! one passed.
//!
//! Where an old object is given, errors of nodes that did not change are tolerated (ratcheting); below
//! `allOf`/`anyOf`/`oneOf`/`not` none is.

mod number;
mod outcome;
mod scalar;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::Room;
use admit_apimachinery::go;
use serde_json::{Map, Value};

use self::outcome::Outcome;
use super::correlate::{Correlated, Items};
use super::list_type::has_repeated;
use super::structural::is_checked;
use super::{AdditionalProperties, Schema, SchemaType, format, prune};
use crate::deadline::Pace;
use crate::read::path::Path;

/// Validates `value`, found at `prefix` in its document. Paths inside messages start at `value`, those of the errors
/// at the document, as the API server prints them for a status or a default. Ends when its time is over.
#[must_use]
pub fn validate(
    value: &Value,
    schema: &Schema,
    ratchet: Option<&Correlated<'_>>,
    prefix: &Path<'_>,
    pace: &Pace<'_>,
) -> Vec<FieldError> {
    let room = Room::default();
    let formats = Formats::Checked;
    Node { schema, ratchet, path: &Path::Nil, pace, room: &room, formats }.outcome(value).into_errors(prefix)
}

/// Validates a default, found at `prefix` in its definition, against its own schema.
#[must_use]
pub(crate) fn validate_default(value: &Value, schema: &Schema, prefix: &Path<'_>) -> Vec<FieldError> {
    let (room, pace) = (Room::default(), Pace::default());
    let formats = Formats::AsWritten;
    let node = Node { schema, ratchet: None, path: &Path::Nil, pace: &pace, room: &room, formats };
    node.outcome(value).into_errors(prefix)
}

/// The formats that a value is held against.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Formats {
    /// Formats that a server checks in values of the type.
    Checked,
    /// Any format as written: a value that has neither the type nor the format then has another format, even an unknown one.
    AsWritten,
}

/// A node of the schema at one path of the document.
#[derive(Clone, Copy)]
struct Node<'a, 'r> {
    schema: &'a Schema,
    ratchet: Option<&'a Correlated<'a>>,
    path: &'a Path<'a>,
    pace: &'a Pace<'a>,
    /// What all failures share.
    room: &'r Room,
    formats: Formats,
}

impl<'r> Node<'_, 'r> {
    /// Creates the outcome of a check without failures.
    fn clean(&self) -> Outcome<'r> {
        Outcome::new(self.room)
    }

    /// Returns the failures of all checks, except those tolerated because the value did not change.
    fn outcome(&self, value: &Value) -> Outcome<'r> {
        if self.pace.is_over() {
            return self.clean();
        }
        let outcome = self.check(value);
        match self.ratchet {
            Some(correlated) if !outcome.is_valid() && correlated.is_unchanged() => outcome.forgiven(),
            _ => outcome,
        }
    }

    /// The node below at `path`.
    fn below<'n>(
        &'n self,
        schema: &'n Schema,
        ratchet: Option<&'n Correlated<'n>>,
        path: &'n Path<'n>,
    ) -> Node<'n, 'r> {
        Node { schema, ratchet, path, pace: self.pace, room: self.room, formats: self.formats }
    }

    fn check(&self, value: &Value) -> Outcome<'r> {
        let mut outcome = self.clean();
        if value.is_null() {
            outcome.merge(self.null_type());
            outcome.merge(self.enumeration(value));
            return outcome;
        }
        if self.has_type() || self.format().is_some() {
            outcome.merge_step(self.value_type(value));
        }
        outcome.merge_step(self.combinators(value));
        match value {
            Value::String(text) => {
                outcome.merge_step(self.string(text));
                if let Some(format) = self.format()
                    && format::is_known(format)
                {
                    outcome.merge_step(self.string_format(format, text));
                }
            }
            Value::Number(number) => outcome.merge_step(self.number(number)),
            Value::Array(items) => outcome.merge_step(self.array(items)),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        outcome.merge_step(self.enumeration(value));
        if let Value::Object(map) = value {
            outcome.merge_step(self.object(map));
        }
        outcome.step();
        outcome
    }

    fn array(&self, items: &[Value]) -> Outcome<'r> {
        let mut outcome = self.clean();
        if let Some(item_schema) = &self.schema.items {
            let old = self.ratchet.map_or_else(Items::none, Correlated::items);
            for (i, item) in items.iter().enumerate() {
                outcome
                    .merge(self.below(item_schema, old.get(i).as_ref(), &self.path.index(i)).outcome(item));
            }
        }
        let checks = &self.schema.checks;
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_items.filter(|min| size < *min) {
            outcome.invalid(self.path, size, || format!("should have at least {min} items"));
        }
        if let Some(max) = checks.max_items.filter(|max| size > *max) {
            outcome.too_many(self.path, size, max, "items");
        }
        if checks.unique_items && has_repeated(items) {
            outcome.invalid(self.path, "", || "shouldn't contain duplicates".to_owned());
        }
        outcome.step();
        outcome
    }

    fn object(&self, map: &Map<String, Value>) -> Outcome<'r> {
        let mut outcome = self.clean();
        let checks = &self.schema.checks;
        let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_properties.filter(|min| size < *min) {
            outcome.invalid(self.path, size, || format!("should have at least {min} properties"));
        }
        if let Some(max) = checks.max_properties.filter(|max| size > *max) {
            outcome.too_many(self.path, size, max, "properties");
        }
        let unnamed = map.iter().filter(|(key, _)| !self.schema.properties.contains_key(key.as_str()));
        match &self.schema.additional_properties {
            Some(AdditionalProperties::Allowed(false)) => {
                for (key, _) in unnamed {
                    outcome.sentence(self.path, key.as_str(), || {
                        format!("{} in body is a forbidden property", outcome::name(&self.path.key(key)))
                    });
                }
            }
            Some(AdditionalProperties::Schema(schema)) => {
                for (key, value) in unnamed {
                    outcome.merge(self.entry(key, value, schema, &self.path.key(key)));
                }
            }
            Some(AdditionalProperties::Allowed(true)) | None => {}
        }
        for (name, schema) in &self.schema.properties {
            if let Some(value) = map.get(&**name) {
                outcome.merge(self.entry(name, value, schema, &self.path.child(name)));
            }
        }
        for name in &checks.required {
            if !map.contains_key(&**name) {
                outcome.required(&self.path.key(name));
            }
        }
        outcome
    }

    fn entry(&self, key: &str, value: &Value, schema: &Schema, path: &Path<'_>) -> Outcome<'r> {
        // A change of apiVersion or kind is not visible: both documents were converted to the same version.
        let hidden = self.path.is_nil() && prune::is_meta_field(key) && key != "metadata";
        let ratchet = self.ratchet.filter(|_| !hidden).and_then(|correlated| correlated.key(key));
        self.below(schema, ratchet.as_ref(), path).outcome(value)
    }

    fn combinators(&self, value: &Value) -> Outcome<'r> {
        let checks = &self.schema.checks;
        let mut outcome = self.clean();
        let quoted = || go::quote(&outcome::name(self.path));
        let alternative = |schema: &Schema| self.below(schema, None, self.path).outcome(value);
        if !checks.any_of.is_empty() {
            let (best, valid) = choose(checks.any_of.iter().map(alternative), true);
            if valid == 0 {
                outcome.general(|| format!("{} must validate at least one schema (anyOf)", quoted()));
            }
            best.into_iter().for_each(|best| outcome.merge(best));
        }
        if !checks.one_of.is_empty() {
            let (best, valid) = choose(checks.one_of.iter().map(alternative), false);
            if valid != 1 {
                let found = || match valid {
                    0 => "Found none valid".to_owned(),
                    _ => format!("Found {valid} valid alternatives"),
                };
                outcome.general(|| {
                    format!("{} must validate one and only one schema (oneOf). {}", quoted(), found())
                });
            }
            if valid <= 1 {
                best.into_iter().for_each(|best| outcome.merge(best));
            }
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0_usize;
            for part in checks.all_of.iter().map(alternative) {
                valid = valid.saturating_add(usize::from(part.is_valid()));
                outcome.merge(part);
            }
            if valid != checks.all_of.len() {
                let rest = if valid == 0 { ". None validated" } else { "" };
                outcome.general(|| format!("{} must validate all the schemas (allOf){rest}", quoted()));
            }
        }
        if let Some(not) = &checks.not
            && alternative(not).is_valid()
        {
            outcome.general(|| format!("{} must not validate the schema (not)", quoted()));
        }
        outcome.step();
        outcome
    }

    fn has_type(&self) -> bool {
        self.schema.int_or_string || self.schema.schema_type.is_some()
    }

    /// Whether the value's type is among those of the schema.
    fn allows(&self, expected: &SchemaType) -> bool {
        if self.schema.int_or_string {
            matches!(expected, SchemaType::Integer | SchemaType::String)
        } else {
            self.schema.is_type(expected)
        }
    }

    fn type_names(&self) -> &str {
        if self.schema.int_or_string { "integer,string" } else { self.schema.type_text() }
    }

    /// The format that values are held against.
    fn format(&self) -> Option<&str> {
        match self.formats {
            Formats::Checked => self.checked_format(),
            Formats::AsWritten => self.schema.checks.format.as_deref().filter(|format| !format.is_empty()),
        }
    }

    /// The format, where a server checks it for this type.
    fn checked_format(&self) -> Option<&str> {
        let format = self.schema.checks.format.as_deref()?;
        let single = if self.schema.int_or_string { None } else { self.schema.schema_type.as_ref() };
        is_checked(format, single).then_some(format)
    }
}

/// The outcome that speaks for a list of alternatives, and how many were valid: the first valid one, else the one
/// that passed most checks, the earlier of equals.
fn choose<'r>(
    alternatives: impl Iterator<Item = Outcome<'r>>,
    stop_at_first: bool,
) -> (Option<Outcome<'r>>, usize) {
    let mut first_valid: Option<Outcome<'r>> = None;
    let mut best_failure: Option<Outcome<'r>> = None;
    let mut valid = 0_usize;
    for alternative in alternatives {
        if alternative.is_valid() {
            valid = valid.saturating_add(1);
            first_valid.get_or_insert(alternative);
            if stop_at_first {
                break;
            }
        } else if best_failure.as_ref().is_none_or(|best| alternative.matches() > best.matches()) {
            best_failure = Some(alternative);
        }
    }
    (first_valid.or(best_failure), valid)
}
