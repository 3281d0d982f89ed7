//! ResourceQuotas. Read from pkg/apis/core/validation, pkg/apis/core/helper and pkg/registry/core/resourcequota of
//! Kubernetes 1.36.

use std::collections::{BTreeSet, HashSet};

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::{amount, inside, resource_names};
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ResourceQuota",
    habits: &[Habit::AnswersDeleted],
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const OPPOSITES: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

/// A new quota that lets more be asked for than may be used.
fn warnings(quota: &Value, old: Option<&Value>) -> Vec<String> {
    let hard = Field::root(quota).get("spec").get("hard");
    let set = |resource: &str| hard.map().and_then(|hard| hard.get(resource)).map(amount::Amount::read);
    let exceeding = |resource: &str| {
        let mut name = format!("requests.{resource}");
        let asked = set(&name).or_else(|| {
            if !["cpu", "memory"].contains(&resource) {
                return None;
            }
            resource.clone_into(&mut name);
            set(resource)
        })?;
        let used = set(&format!("limits.{resource}"))?;
        asked.compare(&used).is_gt().then(|| {
            let (asked, used) = (asked.text(), used.text());
            format!("ResourceQuota {name} ({asked}) should be less than limits.{resource} ({used})")
        })
    };
    let known = ["cpu", "memory", "storage", "ephemeral-storage"].into_iter().filter(|_| old.is_none());
    known.filter_map(exceeding).collect()
}

fn validate(quota: &Value, errors: &mut FieldErrors) {
    let root = Field::root(quota);
    specification(&root.get("spec"), errors);
    status(&root.get("status"), errors);
}

fn specification(spec: &Field<'_>, errors: &mut FieldErrors) {
    amounts(&spec.get("hard"), errors);
    scopes(spec, errors);
    selector(spec, errors);
}

fn amounts(amounts: &Field<'_>, errors: &mut FieldErrors) {
    for (resource, amount) in amounts.entries() {
        resource_names::of_quota(resource, &amount, errors);
        amount::of_resource(resource, &amount, errors);
    }
}

fn status(status: &Field<'_>, errors: &mut FieldErrors) {
    amounts(&status.get("hard"), errors);
    amounts(&status.get("used"), errors);
}

/// Whether what is counted is counted of objects of that scope.
fn counts(scope: &str, resource: &str) -> bool {
    const COMPUTED: [&str; 6] =
        ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "BestEffort" => resource == "pods",
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => resource == "pods" || COMPUTED.contains(&resource),
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        _ => true,
    }
}

/// How many of the resources that are limited are not counted in the scope.
fn uncounted(spec: &Field<'_>, scope: &str) -> usize {
    let hard = spec.get("hard");
    let resources = hard.map().into_iter().flatten().map(|(resource, _)| resource.as_str());
    resources.filter(|resource| resource_names::is_of_quotas(resource) && !counts(scope, resource)).count()
}

fn scopes(spec: &Field<'_>, errors: &mut FieldErrors) {
    let list = spec.get("scopes");
    let mut named = HashSet::new();
    for scope in list.items().map(|scope| scope.text()) {
        if !SCOPES.contains(&scope) {
            errors.add(|| list.invalid("unsupported scope"));
        }
        // One scope has the same to say each time.
        if named.insert(scope) {
            for _ in 0..uncounted(spec, scope) {
                errors.add(|| list.invalid("unsupported scope applied to resource"));
            }
        }
    }
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| named.contains(scope))) {
        errors.add(|| list.invalid("conflicting scopes"));
    }
}

/// Errors of requirements are told of their list.
fn selector(spec: &Field<'_>, errors: &mut FieldErrors) {
    let selector = spec.get("scopeSelector");
    let list = selector.get("matchExpressions");
    let mut named = HashSet::new();
    for requirement in list.items() {
        let of = |name: &'static str| list.get(name).with(requirement.get(name).value());
        let (scope, operator, values) = (of("scopeName"), of("operator"), of("values"));
        if !SCOPES.contains(&scope.text()) {
            errors.add(|| scope.invalid("unsupported scope"));
        }
        if named.insert(scope.text()) {
            for _ in 0..uncounted(spec, scope.text()) {
                let shown =
                    || inside::told(&inside::shown("io.k8s.api.core.v1.ScopeSelector", &selector.as_sent()));
                errors.add(|| list.invalid_as(shown(), "unsupported scope applied to resource"));
            }
        }
        requirement_holds(&scope, &operator, &values, errors);
    }
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| named.contains(scope))) {
        errors.add(|| list.invalid_as(&*spec.get("scopes").as_sent(), "conflicting scopes"));
    }
}

fn requirement_holds(scope: &Field<'_>, operator: &Field<'_>, values: &Field<'_>, errors: &mut FieldErrors) {
    let is_there_or_not = !["PriorityClass", "VolumeAttributesClass"].contains(&scope.text());
    if SCOPES.contains(&scope.text()) && is_there_or_not && operator.text() != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                   ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                   ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.add(|| operator.invalid(why));
    }
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => errors.add(|| {
            values
                .required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
        }),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.add(|| {
            values.invalid("must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
        }),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.add(|| operator.invalid("not a valid selector operator")),
    }
}

fn validate_update(quota: &Value, old: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(quota).get("spec");
    specification(&spec, errors);
    let set = |list: &Field<'_>| list.items().map(|scope| scope.text().to_owned()).collect::<BTreeSet<_>>();
    let list = spec.get("scopes");
    if set(&list) != set(&Field::root(old).get("spec").get("scopes")) {
        errors.add(|| list.invalid_as(&*list.as_sent(), "field is immutable"));
    }
}

fn validate_status(quota: &Value, _: &Value, errors: &mut FieldErrors) {
    status(&Field::root(quota).get("status"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_fit_what_is_counted() {
        let quota = json!({"spec": {"hard": {"pods": "1500m", "services": "1"}, "scopes": ["BestEffort", "NotBestEffort"],
        "scopeSelector": {"matchExpressions": [
            {"scopeName": "Terminating", "operator": "In", "values": ["a"]},
            {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]},
        ]}}});
        let mut errors = FieldErrors::default();
        validate(&quota, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        let scopes = "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]:";
        assert_eq!(texts[0], "spec.hard[pods]: Invalid value: \"1500m\": must be an integer");
        assert_eq!(texts[1], format!("{scopes} unsupported scope applied to resource"));
        assert_eq!(texts[3], format!("{scopes} conflicting scopes"));
        assert!(texts[4].starts_with(
            "spec.scopeSelector.matchExpressions: Invalid value: {\"MatchExpressions\":[{\"ScopeName\":"
        ));
        assert!(texts[5].starts_with(
            "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists'"
        ));
        assert!(
            texts[7].ends_with(
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
        );
    }
}
