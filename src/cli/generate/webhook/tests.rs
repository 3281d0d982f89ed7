//! Tests of the webhook configuration: which policies are called separately, and which requests are never sent.

use admit_policy::PolicySet;
use serde_json::{Value, json};

use super::*;

const ALL_GROUPS: &str =
    r#"{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}"#;
const PODS: &str =
    r#"{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}"#;

/// Configures one policy with these rules, and a binding for each list of actions.
fn configured(rules: &[Value], bindings: &[&[&str]]) -> Value {
    configured_with(rules, bindings, &json!({}))
}

/// Does the same, with `more` fields in the policy's spec.
fn configured_with(rules: &[Value], bindings: &[&[&str]], more: &Value) -> Value {
    let mut builder = PolicySet::builder();
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}],
        },
    });
    for (key, value) in more.as_object().unwrap() {
        policy["spec"][key] = value.clone();
    }
    builder.add(&policy).unwrap();
    for (number, actions) in bindings.iter().enumerate() {
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": format!("b{number}")},
            "spec": {"policyName": "p", "validationActions": actions},
        });
        builder.add(&binding).unwrap();
    }
    configuration(&builder.finish(), &callee(true))
}

fn callee(definitions: bool) -> Callee<'static> {
    let endpoint = Endpoint::Service { name: "admit".to_owned(), namespace: "admit-system".to_owned() };
    Callee { endpoint, own_namespace: Some("admit-system"), failure_policy: "Fail", definitions }
}

fn rule(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn of(group: &str, resources: &[&str]) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources})
}

/// Returns the names of the conditions, and the resources of the rules, of the only webhook.
fn reached(rules: &[Value]) -> (Vec<String>, Vec<String>) {
    let configuration = configured(rules, &[&["Deny"]]);
    let names = |value: &Value, key: &str| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
    };
    let webhook = &configuration["webhooks"][0];
    let resources = webhook["rules"].as_array().into_iter().flatten().flat_map(|rule| {
        rule["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned())
    });
    (names(&webhook["matchConditions"], "name"), resources.collect())
}

#[test]
fn enforcing_and_auditing_policies_are_called_apart() {
    type Webhook = (&'static str, &'static str, &'static str);
    let cases: &[(&[&[&str]], &[Webhook])] = &[
        (&[], &[]),
        (&[&["Deny"]], &[(ENFORCING, "/enforce", "Fail")]),
        (&[&["Deny", "Audit"]], &[(ENFORCING, "/enforce", "Fail")]),
        (&[&["Warn"], &["Deny"]], &[(ENFORCING, "/enforce", "Fail")]),
        (&[&["Warn"]], &[(AUDITING, "/audit", "Ignore")]),
        (&[&["Audit"]], &[(AUDITING, "/audit", "Ignore")]),
        (&[&["Warn", "Audit"], &["Audit"]], &[(AUDITING, "/audit", "Ignore")]),
    ];
    for (bindings, expected) in cases {
        let configuration = configured(&[rule(PODS)], bindings);
        let webhooks: Vec<(&str, &str, &str)> = configuration["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|webhook| {
                let text = |pointer: &str| webhook.pointer(pointer).unwrap().as_str().unwrap();
                (text("/name"), text("/clientConfig/service/path"), text("/failurePolicy"))
            })
            .collect();
        assert_eq!(webhooks, *expected, "{bindings:?}");
    }
}

