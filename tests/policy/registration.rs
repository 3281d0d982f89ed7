//! Registration of definitions, by the cases of `data/registration.yaml`.

use admit_apimachinery::yaml;
use admit_policy::crd::CompiledCrd;
use serde_json::{Value, json};

#[test]
fn definitions_are_refused_in_the_servers_words() {
    let trees = yaml::parse(include_str!("data/registration.yaml")).unwrap();
    let mut wrong = Vec::new();
    for case in trees[0].value["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut spec = definition(&case["spec"]);
        if let Some(metadata) = case.get("metadata") {
            spec["metadata"] = metadata.clone();
        }
        let result = match case.get("stored") {
            Some(stored) => CompiledCrd::compile_update(&spec, &established(stored)),
            None => CompiledCrd::compile(&spec),
        };
        let errors: Vec<Value> = match &result {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(|error| json!(error.to_string())).collect(),
        };
        if json!(errors) != case["errors"] {
            wrong.push(format!("{name}: {:#}", json!(errors)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    })
}

fn established(spec: &Value) -> Value {
    let mut stored = definition(spec);
    stored["status"] =
        json!({"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]});
    stored
}
