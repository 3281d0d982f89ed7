//! Registration of webhook configurations, by the cases of `data/webhooks.yaml`.

use admit_apimachinery::yaml;
use admit_policy::webhook::{Called, Client, Configuration, Kind, Service, Webhooks};
use admit_policy::{Documents, EvalOptions, FailurePolicy, Keep, Origin, Recording, Request};
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

/// A request for a Pod, or for another kind.
fn request(group: &str, kind: &str, resource: &str) -> Request<'static> {
    let request = json!({
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "operation": "CREATE",
        "object": {"apiVersion": "v1", "kind": kind, "metadata": {"name": "web"}},
    });
    Request::from_value(&request).expect("a request")
}

fn hook(name: &str, conditions: &[&str], failure_policy: Option<&str>) -> Value {
    let conditions = conditions.iter().enumerate();
    let named = |(index, text): (usize, &&str)| json!({"name": format!("c{index}"), "expression": text});
    json!({
        "name": name, "clientConfig": {"url": "https://hook.example/ask"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": failure_policy,
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}],
        "matchConditions": conditions.map(named).collect::<Vec<_>>(),
    })
}

#[test]
fn webhooks_are_called_as_by_the_reference() {
    let trees = yaml::parse(include_str!("data/match_conditions.yaml")).unwrap();
    let cases = trees[0].value["cases"].as_array().unwrap();
    let run: Vec<&Value> = cases.iter().filter(|case| case.get("exception").is_none()).collect();
    assert_eq!((cases.len(), run.len()), (15, 12));
    for case in run {
        let texts: Vec<&str> = case["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| match word.as_str() {
                Some("t") => "object.metadata.name == 'web'",
                Some("f") => "object.metadata.name == 'x'",
                _ => "object.metadata.none == 'x'",
            })
            .collect();
        let webhooks =
            Webhooks::compile([&document(&json!([hook("a.hook.example", &texts, case["policy"].as_str())]))]);
        let recording = Recording::new(Keep::COVERAGE);
        let turns = webhooks.unwrap().ask(
            &request("", "Pod", "pods"),
            &Documents::default(),
            Some(&recording).into(),
        );
        let called = &turns[0].called;
        assert_eq!(Some(called.as_str()), case["expect"].as_str(), "{case}: {called:?}");
        if let Called::Skipped { path } = called {
            assert_eq!(*path, format!("webhooks[0].matchConditions[{}].expression", case["at"]), "{case}");
        }
        let words = "expression 'object.metadata.none == 'x'' resulted in error: no such key: none";
        assert!(called.error().is_none_or(|error| error == words), "{case}: {called:?}");
        let origin = Origin::Configuration {
            kind: "ValidatingWebhookConfiguration".to_owned(),
            name: "hooks".to_owned(),
        };
        assert!(recording.finish().keys().all(|id| id.origin == origin), "{case}");
    }
}

#[test]
fn webhooks_are_asked_in_the_order_of_a_server() {
    let of = |kind: &str, name: &str, webhooks: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": webhooks});
    let documents = [
        of(
            "ValidatingWebhookConfiguration",
            "b",
            json!([hook("b.b.example", &[], None), hook("a.b.example", &[], None)]),
        ),
        of("ValidatingWebhookConfiguration", "a", json!([hook("z.a.example", &[], None)])),
        of("MutatingWebhookConfiguration", "z", json!([hook("m.z.example", &[], None)])),
        of("Pod", "z", json!([])),
    ];
    let webhooks = Webhooks::compile(&documents).unwrap();
    let ask = |request: &Request<'_>| {
        let turns = webhooks.ask(request, &Documents::default(), EvalOptions::default());
        turns.into_iter().map(|turn| (turn.webhook, turn.called)).collect::<Vec<_>>()
    };
    let turns = ask(&request("", "Pod", "pods"));
    let names: Vec<&str> = turns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["m.z.example", "z.a.example", "b.b.example", "a.b.example"]);
    assert!(turns.iter().all(|(_, called)| *called == Called::Called));
    // Who repairs a webhook is not asked about by it.
    let repair = ask(&request(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ));
    assert!(repair.iter().all(|(_, called)| *called == Called::Unmatched));
    let mut namespaced = request("", "Pod", "pods");
    namespaced.namespace = "none".to_owned();
    let mut selecting = hook("a.hook.example", &[], None);
    selecting["namespaceSelector"] = json!({"matchLabels": {"a": "b"}});
    let webhooks = Webhooks::compile([&document(&json!([selecting]))]).unwrap();
    let turn = webhooks.ask(&namespaced, &Documents::default(), EvalOptions::default()).remove(0);
    assert_eq!(turn.called, Called::Refused("namespaces \"none\" not found".to_owned()));
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