/// A binding that only warns does not change what prevents its policy from being evaluated.
#[test]
fn policies_that_may_not_apply_are_called_with_those_that_deny() {
    let params = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let namespace = json!({"validations": [{"expression": "namespaceObject.metadata.name == 'n'"}]});
    let annotation = json!({"auditAnnotations": [{"key": "a", "valueExpression": "'x'"}]});
    let selector = json!({"matchConstraints": {
        "resourceRules": [rule(PODS)], "namespaceSelector": {"matchLabels": {"a": "b"}}}});
    let condition = json!({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'x'"}]});
    let route = |more: &Value| {
        let configuration = configured_with(&[rule(PODS)], &[&["Warn"]], more);
        assert_eq!(configuration["webhooks"].as_array().unwrap().len(), 1);
        configuration["webhooks"][0]["name"].as_str().unwrap().to_owned()
    };
    for more in [params, namespace, annotation, selector] {
        assert_eq!(route(&more), ENFORCING, "{more}");
        let mut ignoring = more;
        ignoring["failurePolicy"] = json!("Ignore");
        assert_eq!(route(&ignoring), AUDITING, "{ignoring}");
    }
    // Errors in conditions and validations are handled by the binding.
    assert_eq!(route(&condition), AUDITING);
}

#[test]
fn what_a_cluster_needs_to_heal_is_left_out() {
    const EVERYTHING: &[&str] =
        &["not-leases", "not-authentication", "not-authorization", "not-admission-configuration"];
    let cases: &[(Value, &[&str], &[&str])] = &[
        // Excluded resources are removed from rules; rules without other resources are dropped.
        (of("coordination.k8s.io", &["leases"]), &[], &[]),
        (of("coordination.k8s.io", &["leasecandidates"]), &[], &[]),
        (of("authentication.k8s.io", &["tokenreviews"]), &[], &[]),
        (of("authentication.k8s.io", &["selfsubjectreviews"]), &[], &[]),
        (of("authentication.k8s.io", &["*"]), &[], &[]),
        (of("authorization.k8s.io", &["subjectaccessreviews"]), &[], &[]),
        (of("authorization.k8s.io", &["localsubjectaccessreviews"]), &[], &[]),
        (of("authorization.k8s.io", &["selfsubjectrulesreviews"]), &[], &[]),
        (of("admissionregistration.k8s.io", &["validatingwebhookconfigurations"]), &[], &[]),
        (of("admissionregistration.k8s.io", &["validatingadmissionpolicies/status"]), &[], &[]),
        (of("admissionregistration.k8s.io", &["*/*"]), &[], &[]),
        (of("coordination.k8s.io", &["leases", "others"]), &[], &["others"]),
        // Wildcards that match excluded resources get conditions.
        (of("coordination.k8s.io", &["*"]), &["not-leases"], &["*"]),
        (of("coordination.k8s.io", &["*/*"]), &["not-leases"], &["*/*"]),
        (of("*", &["leases"]), EVERYTHING, &["leases"]),
        (of("*", &["*"]), EVERYTHING, &["*"]),
        (of("*", &["*/*"]), EVERYTHING, &["*/*"]),
        (rule(ALL_GROUPS), EVERYTHING, &["*"]),
        // Rules that cannot match them get no conditions.
        (of("", &["pods"]), &[], &["pods"]),
        (of("", &["*"]), &[], &["*"]),
        (of("apps", &["*/*"]), &[], &["*/*"]),
        (of("", &["pods", "pods/status"]), &[], &["pods", "pods/status"]),
        (of("example.dev", &["leases"]), &[], &["leases"]),
    ];
    for (rule, conditions, resources) in cases {
        let (found_conditions, found_resources) = reached(std::slice::from_ref(rule));
        assert_eq!(
            (&found_conditions[..], &found_resources[..]),
            (&own(conditions)[..], &own(resources)[..]),
            "{rule}"
        );
    }
}

fn own(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn our_own_namespace_is_not_sent() {
    let configuration = configured(&[rule(PODS)], &[&["Deny"], &["Warn"]]);
    let expected = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["admit-system"]},
    ]});
    assert_eq!(configuration["webhooks"][0]["namespaceSelector"], expected);
    assert_eq!(configuration["webhooks"][0]["sideEffects"], "None");
}

#[test]
fn rules_that_differ_in_resources_alone_are_one() {
    let services = of("", &["services", "pods"]);
    let configuration = configured(&[rule(PODS), services, of("apps", &["deployments"])], &[&["Deny"]]);
    let rules = configuration["webhooks"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0]["resources"], json!(["pods", "services"]));
}

#[test]
fn conditions_are_expressions_that_a_server_takes() {
    let configuration = configured(&[rule(ALL_GROUPS)], &[&["Deny"]]);
    let conditions = configuration["webhooks"][0]["matchConditions"].as_array().unwrap();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "conditions"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule(PODS)]}, "matchConditions": conditions,
            "validations": [{"expression": "true"}],
        },
    });
    PolicySet::builder().add(&policy).unwrap();
    assert_eq!(
        conditions[0]["expression"],
        "request.resource.group != 'coordination.k8s.io' || \
         !(request.resource.resource in ['leases', 'leasecandidates'])"
    );
}

#[test]
fn custom_resources_are_sent_where_their_definitions_are_enforced() {
    let mut builder = PolicySet::builder();
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema},
                {"name": "v1alpha1", "served": false, "storage": false, "schema": schema},
            ],
        },
    });
    builder.add(&definition).unwrap();
    let policies = builder.finish();
    assert_eq!(configuration(&policies, &callee(false))["webhooks"], json!([]));
    let configuration = configuration(&policies, &callee(true));
    assert_eq!(configuration["webhooks"][0]["name"], ENFORCING);
    let expected = json!([{
        "apiGroups": ["example.dev"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["widgets", "widgets/status"], "scope": "*",
    }]);
    assert_eq!(configuration["webhooks"][0]["rules"], expected);
}

/// Mutating policies have a configuration of their own, if any of them has a binding.
#[test]
fn policies_that_change_objects_have_a_configuration_of_their_own() {
    const PATCH: &str = r#"[JSONPatch{op: "remove", path: "/spec/hostname"}]"#;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "m"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule(PODS)]}, "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "m"}, "spec": {"policyName": "m"},
    });
    let configured = |documents: &[&Value]| {
        let mut builder = PolicySet::builder();
        for document in documents {
            builder.add(document).unwrap();
        }
        let set = builder.finish();
        (configuration(&set, &callee(true)), mutating_configuration(&set, &callee(true)))
    };
    assert_eq!(configured(&[]).1, None);
    assert_eq!(configured(&[&policy]).1, None, "a policy without a binding has no effect");
    let (validating, mutating) = configured(&[&policy, &binding]);
    assert_eq!(validating["webhooks"], json!([]), "it judges nothing");
    let webhook = &mutating.unwrap()["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["service"]["path"], "/mutate");
    assert_eq!(webhook["rules"].as_array().unwrap().len(), 1);
    assert_eq!(webhook["rules"][0]["resources"], json!(["pods"]));
    assert_eq!((&webhook["failurePolicy"], &webhook["sideEffects"]), (&json!("Fail"), &json!("None")));
    assert!(webhook["namespaceSelector"].to_string().contains("admit-system"), "{webhook}");
}
