//! Roles and role bindings.

use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use super::{items, text};
use crate::status::{Cause, Causes};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(kind: &str, object: &Value) -> Causes {
    let rules = items(object, "rules").iter().enumerate();
    rules.flat_map(|(at, rule)| self::rule(rule, &format!("rules[{at}]"), kind == "Role")).collect()
}

fn rule(rule: &Value, path: &str, namespaced: bool) -> Causes {
    let mut causes = Causes::default();
    let has = |field: &str| !items(rule, field).is_empty();
    if !has("verbs") {
        causes.push(Cause::required(format!("{path}.verbs"), "verbs must contain at least one value"));
    }
    if has("nonResourceURLs") {
        let urls = rule.get("nonResourceURLs").unwrap_or(&Value::Null);
        let field = format!("{path}.nonResourceURLs");
        if namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            causes.push(Cause::invalid(field.as_str(), urls, why));
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            causes.push(Cause::invalid(field, urls, why));
        }
        return causes;
    }
    if !has("apiGroups") {
        let why = "resource rules must supply at least one api group";
        causes.push(Cause::required(format!("{path}.apiGroups"), why));
    }
    if !has("resources") {
        let why = "resource rules must supply at least one resource";
        causes.push(Cause::required(format!("{path}.resources"), why));
    }
    causes
}

pub(super) fn binding(kind: &str, object: &Value, old: Option<&Value>) -> Causes {
    let reference = object.get("roleRef").unwrap_or(&Value::Null);
    let kinds: &[&str] = if kind == "RoleBinding" { &["ClusterRole", "Role"] } else { &["ClusterRole"] };
    let mut causes = Causes::default();
    if text(reference, "apiGroup") != GROUP {
        causes.push(Cause::unsupported("roleRef.apiGroup", &text(reference, "apiGroup").into(), &[GROUP]));
    }
    if !kinds.contains(&text(reference, "kind")) {
        causes.push(Cause::unsupported("roleRef.kind", &text(reference, "kind").into(), kinds));
    }
    match text(reference, "name") {
        "" => causes.push(Cause::required("roleRef.name", "")),
        name => {
            let problems = NameRule::PathSegment.problems(name, false);
            causes.extend(problems.iter().map(|why| Cause::invalid("roleRef.name", &name.into(), why)));
        }
    }
    for (at, subject) in items(object, "subjects").iter().enumerate() {
        causes.extend(self::subject(subject, &format!("subjects[{at}]"), kind == "RoleBinding"));
    }
    if old.is_some_and(|old| old.get("roleRef") != object.get("roleRef")) {
        let inside = json!({
            "APIGroup": text(reference, "apiGroup"), "Kind": text(reference, "kind"), "Name": text(reference, "name")
        });
        causes.push(Cause::invalid("roleRef", &inside, "cannot change roleRef"));
    }
    causes
}

fn subject(subject: &Value, path: &str, namespaced: bool) -> Causes {
    let mut causes = Causes::default();
    let name = text(subject, "name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    let group = text(subject, "apiGroup");
    let mut of_group = |wanted: &str| {
        if group != wanted {
            causes.push(Cause::unsupported(format!("{path}.apiGroup"), &group.into(), &[wanted]));
        }
    };
    match text(subject, "kind") {
        "ServiceAccount" => {
            let problems =
                if name.is_empty() { Vec::new() } else { NameRule::Subdomain.problems(name, false) };
            let field = format!("{path}.name");
            let named: Causes =
                problems.iter().map(|why| Cause::invalid(field.as_str(), &name.into(), why)).collect();
            of_group("");
            causes.extend(named);
            if !namespaced && text(subject, "namespace").is_empty() {
                causes.push(Cause::required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => of_group(GROUP),
        kind => {
            let kinds = ["Group", "ServiceAccount", "User"];
            causes.push(Cause::unsupported(format!("{path}.kind"), &kind.into(), &kinds));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(causes: &[Cause]) -> Vec<String> {
        causes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_of_resources_or_of_urls() {
        let object =
            json!({"rules": [{}, {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]});
        assert_eq!(
            texts(&role("Role", &object)),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources and \
                 non-resource URLs"
            ]
        );
    }

    #[test]
    fn bindings_name_a_role_for_good() {
        let bound = |name: &str| {
            json!({"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "u"}, {"kind": "Pod", "name": "p"}]})
        };
        assert_eq!(
            texts(&binding("ClusterRoleBinding", &bound("b"), Some(&bound("a")))),
            [
                "subjects[1].kind: Unsupported value: \"Pod\": supported values: \"Group\", \"ServiceAccount\", \"User\"",
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\
                 \"Name\":\"b\"}: cannot change roleRef"
            ]
        );
    }
}
