//! Objects in another version of their kind.

use admit_apimachinery::yaml;
use admit_policy::GroupVersionKind;
use admit_policy::crd::CompiledCrd;
use admit_policy::matching::builtin;
use serde_json::{Value, json};

use crate::support::{denying, request, set, widgets, yaml};

#[test]
fn autoscalers_convert_both_ways() {
    let trees = yaml::parse(include_str!("data/autoscalers.yaml")).expect("the cases are YAML");
    for case in trees[0].value["cases"].as_array().expect("there are cases") {
        let object = |version: &str| {
            let mut object = case[version].clone();
            object["apiVersion"] = json!(format!("autoscaling/{version}"));
            object["kind"] = json!("HorizontalPodAutoscaler");
            object
        };
        let convert = |from: &str, to: &str| {
            let kind = GroupVersionKind::new("autoscaling", to, "HorizontalPodAutoscaler");
            builtin::convert(&object(from), &kind).expect("the kind is known")
        };
        assert_eq!(convert("v2", "v1"), object("v1"), "{} to v1", case["name"]);
        if case.get("one-way").is_none() {
            assert_eq!(convert("v1", "v2"), object("v2"), "{} to v2", case["name"]);
        }
    }
}

#[test]
fn events_convert_both_ways() {
    let trees = yaml::parse(include_str!("data/events.yaml")).expect("the cases are YAML");
    for case in trees[0].value["cases"].as_array().expect("there are cases") {
        let object = |group: &str, api_version: &str| {
            let mut object = case[group].clone();
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!("Event");
            object
        };
        let (core, events) = (object("core", "v1"), object("events", "events.k8s.io/v1"));
        let to =
            |kind: &str, object| builtin::convert(object, &GroupVersionKind::from_api_version(kind, "Event"));
        assert_eq!(to("v1", &events).as_ref(), Some(&core), "{} to core", case["name"]);
        assert_eq!(to("events.k8s.io/v1", &core), Some(events), "{} to events", case["name"]);
    }
}

fn definition(conversion: &str) -> CompiledCrd {
    CompiledCrd::compile(&yaml(&two_versions(conversion))[0]).expect("the definition is right")
}

fn two_versions(conversion: &str) -> String {
    widgets(&format!(
        "  conversion: {conversion}
  versions:
  - &v {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
  - {{<<: *v, name: v2, storage: false}}"
    ))
}

#[test]
fn custom_resources_convert_by_their_name_alone() {
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": 1});
    let converted = definition("{strategy: None}").convert(&object, "v2").expect("nothing is asked");
    assert_eq!(converted["apiVersion"], "example.com/v2");
    assert_eq!(converted["spec"], 1);
}

#[test]
fn what_a_webhook_would_convert_is_refused() {
    let crd = definition(
        "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a/b'}}}",
    );
    let object: Value = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    assert!(crd.convert(&object, "v1").is_ok(), "nothing has to be converted");
    let error = crd.convert(&object, "v2").expect_err("no webhook is called");
    let expected =
        "conversion webhook for example.com/v1, Kind=Widget failed: conversion webhooks are not called here";
    assert_eq!(error.to_string(), expected);
}

/// What the policy `spec` says of a ConfigMap, or of a Widget of v2 where `resource` is `widgets`.
fn told(spec: &str, resource: &str) -> String {
    let used = if spec.contains("paramKind") {
        ""
    } else {
        "  paramKind: {apiVersion: example.com/v1, kind: Widget}\n"
    };
    let param = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: limits, namespace: team}";
    let policy = denying(&format!("{used}{spec}")).replace(
        "{policyName: p,",
        "{policyName: p, paramRef: {name: limits, parameterNotFoundAction: Deny},",
    );
    let set = set(&format!("{policy}---{}\n---\n{param}\n", two_versions("{strategy: None}")));
    let widget = json!({
        "kind": {"group": "example.com", "version": "v2", "kind": "Widget"},
        "resource": {"group": "example.com", "version": "v2", "resource": "widgets"},
        "object": {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a", "namespace": "team"}},
    });
    let changes = if resource == "widgets" { widget } else { json!({}) };
    let mut host = set.documents().clone();
    host.ensure_namespace("team");
    let denial = set.decide(&request("a", &changes), &host).denial.expect("it denies");
    denial.message.rsplit(": ").next().unwrap_or_default().to_owned()
}

#[test]
fn conditions_see_the_resource_that_was_asked_for_in_the_version_of_the_policy() {
    let spec = "  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: ['*'], resources: [widgets]}]}
  matchConditions:
  - {name: asked, expression: \"request.resource.version == 'v2' && request.kind.version == 'v1' && object.apiVersion == 'example.com/v1'\"}
  validations: [{expression: 'false', messageExpression: \"request.resource.version + request.requestResource.version\"}]";
    assert_eq!(told(spec, "widgets"), "v1v2");
}

#[test]
fn params_come_in_the_version_that_the_policy_names() {
    for version in ["v1", "v2"] {
        let spec = format!(
            "  paramKind: {{apiVersion: example.com/{version}, kind: Widget}}
  matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}}]}}
  validations: [{{expression: 'false', messageExpression: string(params.apiVersion)}}]"
        );
        assert_eq!(told(&spec, "configmaps"), format!("example.com/{version}"));
    }
}
