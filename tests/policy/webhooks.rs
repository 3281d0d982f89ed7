//! Registration of webhook configurations, by the cases of `data/webhooks.yaml`.

use admit_apimachinery::yaml;
use admit_policy::FailurePolicy;
use admit_policy::webhook::{Client, Configuration, Kind, Service};
use serde_json::{Value, json};

#[test]
fn configurations_are_refused_in_the_servers_words() {
    let trees = yaml::parse(include_str!("data/webhooks.yaml")).unwrap();
    let mut wrong = Vec::new();
    for case in trees[0].value["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let errors: Vec<String> = match compile(case) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        };
        if json!(errors) != case["errors"] {
            wrong.push(format!("{name}: {:#}", json!(errors)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_written_is_read() {
    let trees = yaml::parse(include_str!("data/webhooks.yaml")).unwrap();
    let cases = trees[0].value["cases"].as_array().unwrap();
    let webhooks = |name: &str| {
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        compile(case).unwrap().webhooks
    };
    let plain = &webhooks("nothing more than needed")[0];
    assert_eq!(plain.client, Client::Url("https://hook.example/ask".to_owned()));
    assert_eq!((plain.timeout_seconds, plain.failure_policy), (10, FailurePolicy::Fail));
    assert!(!plain.has_side_effects && !plain.reinvoked && plain.matching.rules.is_empty());
    let full = &webhooks("everything")[0];
    let service =
        Service { name: "hook".into(), namespace: "demo".into(), path: "/v1/ask/".into(), port: 8443 };
    assert_eq!(full.client, Client::Service(service));
    assert_eq!((full.timeout_seconds, full.failure_policy), (30, FailurePolicy::Ignore));
    assert!(!full.has_side_effects && full.reinvoked && full.matching.rules.len() == 1);
    assert_eq!(full.review_versions, ["v2", "v1beta1"]);
    assert!(webhooks("what the stored one has may stay")[0].has_side_effects);
}

fn compile(case: &Value) -> Result<Configuration, Vec<admit_apimachinery::field_error::FieldError>> {
    let kind = if case["mutating"] == true { Kind::Mutating } else { Kind::Validating };
    match case.get("stored") {
        Some(stored) => Configuration::compile_update(kind, &document(&case["webhooks"]), &document(stored)),
        None => Configuration::compile(kind, &document(&case["webhooks"])),
    }
}

fn document(webhooks: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": webhooks,
    })
}
