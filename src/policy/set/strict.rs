//! Finds unknown fields in manifests of policies and CRDs. The API server decodes its manifests strictly, and kubectl
//! asks for the same: a misplaced field has no effect, and a policy without it allows what it should not.

use admit_apimachinery::suggest;
use serde_json::{Map as Object, Value};

use super::shapes::{self, Fields, Shape};
use crate::read::path::Path;
use crate::schema::metadata;
use admit_apimachinery::bounded::{MAX_PATH, MAX_PATHS, shorten};

use Shape::{Any, Both, Lenient, List, Map, Metadata, One, Struct};

/// A field that its kind does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// `spec.validations[0].expresion`
    pub(crate) path: String,
    /// Whether a strict server rejects it; otherwise the server drops it silently.
    pub(crate) refused: bool,
    /// The field that may be meant.
    pub(crate) nearest: Option<&'static str>,
}

/// The fields of `document` that its kind does not have, in the order of the document; of very many the first.
pub(crate) fn unknown_fields(group: &str, kind: &str, document: &Value) -> Vec<UnknownField> {
    let Some(shape) = shapes::of(group, kind) else { return Vec::new() };
    let mut walk = Walk { refused: true, unknown: Vec::new() };
    walk.value(document, shape, &Path::Nil);
    walk.unknown
}

struct Walk {
    /// Whether unknown fields here are rejected.
    refused: bool,
    unknown: Vec<UnknownField>,
}

impl Walk {
    fn value(&mut self, value: &Value, shape: &Shape, path: &Path<'_>) {
        match (shape, value) {
            (Struct(known), Value::Object(fields)) => self.fields(fields, (known, &[]), path),
            (Both(own, shared), Value::Object(fields)) => self.fields(fields, (own, shared), path),
            (Map(entry), Value::Object(fields)) => {
                for (key, value) in fields {
                    self.value(value, entry, &path.key(key));
                }
            }
            (One(shape), value) => self.value(value, shape, path),
            (List(item), Value::Array(items)) => self.items(items, item, path),
            (Metadata, value) => {
                metadata::unknown_fields(value, path).into_iter().for_each(|path| self.push(None, || path));
            }
            (Lenient(one), value) => {
                let refused = std::mem::replace(&mut self.refused, false);
                match value {
                    Value::Array(items) => self.items(items, one, path),
                    value => self.value(value, one, path),
                }
                self.refused = refused;
            }
            // A value of another type is reported where it is parsed.
            (Any | Struct(_) | Both(..) | Map(_) | List(_), _) => {}
        }
    }

    fn fields(&mut self, fields: &Object<String, Value>, (own, shared): (Fields, Fields), path: &Path<'_>) {
        for (name, value) in fields {
            let at = path.child(name);
            match own.iter().chain(shared).find(|(known, _)| known == name) {
                Some((_, shape)) => self.value(value, shape, &at),
                None => {
                    let known = own.iter().chain(shared).map(|(known, _)| *known);
                    self.push(suggest::nearest(name, known), || at.to_string());
                }
            }
        }
    }

    fn items(&mut self, items: &[Value], shape: &Shape, path: &Path<'_>) {
        for (at, value) in items.iter().enumerate() {
            self.value(value, shape, &path.index(at));
        }
    }

    fn push(&mut self, nearest: Option<&'static str>, path: impl FnOnce() -> String) {
        if self.unknown.len() < MAX_PATHS {
            let mut path = path();
            shorten(&mut path, MAX_PATH);
            self.unknown.push(UnknownField { path, refused: self.refused, nearest });
        }
    }
}
