//! Which requests a policy speaks about.

use admit_policy::Documents;
use serde_json::{Value, json};

use crate::support::{denying, request, set, widgets};

/// Whether a policy with these constraints, in YAML's flow style, matches a request changed so.
fn matches(constraints: &str, changes: &Value) -> bool {
    let set = set(&denying(&format!(
        "  matchConstraints: {constraints}\n  validations: [{{expression: 'false'}}]"
    )));
    let mut host = Documents::default();
    host.ensure_namespace("team");
    let decision = set.decide(&request("x", changes), &host);
    !decision.allowed()
}

fn rule(operations: &str, resources: &str, more: &str) -> String {
    format!(
        "{{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: {operations}, resources: {resources} \
         {more}}}]}}"
    )
}

#[test]
fn rules() {
    let pods = |subresource: &str| {
        json!({
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": subresource,
        })
    };
    let plain = json!({});
    let cluster = json!({"namespace": ""});
    let cases = [
        ("[CREATE]", "[configmaps]", "", &plain, true),
        ("[UPDATE]", "[configmaps]", "", &plain, false),
        ("['*']", "[configmaps]", "", &plain, true),
        ("[CREATE]", "[secrets]", "", &plain, false),
        ("[CREATE]", "['*']", "", &plain, true),
        ("[CREATE]", "['*']", "", &pods("status"), false),
        ("[CREATE]", "['*/*']", "", &pods("status"), true),
        ("[CREATE]", "['*/status']", "", &pods("status"), true),
        ("[CREATE]", "['pods/*']", "", &pods("exec"), true),
        ("[CREATE]", "['pods/*']", "", &pods(""), true),
        ("[CREATE]", "[pods]", "", &pods("exec"), false),
        ("[CREATE]", "[configmaps]", ", resourceNames: [x]", &plain, true),
        ("[CREATE]", "[configmaps]", ", resourceNames: [other]", &plain, false),
        ("[CREATE]", "[configmaps]", ", scope: Namespaced", &plain, true),
        ("[CREATE]", "[configmaps]", ", scope: Cluster", &plain, false),
        ("[CREATE]", "[configmaps]", ", scope: Cluster", &cluster, true),
    ];
    for (operations, resources, more, changes, expected) in cases {
        let constraints = rule(operations, resources, more);
        assert_eq!(matches(&constraints, changes), expected, "{constraints} on {changes}");
    }
}

#[test]
fn a_namespace_is_cluster_scoped_though_it_names_itself() {
    let namespace = json!({
        "kind": {"group": "", "version": "v1", "kind": "Namespace"},
        "resource": {"group": "", "version": "v1", "resource": "namespaces"},
    });
    assert!(matches(&rule("[CREATE]", "[namespaces]", ", scope: Cluster"), &namespace));
    assert!(!matches(&rule("[CREATE]", "[namespaces]", ", scope: Namespaced"), &namespace));
}

#[test]
fn selectors() {
    let all = "resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]";
    let labelled = |labels: Value| json!({"object": {"metadata": {"labels": labels}}});
    let moved = json!({
        "operation": "UPDATE",
        "object": {"metadata": {}},
        "oldObject": {"metadata": {"labels": {"app": "a"}}},
    });
    let in_a = "objectSelector: {matchLabels: {app: a}}";
    let not_in_a = "objectSelector: {matchExpressions: [{key: app, operator: NotIn, values: [a]}]}";
    let cases = [
        (in_a, labelled(json!({"app": "a"})), true),
        (in_a, labelled(json!({"app": "b"})), false),
        (in_a, moved, true),
        (not_in_a, labelled(json!({})), true),
        (not_in_a, labelled(json!({"app": "a"})), false),
        (not_in_a, json!({"operation": "CONNECT", "object": {"kind": "PodExecOptions"}}), false),
        (not_in_a, json!({"operation": "DELETE", "object": null}), false),
        ("objectSelector: {matchExpressions: [{key: app, operator: Exists}]}", labelled(json!({})), false),
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}", json!({}), true),
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}", json!({}), false),
    ];
    for (selector, changes, expected) in cases {
        assert_eq!(matches(&format!("{{{all}, {selector}}}"), &changes), expected, "{selector} on {changes}");
    }
}

#[test]
fn a_selector_that_cannot_be_asked_is_a_failure_of_the_policy() {
    let all =
        "resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: [configmaps]}]";
    let constraints = format!("{{{all}, namespaceSelector: {{matchLabels: {{team: a}}}}}}");
    // The namespace is unknown: failurePolicy Fail denies, and a request the rules exclude is still let pass.
    assert!(matches(&constraints, &json!({"namespace": "gone"})));
    let secrets =
        json!({"namespace": "gone", "resource": {"group": "", "version": "v1", "resource": "secrets"}});
    assert!(!matches(&constraints, &secrets));
}

/// Two versions of Widgets, the second with a status of its own.
const VERSIONS: &str = "  versions:
  - &v {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {<<: *v, name: v2, storage: false, subresources: {status: {}}}
";

#[test]
fn a_rule_speaks_of_what_is_the_same_in_another_version() {
    let widget = |version: &str, subresource: &str| {
        json!({
            "kind": {"group": "example.com", "version": version, "kind": "Widget"},
            "resource": {"group": "example.com", "version": version, "resource": "widgets"},
            "subResource": subresource, "operation": "UPDATE",
            "object": {"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {}},
        })
    };
    let event = |group: &str| {
        json!({
            "kind": {"group": group, "version": "v1", "kind": "Event"},
            "resource": {"group": group, "version": "v1", "resource": "events"},
        })
    };
    let all = "[widgets, widgets/status]";
    let cases = [
        ("example.com", "[v1]", all, "Equivalent", widget("v2", ""), true),
        ("example.com", "[v1]", all, "Exact", widget("v2", ""), false),
        ("example.com", "[v2]", all, "Equivalent", widget("v1", ""), true),
        ("example.com", "[v1]", "[widgets]", "Equivalent", widget("v2", "status"), false),
        ("example.com", "[v1]", all, "Equivalent", widget("v2", "status"), false),
        ("example.com", "[v2]", all, "Equivalent", widget("v2", "status"), true),
        ("example.com", "[v3]", all, "Equivalent", widget("v2", ""), false),
        ("''", "[v1]", "[events]", "Equivalent", event("events.k8s.io"), true),
        ("''", "[v1]", "[events]", "Exact", event("events.k8s.io"), false),
        ("events.k8s.io", "['*']", "['*']", "Equivalent", event(""), true),
        ("apps", "[v1]", "[events]", "Equivalent", event(""), false),
    ];
    for (group, versions, resources, match_policy, changes, expected) in cases {
        let policy = denying(&format!(
            "  matchConstraints:
    matchPolicy: {match_policy}
    resourceRules: [{{apiGroups: [{group}], apiVersions: {versions}, operations: ['*'], resources: {resources}}}]
  validations: [{{expression: 'false'}}]"
        ));
        let set = set(&format!("{}---{policy}", widgets(VERSIONS)));
        let denied = !set.decide(&request("x", &changes), set.documents()).allowed();
        assert_eq!(denied, expected, "{group} {versions} {resources} {match_policy} on {changes}");
    }
}
