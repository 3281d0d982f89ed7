//! Prepares and checks the creation or update of a custom resource, as the API server's storage layer does.
//!
//! ```text
//! body ──address──► default ─► prune ─► read metadata ─► keep what the request may not change ─► validate ──► Written
//!        name, namespace
//! ```
//!
//! Storing the object, policies, and what only a server knows (uids, versions, conflicts) is left to others.

use admit_apimachinery::field_error::{FieldError, aggregate};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use admit_apimachinery::pointer;
use admit_apimachinery::status::invalid_subject;
use serde_json::{Map, Value, json};

use super::definition::Scope;
use super::{CompiledCrd, CrdVersion, Unread, ValidateOptions};
use crate::read::path::Path;
use crate::report::options::EvalOptions;
use crate::schema::metadata::{self, Malformed};

/// Stands for the five letters that the server would choose; no valid name, so that none is mistaken for one.
const GENERATED: &str = "XXXXX";

/// A request that writes a custom resource.
///
/// ```
/// use admit_policy::crd::{CompiledCrd, Unread, Write, Written};
/// use admit_policy::{EvalOptions, Interrupted};
/// use serde_json::json;
///
/// let crd = CompiledCrd::compile(&json!({
///     "apiVersion": "apiextensions.k8s.io/v1",
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "cats.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
///         "scope": "Namespaced",
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///             "type": "object",
///             "properties": {"spec": {"type": "object", "properties": {"lives": {"type": "integer"}}}},
///         }}}],
///     },
/// }))
/// .unwrap();
/// let version = crd.version("v1").unwrap();
/// let write = Write { crd: &crd, version, old: None, status: false, eval: EvalOptions::default() };
/// let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "tom"}, "spec": {"lives": "many"}});
/// let written = write.decide(&cat);
/// assert_eq!(written.subject(&crd), "Cat.example.com \"tom\" is invalid: ");
/// assert!(written.refusal(&crd).unwrap().starts_with("Cat.example.com \"tom\" is invalid: spec.lives: Invalid value"));
/// assert!(Written::unread(cat, Unread::from(Interrupted)).interrupted);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    pub crd: &'a CompiledCrd,
    pub version: &'a CrdVersion,
    /// The stored object, defaulted and pruned; absent for a creation.
    pub old: Option<&'a Value>,
    /// The request goes to `/status`.
    pub status: bool,
    /// The caller's hooks: the deadline applies to all steps, the rest to the evaluation of rules.
    pub eval: EvalOptions<'a>,
}

/// The result of a write.
///
/// [`Write`] has an example.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// The object to store, if there are no errors.
    pub object: Value,
    /// The errors, in the order in which the API server lists them.
    pub errors: Vec<FieldError>,
    /// Unknown fields, and failed rules that were tolerated because what they refer to did not change.
    pub warnings: Vec<String>,
    /// Whether time ran out before it was decided. Then one of the errors says so.
    pub interrupted: bool,
}

