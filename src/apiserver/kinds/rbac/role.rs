//! Defines the strategies of Roles and ClusterRoles: allowed verbs on resources or on non-resource URLs.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::{self, LabelValues};
use crate::kinds::{Habit, Strategy};

pub(super) const ROLE: Strategy = Strategy {
    kind: "Role",
    habits: &[Habit::CreatedByUpdate, Habit::ObjectAgain],
    name: Some(super::NAMING),
    validate: Some(|object, errors| rules(object, Scope::Namespace, errors)),
    ..Strategy::PLAIN
};

pub(super) const CLUSTER_ROLE: Strategy = Strategy {
    kind: "ClusterRole",
    habits: &[Habit::CreatedByUpdate, Habit::ObjectAgain],
    name: Some(super::NAMING),
    validate_create: Some(|object, errors| cluster_role(object, LabelValues::Checked, errors)),
    validate_update: Some(update_cluster_role),
    ..Strategy::PLAIN
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    Namespace,
    Cluster,
}

fn rules(object: &Value, scope: Scope, errors: &mut FieldErrors) {
    for rule in Field::root(object).get("rules").items() {
        self::rule(&rule, scope, errors);
    }
}

fn rule(rule: &Field<'_>, scope: Scope, errors: &mut FieldErrors) {
    let has = |name| !rule.get(name).is_empty();
    if !has("verbs") {
        errors.add(|| rule.get("verbs").required("verbs must contain at least one value"));
    }
    let urls = rule.get("nonResourceURLs");
    if !urls.is_empty() {
        let mut wrong = |why: &str| errors.add(|| urls.invalid_as(urls.shown_texts(), why));
        if scope == Scope::Namespace {
            wrong("namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            wrong("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if !has("apiGroups") {
        errors.add(|| rule.get("apiGroups").required("resource rules must supply at least one api group"));
    }
    if !has("resources") {
        errors.add(|| rule.get("resources").required("resource rules must supply at least one resource"));
    }
}

fn update_cluster_role(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let mut broken = FieldErrors::default();
    for selector in selectors(old).items() {
        label_selector::validate(&selector, LabelValues::Checked, &mut broken);
    }
    let values = if broken.is_empty() { LabelValues::Checked } else { LabelValues::Unchecked };
    cluster_role(object, values, errors);
}

fn selectors(object: &Value) -> Field<'_> {
    Field::root(object).get("aggregationRule").get("clusterRoleSelectors")
}

fn cluster_role(object: &Value, values: LabelValues, errors: &mut FieldErrors) {
    rules(object, Scope::Cluster, errors);
    if !Field::root(object).get("aggregationRule").is_set() {
        return;
    }
    let selectors = selectors(object);
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.add(|| selectors.required(why));
    }
    for selector in selectors.items() {
        label_selector::validate(&selector, values, errors);
        // An invalid selector is reported a second time, with the value null.
        let mut broken = FieldErrors::default();
        label_selector::validate(&selector, LabelValues::Checked, &mut broken);
        if !broken.is_empty() {
            errors.add(|| selector.invalid_as(Value::Null, "invalid label selector."));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn rules_are_of_resources_or_of_urls() {
        let object =
            json!({"rules": [{}, {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]});
        let both = "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources \
                    and non-resource URLs";
        let expected = [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            both,
        ];
        assert_eq!(told(&ROLE, &object, None), expected);
        assert_eq!(told(&CLUSTER_ROLE, &object, None), [expected[0], expected[1], expected[2], both]);
    }

    #[test]
    fn selectors_that_are_stored_may_stay() {
        let object = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [
            {"key": "a", "operator": "In", "values": ["-"]}
        ]}]}});
        assert_eq!(told(&CLUSTER_ROLE, &object, None).len(), 2);
        assert_eq!(
            told(&CLUSTER_ROLE, &object, Some(&object)),
            ["aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."]
        );
    }
}
