//! A policy that refuses a controller some of its writes.

use serde_json::{Value, json};

/// The name of both documents.
const NAME: &str = "refusing";

/// A policy and its binding, which let `operation` on `resource` of `group` through where `expression` holds.
pub(crate) fn refusing(group: &str, resource: &str, operation: &str, expression: &str) -> [Value; 2] {
    let of = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}, "spec": spec});
    let rule = json!({"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource]});
    let validations = json!([{"expression": expression}]);
    [
        of(
            "ValidatingAdmissionPolicy",
            json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations}),
        ),
        of("ValidatingAdmissionPolicyBinding", json!({"policyName": NAME, "validationActions": ["Deny"]})),
    ]
}