impl Write<'_> {
    /// Decides `body`. A name that is to be generated ends in `XXXXX`; a missing namespace is left out.
    #[must_use]
    pub fn decide(&self, body: &Value) -> Written {
        let mut object = self.addressed(body);
        let unknown = match self.version.read(&mut object, Malformed::Refuse, self.eval.deadline) {
            Ok(unknown) => unknown,
            Err(unread) => return Written::unread(object, unread),
        };
        let object = self.prepared(object);
        let metadata =
            if self.old.is_none() { self.metadata_errors(&object) } else { FieldErrors::default() };
        let options =
            ValidateOptions { status: self.status, blocked: metadata.block_rules(), eval: self.eval };
        let found = self.version.validate(&object, self.old, &options);
        let errors: FieldErrors = metadata.into_iter().chain(found.errors).collect();
        let mut warnings: Vec<_> = unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        warnings.extend(found.warnings);
        Written { object, errors: errors.into_vec(), warnings, interrupted: found.interrupted }
    }

    fn addressed(&self, body: &Value) -> Value {
        let mut body = body.clone();
        let cluster = self.crd.definition().scope == Scope::Cluster;
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            if cluster {
                metadata.shift_remove("namespace");
            }
            if text(metadata, "name").is_empty() && !text(metadata, "generateName").is_empty() {
                let name = format!("{}{GENERATED}", text(metadata, "generateName"));
                metadata.insert("name".to_owned(), name.into());
            }
        }
        body
    }

    /// With a status subresource, one request changes the status and another everything else.
    fn prepared(&self, mut object: Value) -> Value {
        let name = self.version.name();
        let split = self.crd.definition().version(name).is_some_and(|version| version.status_subresource);
        let status = |object: &Value| object.get("status").cloned();
        match self.old {
            Some(old) if self.status => {
                let mut kept = old.clone();
                set_status(&mut kept, status(&object));
                kept
            }
            Some(old) if split => {
                set_status(&mut object, status(old));
                object
            }
            None if split => {
                set_status(&mut object, None);
                object
            }
            _ => object,
        }
    }

    fn metadata_errors(&self, object: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        let mut fields = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let namespaced = self.crd.definition().scope == Scope::Namespaced;
        if namespaced {
            fields.entry("namespace").or_insert_with(|| json!("default"));
        }
        let prefix = text(&fields, "generateName");
        let prefix_problems =
            if prefix.is_empty() { Vec::new() } else { NameRule::Subdomain.problems(prefix, true) };
        let name = text(&fields, "name");
        let of_prefix = |why| FieldError::invalid("metadata.generateName", prefix, why);
        let generated = is_generated(&fields) && prefix_problems.is_empty();
        errors.extend(prefix_problems.into_iter().map(of_prefix));
        if name.is_empty() {
            errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        } else if !generated {
            let problems = names::dns1123_subdomain(name);
            errors.extend(problems.into_iter().map(|why| FieldError::invalid("metadata.name", name, why)));
        }
        metadata::validate_object_meta(&fields, namespaced, &Path::Root("metadata"), &mut errors);
        errors
    }
}

impl Written {
    /// The result for an `object` whose metadata could not be read.
    #[must_use]
    pub fn unread(object: Value, unread: Unread) -> Self {
        let (error, interrupted) = match unread {
            Unread::Malformed(error) => (*error, false),
            Unread::Interrupted(interrupted) => {
                (FieldError::internal(Path::Nil, interrupted.to_string()), true)
            }
        };
        Self { object, errors: vec![error], warnings: Vec::new(), interrupted }
    }

    /// Returns the message of the `Status` that rejects the write: `Widget.example.dev "a" is invalid: spec.b: …`.
    #[must_use]
    pub fn refusal(&self, crd: &CompiledCrd) -> Option<String> {
        if self.errors.is_empty() {
            return None;
        }
        Some(format!("{}{}", self.subject(crd), aggregate(&self.errors)))
    }

    /// Returns the beginning of that message.
    #[must_use]
    pub fn subject(&self, crd: &CompiledCrd) -> String {
        let definition = crd.definition();
        let name = pointer::text(&self.object, "/metadata/name");
        invalid_subject(&definition.group, &definition.names.kind, name) + ": "
    }
}

/// Whether the name is one of ours, whose masked end is no valid one.
fn is_generated(metadata: &Map<String, Value>) -> bool {
    text(metadata, "name")
        .strip_suffix(GENERATED)
        .is_some_and(|start| !start.is_empty() && start == text(metadata, "generateName"))
}

fn text<'m>(metadata: &'m Map<String, Value>, key: &str) -> &'m str {
    metadata.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn set_status(object: &mut Value, status: Option<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    match status {
        Some(status) => {
            map.insert("status".to_owned(), status);
        }
        None => {
            map.shift_remove("status");
        }
    }
}
