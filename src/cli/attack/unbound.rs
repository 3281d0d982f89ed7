//! Creates bindings for policies that no binding names, such as those of libraries, whose users write the bindings.

use std::collections::HashSet;

use admit_policy::manifest::Document;
use serde_json::{Value, json};

/// Creates, for each such policy, a binding that denies everywhere, with all params if the policy takes some.
pub(super) fn bindings(documents: &[Document]) -> Vec<Document> {
    let of_kind = |kind: &'static str| {
        documents.iter().filter(move |document| document.value.get("kind").is_some_and(|own| own == kind))
    };
    let bound: HashSet<&str> = of_kind("ValidatingAdmissionPolicyBinding")
        .filter_map(|binding| binding.value.pointer("/spec/policyName")?.as_str())
        .collect();
    let unbound = of_kind("ValidatingAdmissionPolicy").filter_map(|policy| {
        let name = policy.value.pointer("/metadata/name")?.as_str()?;
        let takes_params = policy.value.pointer("/spec/paramKind").is_some();
        (!bound.contains(name)).then(|| Document::unwritten("--bind".into(), binding(name, takes_params)))
    });
    unbound.collect()
}

fn binding(policy: &str, takes_params: bool) -> Value {
    let mut spec = json!({"policyName": policy, "validationActions": ["Deny"]});
    if let (Some(spec), true) = (spec.as_object_mut(), takes_params) {
        let all = json!({"selector": {}, "parameterNotFoundAction": "Deny"});
        spec.insert("paramRef".to_owned(), all);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": spec,
    })
}
