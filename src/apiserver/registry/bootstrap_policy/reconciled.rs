//! Decides how an existing default role or binding is changed: nothing is removed, and what it lacks is added,
//! unless an annotation of the object opts out.

use admit_policy::rbac::{Rule, missing};
use serde_json::{Map, Value, json};

use crate::object;

const UPDATED: &str = "rbac.authorization.kubernetes.io/autoupdate";

#[derive(Debug, PartialEq)]
pub(super) enum Reconciled {
    Kept,
    Changed(Value),
    /// Delete and create again: a binding has another role, which is immutable.
    Replaced,
}

pub(super) fn reconciled(live: &Value, expected: &Value) -> Reconciled {
    let annotations = object::meta(live, "annotations");
    if annotations.and_then(|all| all.get(UPDATED)).and_then(Value::as_str) == Some("false") {
        return Reconciled::Kept;
    }
    if live.get("roleRef") != expected.get("roleRef") {
        return Reconciled::Replaced;
    }
    let mut wanted = live.clone();
    for field in ["labels", "annotations"] {
        add_texts(&mut wanted, expected, field);
    }
    if expected.get("roleRef").is_some() {
        add_items(&mut wanted, "/subjects", missing_items(live, expected, "/subjects"));
    } else {
        add_rules(&mut wanted, live, expected);
    }
    if wanted == *live { Reconciled::Kept } else { Reconciled::Changed(wanted) }
}

/// Adds missing labels or annotations; existing ones keep their values.
fn add_texts(wanted: &mut Value, expected: &Value, field: &str) {
    let texts =
        expected.pointer("/metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
    for (key, text) in texts.into_iter().flatten() {
        object::member_mut(object::meta_mut(wanted), field)
            .entry(key.as_str())
            .or_insert_with(|| text.clone());
    }
}

/// Adds rules that are not covered, or missing selectors; removes an aggregation rule that is not expected.
fn add_rules(wanted: &mut Value, live: &Value, expected: &Value) {
    const SELECTORS: &str = "/aggregationRule/clusterRoleSelectors";
    let gathers = |object: &Value| object.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    match (gathers(expected), gathers(live)) {
        (false, true) => object::set_field(wanted, "aggregationRule", None),
        (false, false) => {
            let rules = |object: &Value| -> Vec<Rule> { items(object, "/rules").map(Rule::read).collect() };
            let lacking = missing(&rules(live), &rules(expected)).rules;
            add_items(wanted, "/rules", lacking.iter().flat_map(by_verb).collect());
        }
        (true, has_rule) => {
            let lacking = missing_items(live, expected, SELECTORS);
            if !has_rule {
                object::set_field(wanted, "aggregationRule", Some(json!({"clusterRoleSelectors": []})));
            }
            add_items(wanted, SELECTORS, lacking);
        }
    }
}

/// Splits a rule into one for each verb.
fn by_verb(rule: &Rule) -> Vec<Value> {
    let fields = [
        ("apiGroups", &rule.api_groups),
        ("resources", &rule.resources),
        ("resourceNames", &rule.resource_names),
        ("nonResourceURLs", &rule.non_resource_urls),
    ];
    let rest: Map<String, Value> = fields
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(field, texts)| (field.to_owned(), json!(texts)))
        .collect();
    let one = |verb: &String| {
        let mut one = rest.clone();
        one.insert("verbs".to_owned(), json!([verb]));
        Value::Object(one)
    };
    rule.verbs.iter().map(one).collect()
}

fn items<'o>(object: &'o Value, pointer: &str) -> impl Iterator<Item = &'o Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn missing_items(live: &Value, expected: &Value, pointer: &str) -> Vec<Value> {
    let lacks = |item: &&Value| !items(live, pointer).any(|other| other == *item);
    items(expected, pointer).filter(lacks).cloned().collect()
}

