//! Builds definitions of custom kinds for tests.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Returns the definition of a kind with one version, `v1`, whose objects have this schema. `name` is `PLURAL.GROUP`,
/// `scope` is `Namespaced` or `Cluster`.
///
/// ```
/// let schema = serde_json::json!({"type": "object"});
/// let things = testing::definition("things.example.com", "Thing", "Cluster", &schema);
/// assert_eq!((&things["spec"]["group"], &things["spec"]["names"]["plural"]), (&"example.com".into(), &"things".into()));
/// assert_eq!(things["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
/// ```
#[must_use]
pub fn definition(name: &str, kind: &str, scope: &str, schema: &Value) -> Value {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let (singular, list_kind) = (kind.to_lowercase(), format!("{kind}List"));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": group, "scope": scope,
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": list_kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Returns a definition as [`definition`] builds it as YAML; the properties of its schema are lines of YAML, indented here.
///
/// ```
/// let text = testing::definition_text("things.example.com", "Thing", "Cluster", "spec: {type: object}");
/// assert!(text.ends_with("\n          spec: {type: object}\n"));
/// ```
#[must_use]
pub fn definition_text(name: &str, kind: &str, scope: &str, properties: &str) -> String {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let singular = kind.to_lowercase();
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {name}}}
spec:
  group: {group}
  scope: {scope}
  names: {{plural: {plural}, singular: {singular}, listKind: {kind}List, kind: {kind}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
"
    );
    for line in properties.lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "          {line}");
    }
    text
}

/// Returns the definition `shops.example.com`, as [`definition_text`] writes it.
///
/// ```
/// let text = testing::shops("spec: {type: object}");
/// assert!(text.contains("kind: Shop}\n") && text.ends_with("\n          spec: {type: object}\n"));
/// ```
#[must_use]
pub fn shops(properties: &str) -> String {
    definition_text("shops.example.com", "Shop", "Namespaced", properties)
}
