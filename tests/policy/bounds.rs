//! Objects that are wrong in as many places as fit: some of these are told, the rest is counted, and none is made for nothing.
//! Each of these took minutes, or gigabytes, before.

use admit_apimachinery::findings::{MAX_FINDING_BYTES, MAX_FINDINGS};
use admit_policy::EvalOptions;
use admit_policy::crd::{CompiledCrd, Write, Written};
use serde_json::{Map, Value, json};

use crate::support::{widgets_of, yaml};

fn definition(properties: &str) -> CompiledCrd {
    CompiledCrd::compile(&yaml(&widgets_of(&format!("          {properties}\n")))[0])
        .expect("the definition is right")
}

/// What a creation with these fields leads to, and how it is refused.
fn written(crd: &CompiledCrd, fields: Value) -> (Written, String) {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    let version = crd.version("v1").expect("there is one");
    let write = Write { crd, version, old: None, status: false, eval: EvalOptions::default() };
    let written = write.decide(&object);
    let refusal = written.refusal(crd).unwrap_or_default();
    (written, refusal)
}

#[test]
fn the_first_errors_are_told_and_the_rest_is_counted() {
    let crd = definition(
        "items: {type: array, items: {type: object, required: [a], properties: {a: {type: string}}}}",
    );
    let (written, refusal) = written(&crd, json!({"items": vec![json!({}); 60_000]}));
    assert_eq!(written.errors.len(), MAX_FINDINGS + 1);
    assert!(
        refusal.contains("[items[0].a: Required value, items[1].a: Required value, "),
        "{:.200}",
        refusal
    );
    assert!(refusal.ends_with("items[999].a: Required value, and 59000 more]"));
}

#[test]
fn an_alternative_that_is_not_chosen_takes_no_room() {
    let crd = definition(
        "items: {type: array, items: {type: object, properties: {a: {type: integer}, b: {type: integer}}, \
         anyOf: [{required: [a, b]}, {required: [a]}]}}",
    );
    let (written, _) = written(&crd, json!({"items": vec![json!({"b": 1}); 300]}));
    // Two of each item: that no alternative holds, and what the best one lacks.
    assert_eq!(written.errors.len(), 600);
}

#[test]
fn long_values_of_long_enumerations_are_not_shown_for_every_item() {
    let members: Vec<String> = (0..20_000).map(|at| format!("member-{at}")).collect();
    let crd = definition(&format!(
        "items: {{type: array, items: {{type: string, enum: [{}]}}}}",
        members.join(", ")
    ));
    let (written, refusal) = written(&crd, json!({"items": vec!["other"; 20_000]}));
    assert!(written.errors.len() < 20, "{}", written.errors.len());
    assert!(refusal.len() < 3 * MAX_FINDING_BYTES, "{}", refusal.len());
    assert!(refusal.ends_with(" more]"));
    let right: Vec<Value> = (0..100_000).map(|at| json!(format!("member-{}", at % 20_000))).collect();
    assert!(self::written(&crd, json!({"items": right})).0.errors.is_empty());
}

#[test]
fn unknown_fields_are_bounded_whatever_leads_to_them() {
    let crd = definition(
        "maps: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}",
    );
    let unknown: Map<String, Value> = (0..250_000).map(|at| (format!("k{at}"), json!(1))).collect();
    let maps = json!({"maps": {"long".repeat(25_000): unknown}});
    let (written, _) = written(&crd, maps);
    assert!(written.errors.is_empty());
    let bytes: usize = written.warnings.iter().map(String::len).sum();
    assert!(bytes > 0 && bytes < MAX_FINDING_BYTES, "{bytes}");
}

#[test]
fn every_item_of_a_list_may_be_there_twice() {
    let crd = definition(
        "set: {type: array, x-kubernetes-list-type: set, items: {type: string}}\n          map: {type: array, \
         x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: \
         {k: {type: string}}}}",
    );
    let items: Vec<String> = (0..60_000).map(|at| format!("{}", at / 2)).collect();
    let of_map: Vec<Value> = items.iter().map(|key| json!({"k": key})).collect();
    let (written, refusal) = written(&crd, json!({"set": items, "map": of_map}));
    assert_eq!(written.errors.len(), MAX_FINDINGS + 1);
    assert!(refusal.ends_with("and 59000 more]"));
}

#[test]
fn a_rule_may_fail_for_every_item() {
    let crd = definition(
        "items: {type: array, maxItems: 60000, items: {type: integer, x-kubernetes-validations: [{rule: self > 1}]}}",
    );
    let (written, refusal) = written(&crd, json!({"items": vec![1; 60_000]}));
    assert_eq!(written.errors.len(), MAX_FINDINGS + 1);
    assert!(refusal.contains("items[0]: Invalid value: 1: failed rule: self > 1"));
    assert!(refusal.ends_with("and 59000 more]"));
}

#[test]
fn owner_references_are_shown_once_and_not_for_each_other() {
    let crd = definition("a: {type: string}");
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": "a".repeat(100), "uid": format!("{at}"), "controller": true});
    let metadata = json!({"name": "a", "ownerReferences": (0..5_000).map(owner).collect::<Vec<_>>()});
    let (written, refusal) = written(&crd, json!({"metadata": metadata}));
    assert!(written.errors.len() < 5, "{}", written.errors.len());
    assert!(refusal.ends_with("and 4997 more]"), "{}", &refusal[refusal.len() - 40..]);
}
