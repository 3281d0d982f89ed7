//! Validates the mandatory flow schemas and priority levels, whose specifications are fixed
//! (staging/src/k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap).

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use super::EXEMPT;
use crate::kinds::field::Field;
use crate::kinds::shared::internal::shown;
use crate::object;

const CATCH_ALL: &str = "catch-all";

/// A schema with a mandatory name must have the specification for that name.
pub(super) fn schema(object: &Value, errors: &mut FieldErrors) {
    let name = object::name(object);
    let fixed = match name {
        EXEMPT => all_requests(1, None, &["system:masters"]),
        CATCH_ALL => {
            all_requests(10_000, Some("ByUser"), &["system:unauthenticated", "system:authenticated"])
        }
        _ => return,
    };
    let spec = Field::root(object).get("spec");
    let mut fixed = fixed;
    fixed["priorityLevelConfiguration"] = json!({"name": name});
    if *spec.value() != fixed {
        errors.add(|| {
            let why = format!("spec of '{name}' must equal the fixed value");
            spec.invalid_as(shown(&spec, "io.k8s.api.flowcontrol.v1.FlowSchemaSpec"), why)
        });
    }
}

fn all_requests(precedence: i64, method: Option<&str>, groups: &[&str]) -> Value {
    let subjects: Vec<Value> =
        groups.iter().map(|group| json!({"kind": "Group", "group": {"name": group}})).collect();
    let mut spec = json!({
        "matchingPrecedence": precedence,
        "rules": [{
            "subjects": subjects,
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]
            }],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
        }]
    });
    object::set_field(&mut spec, "distinguisherMethod", method.map(|method| json!({"type": method})));
    spec
}

/// A level with a mandatory name must have the specification for that name, except for the `exempt` part of the exempt level.
pub(super) fn level(object: &Value, errors: &mut FieldErrors) {
    let name = object::name(object);
    let spec = Field::root(object).get("spec");
    let mut own = spec.value().clone();
    let (fixed, but) = match name {
        EXEMPT => {
            object::set_field(&mut own, "exempt", None);
            (json!({"type": "Exempt"}), " except the 'spec.exempt' field")
        }
        CATCH_ALL => {
            let limited = json!({"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}});
            (json!({"type": "Limited", "limited": limited}), "")
        }
        _ => return,
    };
    if own != fixed {
        errors.add(|| {
            let why = format!("spec of '{name}'{but} must equal the fixed value");
            spec.invalid_as(shown(&spec, "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec"), why)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{flow_schema, priority_level};
    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn fixed_objects_are_what_they_are() {
        let mut all = all_requests(1, None, &["system:masters"]);
        all["priorityLevelConfiguration"] = json!({"name": "exempt"});
        let mut schema = json!({"metadata": {"name": "exempt"}, "spec": all});
        assert_eq!(told(&flow_schema::STRATEGY, &schema, None), Vec::<String>::new());
        schema["spec"]["matchingPrecedence"] = json!(2);
        let texts = told(&flow_schema::STRATEGY, &schema, None);
        assert!(texts[0].ends_with(": spec of 'exempt' must equal the fixed value"), "{texts:?}");
        let level = |spec: Value| json!({"metadata": {"name": "exempt"}, "spec": spec});
        let shares =
            level(json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 9, "lendablePercent": 5}}));
        assert_eq!(told(&priority_level::STRATEGY, &shares, None), Vec::<String>::new());
        let limits =
            json!({"limitResponse": {"type": "Reject"}, "nominalConcurrencyShares": 6, "lendablePercent": 0});
        let other =
            json!({"metadata": {"name": "catch-all"}, "spec": {"type": "Limited", "limited": limits}});
        let texts = told(&priority_level::STRATEGY, &other, None);
        assert!(texts[0].ends_with(": spec of 'catch-all' must equal the fixed value"), "{texts:?}");
    }
}
