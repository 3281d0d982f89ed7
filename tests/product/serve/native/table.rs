//! What a policy can do that no binding lets deny, case by case: asked of the embedded server's own engine and of the two
//! routes of the webhook. A binding softens what validations find; what keeps a policy from being asked denies all the same.

use rustls::version::TLS13;
use serde_json::{Value, json};

use super::super::server::{Place, review};
use super::{Asked, post, send};
use crate::running::Workplace;
use crate::support::https::{Client, tls};

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Name, `spec` of the policy and `spec` of the binding, beside what all have.
type Case = (&'static str, Value, Value);

fn cases() -> Vec<Case> {
    with_params().into_iter().chain(with_expressions()).chain(with_namespaces()).collect()
}

fn with_params() -> Vec<Case> {
    let config_map = || json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let namespace = || json!({"apiVersion": "v1", "kind": "Namespace"});
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Limit"});
    let named = |name: &str, action: &str| json!({"name": name, "parameterNotFoundAction": action});
    let within = |namespace: &str, mut reference: Value| {
        reference["namespace"] = json!(namespace);
        reference
    };
    let selected = json!({"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"});
    let cases = [
        ("param-missing", config_map(), named("x", "Deny")),
        ("param-missing-allow", config_map(), named("x", "Allow")),
        ("param-there", config_map(), named("there", "Deny")),
        ("param-selected-none", config_map(), selected),
        ("param-of-no-namespace", config_map(), within("none", named("x", "Deny"))),
        ("param-kind-unknown", unknown, named("x", "Allow")),
        ("param-of-cluster-in-namespace", namespace(), within("default", named("default", "Allow"))),
        ("param-of-cluster", namespace(), named("default", "Deny")),
    ];
    let case = |(name, kind, reference)| {
        let spec = json!({"paramKind": kind, "validations": [{"expression": "true"}]});
        (name, spec, json!({"paramRef": reference}))
    };
    cases.into_iter().map(case).collect()
}

fn with_expressions() -> Vec<Case> {
    let spec = |expression: &str| json!({"validations": [{"expression": expression}]});
    let condition = |expression: &str| {
        json!({
            "matchConditions": [{"name": "a", "expression": expression}], "validations": [{"expression": "true"}]})
    };
    let annotation = |expression: &str| {
        json!({
            "auditAnnotations": [{"key": "a", "valueExpression": expression}], "validations": [{"expression": "true"}]})
    };
    let variable = json!({
        "variables": [{"name": "v", "expression": "object.data.none"}],
        "validations": [{"expression": "variables.v == 'x'"}]});
    let message =
        json!({"validations": [{"expression": "false", "messageExpression": "string(object.data.none)"}]});
    let cases = [
        ("holds", spec("true")),
        ("fails", spec("false")),
        ("errs", spec("object.data.none == 'x'")),
        ("condition-false", condition("false")),
        ("condition-errs", condition("object.data.none == 'x'")),
        ("variable-errs", variable),
        ("message-errs", message),
        ("annotation", annotation("'x'")),
        ("annotation-errs", annotation("string(object.data.none)")),
    ];
    cases.into_iter().map(|(name, spec)| (name, spec, json!({}))).collect()
}

fn with_namespaces() -> Vec<Case> {
    let spec = |expression: &str| json!({"validations": [{"expression": expression}]});
    let selecting = |labels: Value| json!({"matchResources": {"namespaceSelector": {"matchLabels": labels}}});
    let own = json!({"kubernetes.io/metadata.name": "default"});
    vec![
        ("namespace", spec("namespaceObject.metadata.name == 'default'"), json!({})),
        ("namespace-errs", spec("namespaceObject.metadata.labels['none'] == 'x'"), json!({})),
        ("binding-selects", spec("false"), selecting(own)),
        ("binding-selects-other", spec("false"), selecting(json!({"a": "b"}))),
    ]
}

const ACTIONS: [&[&str]; 4] = [&["Deny"], &["Warn"], &["Audit"], &["Warn", "Audit"]];

/// Every case with every action under both failure policies: its name, the policy and the binding. Each is about ConfigMaps
/// with its name as a label.
fn documents() -> Vec<(String, [Value; 2])> {
    let mut all = Vec::new();
    for (case, spec, bound) in cases() {
        for failure_policy in ["Fail", "Ignore"] {
            for actions in ACTIONS {
                let name = format!("{case}-{failure_policy}-{}", actions.join("-")).to_lowercase();
                all.push((name.clone(), document(&name, &spec, &bound, (failure_policy, actions))));
            }
        }
    }
    all
}

fn document(
    name: &str,
    spec: &Value,
    bound: &Value,
    (failure_policy, actions): (&str, &[&str]),
) -> [Value; 2] {
    let of = |kind: &str, spec: &Value, more: Value| {
        let mut spec = spec.clone();
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
    };
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let constraints = json!({"resourceRules": [rule], "objectSelector": {"matchLabels": {"case": name}}});
    let policy = of(
        "ValidatingAdmissionPolicy",
        spec,
        json!({"failurePolicy": failure_policy, "matchConstraints": constraints}),
    );
    let more = json!({"policyName": name, "validationActions": actions});
    [policy, of("ValidatingAdmissionPolicyBinding", bound, more)]
}

/// The review of the creation of the ConfigMap `c` of a case.
fn asked(case: &str, object: &Value) -> String {
    let mut review: Value = serde_json::from_str(&review(case, &json!({}))).unwrap();
    review["request"]["namespace"] = json!("default");
    review["request"]["object"] = object.clone();
    review.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_routes_deny_what_the_server_denies() {
    let cluster = Workplace::new();
    let _running = cluster.start();
    let native = cluster.client().await;
    let config_map = |name: &str, labels: Value| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels},
            "data": {"v": "x"}})
    };
    post(&native, CONFIG_MAPS, &config_map("there", json!({}))).await;
    let place = Place::new();
    let documents = documents();
    for (name, [policy, binding]) in &documents {
        post(&native, &format!("{REGISTRATION}/validatingadmissionpolicybindings"), binding).await;
        post(&native, &format!("{REGISTRATION}/validatingadmissionpolicies"), policy).await;
        place.write(&format!("policies/{name}.yaml"), &format!("{policy}\n---\n{binding}\n"));
    }
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let serving = place.start(&["--policies", "policies", "--kubeconfig", &kubeconfig, "--timeout", "60"]);
    let trusted = tls(place.authority.certificate_pem(), None, &[&TLS13]);
    let mut webhook = Client::connect(serving.webhook, &trusted).await.unwrap();
    let (mut denied, mut softly, mut wrong) = (0, 0, Vec::new());
    for (name, _) in &documents {
        let object = config_map("c", json!({"case": name}));
        let path = format!("{CONFIG_MAPS}?dryRun=All");
        let told = send(&native, &Asked { method: "POST", path: &path, headers: &[], body: &object }).await;
        let mut routes = Vec::new();
        for route in ["/validate", "/enforce", "/audit"] {
            let answered = webhook.post(route, asked(name, &object)).await.unwrap().json();
            routes.push(answered["response"].clone());
        }
        let [whole, enforced, audited] = &routes[..] else { panic!("three routes") };
        let refused = |answer: &Value| match answer["allowed"] == true {
            true => Value::Null,
            false => json!([answer["status"]["code"], answer["status"]["message"]]),
        };
        let natively = match told.status {
            201 => Value::Null,
            _ => json!([told.body["code"], told.body["message"]]),
        };
        let warned = |answers: &[&Value]| -> Vec<String> {
            let texts = answers.iter().filter_map(|answer| answer["warnings"].as_array()).flatten();
            texts.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        denied += usize::from(told.status != 201);
        softly += usize::from(told.status != 201 && !name.ends_with("-deny"));
        let same = natively == refused(whole)
            && natively == refused(enforced)
            && audited["allowed"] == true
            && told.warnings == warned(&[whole])
            && told.warnings == warned(&[enforced, audited]);
        if !same {
            wrong.push(format!(
                "{name}: {natively} {:?}\n  {whole}\n  {enforced}\n  {audited}",
                told.warnings
            ));
        }
    }
    eprintln!(
        "native and webhook: {} requests, {denied} denied, {softly} of them without a binding that denies, {} differ",
        documents.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Missing params (3 cases), an unknown kind, a cluster-scoped one in a namespace and an annotation, each with 3 lists.
    assert_eq!(softly, 18);
    assert!(serving.terminate().success());
}
