//! Selects objects of lists and watches by labels, and by the fields that a resource supports.

use admit_apimachinery::selector::{FieldTerm, LabelSelector, field_terms};
use serde_json::Value;

use crate::kinds::{Habit, has};
use crate::resources::{ResourceInfo, Scope};
use crate::status::Refusal;
use crate::store::Packed;

/// Both selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
}

impl Selector {
    /// # Errors
    /// 400 with the parser's message, or for a field that `info` does not support.
    pub(crate) fn parse(info: &ResourceInfo, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let labels = LabelSelector::parse(labels).map_err(|error| Refusal::bad_request(error.to_string()))?;
        let fields = field_terms(fields).map_err(|error| Refusal::bad_request(error.to_string()))?;
        for term in &fields {
            if !selectable(info, &term.path) {
                return Err(unknown_field(info, &term.path));
            }
        }
        Ok(Self { labels, fields })
    }

    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether selection needs metadata only.
    fn asks_metadata(&self) -> bool {
        self.fields.iter().all(|term| field_path(&term.path).starts_with("metadata."))
    }

    /// Returns whether a stored object is selected, for resources whose clients see it as it is stored.
    #[must_use]
    pub(super) fn matches_stored(&self, object: &Packed) -> bool {
        match self.is_empty() {
            true => true,
            false if self.asks_metadata() => self.matches(&object.head()),
            false => self.matches(&object.values()),
        }
    }

    /// Returns whether `object`, in the form that clients see, is selected.
    #[must_use]
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.matches_labels_of(Some(object)) && self.fields.iter().all(|term| holds(term, object))
    }
}

/// Returns the name that a field selector requires, if there is one.
#[must_use]
pub(crate) fn exact_name(fields: &str) -> Option<String> {
    let terms = field_terms(fields).ok()?;
    terms.into_iter().find(|term| term.equal && term.path == "metadata.name").map(|term| term.value)
}

/// Returns whether the field of `object` matches the term.
fn holds(term: &FieldTerm, object: &Value) -> bool {
    (field_text(object, &term.path) == term.value) == term.equal
}

/// Returns a field's value as a string for comparison; the zero value if it is absent.
fn field_text(object: &Value, path: &str) -> String {
    // Lists can be selected by, but never have a value.
    if path == "status.podIPs" {
        return String::new();
    }
    // Events have a component, or a controller that reports them.
    let path = if path == "source" && field_text(object, "source.component").is_empty() {
        "reportingComponent"
    } else {
        path
    };
    let mut value = object;
    for step in field_path(path).split('.') {
        value = value.get(step).unwrap_or(&Value::Null);
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Null if path == "spec.unschedulable" || path == "spec.hostNetwork" => "false".to_owned(),
        Value::Null if path == "status.successful" => "0".to_owned(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Returns the path in the object of the selector field `path`.
fn field_path(path: &str) -> &str {
    match path {
        "status.successful" => "status.succeeded",
        "source" => "source.component",
        "spec.host" => "spec.nodeName",
        other => other,
    }
}

fn selectable(info: &ResourceInfo, path: &str) -> bool {
    match path {
        "metadata.name" => true,
        // Cluster-scoped kinds with field selectors of their own do not support the namespace.
        "metadata.namespace" => {
            info.scope == Scope::Namespaced || (info.builtin && info.selectable_fields.is_empty())
        }
        other => info.selectable_fields.iter().any(|field| field == other),
    }
}

fn unknown_field(info: &ResourceInfo, path: &str) -> Refusal {
    if !info.builtin {
        return Refusal::bad_request(format!("field label not supported: {path}"));
    }
    if info.selectable_fields.is_empty() {
        return Refusal::bad_request(format!(
            "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ));
    }
    Refusal::bad_request(if has(info, Habit::NamedByFieldLabels) {
        format!("field label \"{path}\" not supported for {}", info.kind)
    } else if has(info, Habit::PlacedByFieldLabels) {
        format!("field label not supported for {}, Kind={}: {path}", info.api_version(), info.kind)
    } else {
        format!("field label not supported: {path}")
    })
}
