//! Documents from YAML text, and the set they make.

use admit_policy::{PolicySet, Request, manifest};
use serde_json::{Value, json};

/// The documents of a text that is right.
pub(crate) fn yaml(text: &str) -> Vec<Value> {
    let documents = manifest::read("test.yaml", text).expect("the text is YAML");
    documents.into_iter().map(|document| document.value).collect()
}

/// The set of the documents of a text that is right.
pub(crate) fn set(text: &str) -> PolicySet {
    let documents = manifest::read("test.yaml", text).expect("the text is YAML");
    PolicySet::load(&documents).expect("the documents compile")
}

/// The definition of the namespaced Widgets of `example.com`; `spec` is the rest of its spec, indented by two.
pub(crate) fn widgets(spec: &str) -> String {
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}
{spec}"
    )
}

/// The same definition with one version, whose objects have `properties`.
pub(crate) fn widgets_of(properties: &str) -> String {
    testing::definition_text("widgets.example.com", "Widget", "Namespaced", properties)
}

/// The policy `p`, whose spec is `spec`, indented by two, and the binding `b` that makes it deny.
pub(crate) fn denying(spec: &str) -> String {
    format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: p}}
spec:
{spec}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: b}}
spec: {{policyName: p, validationActions: [Deny]}}
"
    )
}

/// A request to create the ConfigMap `name` in the namespace `team`, by `alice`, with `changes` merged over it.
pub(crate) fn request(name: &str, changes: &Value) -> Request<'static> {
    let mut request = json!({
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": name,
        "namespace": "team",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["staff"]},
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "team"}},
    });
    let (Value::Object(fields), Value::Object(changes)) = (&mut request, changes) else {
        panic!("changes are a map");
    };
    fields.extend(changes.clone());
    Request::from_value(&request).expect("the request is right")
}
