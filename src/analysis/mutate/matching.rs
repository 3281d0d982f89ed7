//! Generates mutants of match criteria and of binding actions.

use serde_json::{Value, json};

use super::mutant::{Mutant, Operator, Place};

/// Returns the mutants of a policy's match constraints.
pub(super) fn of_policy(document: &Value) -> Vec<Mutant> {
    let root = Place::root(document);
    root.descend(&["spec", "matchConstraints"]).map(|place| of_resources(&place)).unwrap_or_default()
}

/// Returns the mutants of a binding: its match resources and its validation actions.
pub(super) fn of_binding(document: &Value) -> Vec<Mutant> {
    let root = Place::root(document);
    let mut made =
        root.descend(&["spec", "matchResources"]).map(|place| of_resources(&place)).unwrap_or_default();
    let Some(actions) = root.descend(&["spec", "validationActions"]) else { return made };
    let all = actions.parts();
    if let [only] = all.as_slice() {
        let weaker = match only.value.as_str() {
            Some("Deny" | "Audit") => Some("Warn"),
            Some("Warn") => Some("Audit"),
            _ => None,
        };
        made.extend(weaker.map(|weaker| only.replaced(Operator::Action, json!(weaker))));
    } else {
        made.extend(all.iter().map(|action| action.dropped(Operator::Action)));
    }
    made
}

fn of_resources(place: &Place<'_>) -> Vec<Mutant> {
    let mut made = Vec::new();
    if let Some(rules) = place.child("resourceRules") {
        made.extend(of_rules(&rules, false));
    }
    if let Some(rules) = place.child("excludeResourceRules") {
        made.extend(of_rules(&rules, true));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        let Some(selector) = place.child(name) else { continue };
        let lists = ["matchLabels", "matchExpressions"].map(|list| selector.child(list));
        let demands = lists.into_iter().flatten().flat_map(|list| list.parts());
        made.extend(demands.map(|demand| demand.dropped(Operator::Selector)));
    }
    made
}

/// Without its last item a list would match nothing or everything, or be invalid.
fn of_rules(rules: &Place<'_>, may_be_empty: bool) -> Vec<Mutant> {
    let all = rules.parts();
    let mut made = Vec::new();
    for rule in &all {
        if may_be_empty || all.len() > 1 {
            made.push(rule.dropped(Operator::Resource));
        }
        let lists = [
            ("operations", Operator::Operation),
            ("apiGroups", Operator::Resource),
            ("resources", Operator::Resource),
        ];
        for (list, operator) in lists {
            let items = rule.child(list).map(|list| list.parts()).unwrap_or_default();
            if items.len() > 1 {
                made.extend(items.iter().map(|item| item.dropped(operator)));
            }
        }
        // An absent list matches every name. Each name is removed, the last one with the list.
        let names = rule.child("resourceNames").map(|list| list.parts()).unwrap_or_default();
        made.extend(names.iter().map(|name| name.dropped(Operator::Resource)));
    }
    made
}
