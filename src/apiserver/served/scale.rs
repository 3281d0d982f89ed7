//! Implements the scale subresource: an `autoscaling/v1 Scale` that is read from an object and written back to it.

use std::sync::LazyLock;

use admit_policy::crd;
use serde_json::{Value, json};

use crate::managed_fields::managers;
use crate::managed_fields::scale::Replicas;
use crate::object;
use crate::table;

/// The paths of the scale subresource, dotted, with a leading dot.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    /// The path of a label selector, or of its string form.
    pub label_selector: Option<String>,
}

/// The paths of the scale's fields in built-in kinds.
static BUILTIN: LazyLock<ScalePaths> = LazyLock::new(|| ScalePaths {
    spec_replicas: ".spec.replicas".to_owned(),
    status_replicas: ".status.replicas".to_owned(),
    label_selector: Some(".spec.selector".to_owned()),
});

impl From<&crd::ScalePaths> for ScalePaths {
    fn from(paths: &crd::ScalePaths) -> Self {
        let crd::ScalePaths { spec_replicas, status_replicas, label_selector } = paths.clone();
        Self { spec_replicas, status_replicas, label_selector }
    }
}

impl ScalePaths {
    /// The paths of the scale's fields in built-in kinds.
    pub(crate) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Returns the Scale of an object.
    #[must_use]
    pub(crate) fn scale_of(&self, object: &Value) -> Value {
        let number = |path: &str| at_path(object, path).and_then(Value::as_i64).unwrap_or(0);
        let mut meta = json!({});
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            let text = object::meta_str(object, field);
            if !text.is_empty() {
                meta[field] = text.into();
            }
        }
        let mut status = json!({"replicas": number(&self.status_replicas)});
        let selector = match self.label_selector.as_deref().and_then(|path| at_path(object, path)) {
            Some(Value::String(text)) => text.clone(),
            Some(selector @ Value::Object(_)) => table::selector_text(Some(selector)),
            _ => String::new(),
        };
        if !selector.is_empty() {
            status["selector"] = selector.into();
        }
        let replicas = number(&self.spec_replicas);
        let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status})
    }

    /// Returns the Scale of an object with its managed fields.
    #[must_use]
    pub(crate) fn managed_scale_of(&self, object: &Value, replicas: &Replicas) -> Value {
        let mut scale = self.scale_of(object);
        let entries = replicas.of_scale(object).ok().and_then(managers::encode);
        object::set_meta(&mut scale, "managedFields", entries);
        scale
    }

    /// Returns the object with the replica count and managed fields of a written `scale`.
    #[must_use]
    pub(crate) fn with_managed(&self, object: &Value, scale: &Value, replicas: &Replicas) -> Value {
        let mut scaled = self.with_scale(object, scale);
        let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if let Ok(all) = replicas.of_object(object, scale, version) {
            object::set_meta(&mut scaled, "managedFields", managers::encode(all));
        }
        scaled
    }

    /// Returns the object with the replica count of `scale`.
    #[must_use]
    pub(crate) fn with_scale(&self, object: &Value, scale: &Value) -> Value {
        let mut scaled = object.clone();
        let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        set_path(&mut scaled, &self.spec_replicas, replicas);
        let version = object::resource_version(scale);
        if !version.is_empty() {
            object::set_meta(&mut scaled, "resourceVersion", Some(version.into()));
        }
        scaled
    }
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