fn add_items(wanted: &mut Value, pointer: &str, mut items: Vec<Value>) {
    if items.is_empty() {
        return;
    }
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    let Some(Value::Object(parent)) = wanted.pointer_mut(parent) else { return };
    match parent.get_mut(field) {
        Some(Value::Array(list)) => list.append(&mut items),
        _ => drop(parent.insert(field.to_owned(), Value::Array(items))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(rules: &Value) -> Value {
        json!({"metadata": {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {UPDATED: "true"}}, "rules": rules})
    }

    fn binding(role: &str, names: &[&str]) -> Value {
        let subjects: Vec<Value> = names.iter().map(|name| json!({"kind": "User", "name": name})).collect();
        json!({"metadata": {}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": subjects})
    }

    fn changed(live: &Value, expected: &Value) -> Value {
        match reconciled(live, expected) {
            Reconciled::Changed(wanted) => wanted,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rules_that_are_not_covered_are_added_one_by_one() {
        let expected = role(&json!([
            {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "nodes"]},
            {"verbs": ["get"], "nonResourceURLs": ["/livez"]}
        ]));
        let own = json!({"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["*"]});
        let more = json!({"verbs": ["*"], "nonResourceURLs": ["/*"]});
        let wanted = changed(&role(&json!([own, more])), &expected);
        let one = |verb: &str, of: &str| json!({"verbs": [verb], "apiGroups": [""], "resources": [of]});
        let lacking =
            [one("list", "pods"), one("watch", "pods"), one("list", "nodes"), one("watch", "nodes")];
        let rules = wanted["rules"].as_array().unwrap();
        assert_eq!(rules[..2], [own, more]);
        assert!(rules.len() == 6 && lacking.iter().all(|rule| rules.contains(rule)), "{rules:?}");
        assert_eq!(reconciled(&wanted, &expected), Reconciled::Kept);
    }

    #[test]
    fn what_is_to_be_left_alone_is() {
        let mut live = role(&json!([]));
        live["metadata"]["annotations"][UPDATED] = "false".into();
        let expected = role(&json!([{"verbs": ["get"], "nonResourceURLs": ["/livez"]}]));
        assert_eq!(reconciled(&live, &expected), Reconciled::Kept);
        live["metadata"]["annotations"][UPDATED] = "no".into();
        live["metadata"]["labels"] = json!({"mine": "1"});
        let wanted = changed(&live, &expected);
        assert_eq!(wanted["metadata"]["annotations"][UPDATED], "no");
        assert_eq!(
            wanted["metadata"]["labels"],
            json!({"mine": "1", "kubernetes.io/bootstrapping": "rbac-defaults"})
        );
    }

    #[test]
    fn roles_gather_what_they_should() {
        let gathers = |keys: &[&str]| {
            let selectors: Vec<Value> =
                keys.iter().map(|key| json!({"matchLabels": {*key: "true"}})).collect();
            json!({"metadata": {}, "aggregationRule": {"clusterRoleSelectors": selectors}})
        };
        let wanted = changed(&gathers(&["mine"]), &gathers(&["a"]));
        assert_eq!(wanted, gathers(&["mine", "a"]));
        let plain = json!({"metadata": {}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]});
        let wanted = changed(&plain, &gathers(&["a"]));
        assert_eq!(wanted["aggregationRule"], gathers(&["a"])["aggregationRule"]);
        assert_eq!(wanted["rules"], plain["rules"]);
        assert_eq!(changed(&gathers(&["a"]), &plain), json!({"metadata": {}}));
    }

    #[test]
    fn subjects_are_added_and_another_role_needs_another_binding() {
        let wanted = changed(&binding("a", &["ann"]), &binding("a", &["bob", "ann"]));
        assert_eq!(wanted, binding("a", &["ann", "bob"]));
        assert_eq!(reconciled(&binding("b", &["ann"]), &binding("a", &["ann"])), Reconciled::Replaced);
        assert_eq!(reconciled(&wanted, &binding("a", &[])), Reconciled::Kept);
    }
}
