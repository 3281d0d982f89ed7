//! A custom resource behind its row: what its CustomResourceDefinition says about objects.

use std::sync::Arc;

use admit_policy::crd::{CompiledCrd, CrdVersion, ValidateOptions};
use admit_policy::error::{BadValue, FieldError, FieldErrorKind};
use admit_policy::schema::metadata::Malformed;
use serde_json::{Value, json};

use crate::managed_fields::schema::{Schema, TypeId};
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Cause;

/// A resource that a CRD defines, with all its versions.
#[derive(Debug)]
pub struct CustomKind {
    /// The CRD's name: `widgets.example.dev`.
    pub definition: String,
    pub group: String,
    pub plural: String,
    /// The CRD is being deleted: nothing new may be created.
    pub terminating: bool,
    pub versions: Vec<Arc<CustomVersion>>,
}

/// One version of a custom resource.
#[derive(Debug)]
pub struct CustomVersion {
    pub info: Arc<ResourceInfo>,
    pub served: bool,
    /// All versions of the definition: `example.dev/v1`.
    pub api_versions: Arc<[String]>,
    pub terminating: bool,
    /// The warning that every request to this version answers.
    pub deprecation: Option<String>,
    pub scale: Option<ScalePaths>,
    /// How field ownership types objects.
    pub typing: (Schema, TypeId),
    /// The compiled schema and rules; None for a stored definition that no longer compiles.
    pub rules: Option<Arc<CrdVersion>>,
}

/// Where the scale subresource reads and writes, as dotted paths with a leading dot.
#[derive(Clone, Debug)]
pub struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

impl CustomVersion {
    /// Removes what the schema does not know; answers the paths, sorted.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        self.rules.as_ref().map(|rules| rules.prune(object)).unwrap_or_default()
    }

    /// Reads the metadata of embedded resources; unknown fields are removed and named.
    ///
    /// # Errors
    /// The first field of the wrong type: `spec.r.kind: Invalid value: 5: must be a string`.
    pub fn read_metadata(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let Some(rules) = &self.rules else { return Ok(Vec::new()) };
        rules.coerce_metadata(object, Malformed::Refuse).map_err(|error| error.to_string())
    }

    /// Fills in defaults; nulls that the schema does not allow count as absent.
    pub fn default(&self, object: &mut Value) {
        if let Some(rules) = &self.rules {
            rules.default(object);
        }
    }

    /// What is wrong with the object, its metadata apart.
    pub(super) fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        status: bool,
        earlier: &[Cause],
    ) -> Vec<Cause> {
        let Some(rules) = &self.rules else {
            let why = "the definition of this resource does not compile";
            return vec![Cause::forbidden("<nil>", why)];
        };
        let earlier: Vec<FieldError> = earlier.iter().map(field_error).collect();
        let options = ValidateOptions { status, earlier: &earlier, ..ValidateOptions::default() };
        causes(&rules.validate(new, old, &options).errors)
    }

    /// The `autoscaling/v1 Scale` of an object.
    #[must_use]
    pub fn scale_of(&self, object: &Value) -> Value {
        let Some(paths) = &self.scale else { return Value::Null };
        let number = |path: &str| at_path(object, path).and_then(Value::as_i64).unwrap_or(0);
        let mut meta = json!({});
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            let text = object::meta_str(object, field);
            if !text.is_empty() {
                meta[field] = text.into();
            }
        }
        let mut status = json!({"replicas": number(&paths.status_replicas)});
        let selector = paths.label_selector.as_deref().and_then(|path| at_path(object, path));
        if let Some(selector) = selector.and_then(Value::as_str).filter(|text| !text.is_empty()) {
            status["selector"] = selector.into();
        }
        let replicas = number(&paths.spec_replicas);
        let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status})
    }

    /// The object with the replica count of `scale`.
    #[must_use]
    pub fn with_scale(&self, object: &Value, scale: &Value) -> Value {
        let mut scaled = object.clone();
        if let Some(paths) = &self.scale {
            let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
            set_path(&mut scaled, &paths.spec_replicas, replicas);
        }
        let version = object::resource_version(scale);
        if !version.is_empty() {
            object::set_meta(&mut scaled, "resourceVersion", Some(version.into()));
        }
        scaled
    }
}

/// What is wrong with a definition, or with its change.
pub(super) fn definition_causes(definition: &Value, old: Option<&Value>) -> Vec<Cause> {
    let compiled = match old {
        None => CompiledCrd::compile(definition),
        Some(old) => CompiledCrd::compile_update(definition, old),
    };
    compiled.err().map(|errors| causes(&errors)).unwrap_or_default()
}

/// The compiled definition. A stored one that does not compile was accepted by other rules than today's.
pub(super) fn rules(definition: &Value) -> Option<CompiledCrd> {
    match CompiledCrd::compile(definition) {
        Ok(compiled) => Some(compiled),
        Err(errors) => {
            let name = object::name(definition);
            tracing::error!(definition = name, errors = errors.len(), "a stored definition does not compile");
            None
        }
    }
}

/// As much of a cause as says whether it keeps rules from being run.
fn field_error(cause: &Cause) -> FieldError {
    let kind = match cause.reason.as_str() {
        "FieldValueRequired" => FieldErrorKind::Required,
        "FieldValueTooLong" => FieldErrorKind::TooLong,
        "FieldValueTooMany" => FieldErrorKind::TooMany,
        "FieldValueNotSupported" => FieldErrorKind::NotSupported,
        "FieldValueTypeInvalid" => FieldErrorKind::TypeInvalid,
        _ => FieldErrorKind::Invalid,
    };
    FieldError::new(kind, &cause.field, BadValue::Omitted, "")
}

pub(crate) fn causes(errors: &[FieldError]) -> Vec<Cause> {
    let cause = |error: &FieldError| Cause {
        reason: error.kind.reason().to_owned(),
        field: error.field.clone(),
        message: error.body(),
    };
    errors.iter().map(cause).collect()
}

fn at_path<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |value, step| value.get(step))
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut steps: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let Some(last) = steps.pop() else { return };
    let mut map = object::map_of(object);
    for step in steps {
        map = object::member_mut(map, step);
    }
    map.insert(last.to_owned(), value);
}
