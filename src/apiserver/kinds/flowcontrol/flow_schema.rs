//! Defines the strategy of FlowSchemas: rules that assign requests to priority levels.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use super::{EXEMPT, fixed, set_number};
use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "FlowSchema",
    habits: &[Habit::ChangeOnce, Habit::ObjectAgain, Habit::ShownByPrecedence],
    default: Some(default),
    validate: Some(validate),
    validate_status: Some(|object, _, errors| super::status(object, errors)),
    ..Strategy::PLAIN
};

const HIGHEST_PRECEDENCE: i64 = 10_000;
const DEFAULT_PRECEDENCE: i64 = 1_000;
const ALL: &str = "*";
const SUBJECTS: [&str; 3] = ["Group", "ServiceAccount", "User"];
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

fn default(_version: &str, object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        set_number(spec, "matchingPrecedence", true, DEFAULT_PRECEDENCE);
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    precedence(&spec.get("matchingPrecedence"), object::name(object), errors);
    let method = spec.get("distinguisherMethod");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&method.get("type").text()) {
        let shown = json!({"Type": method.get("type").text()});
        let kind = method.get("type");
        errors.add(|| kind.with(&shown).not_supported(&["ByNamespace", "ByUser"]));
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    if level.text().is_empty() {
        errors.add(|| level.required("must reference a priority level"));
    } else {
        level.named(NameRule::Subdomain, errors);
    }
    for rule in spec.get("rules").items() {
        self::rule(&rule, errors);
    }
    fixed::schema(object, errors);
}

fn precedence(field: &Field<'_>, name: &str, errors: &mut FieldErrors) {
    let number = field.integer().unwrap_or(0);
    let problem = match number {
        ..=0 => "must be a positive value".to_owned(),
        1 if name != EXEMPT => "only the schema named 'exempt' may have matchingPrecedence 1".to_owned(),
        _ if number > HIGHEST_PRECEDENCE => format!("must not be greater than {HIGHEST_PRECEDENCE}"),
        _ => return,
    };
    errors.add(|| field.invalid_as(number, problem));
}

fn rule(rule: &Field<'_>, errors: &mut FieldErrors) {
    let subjects = rule.get("subjects");
    if subjects.is_empty() {
        errors.add(|| subjects.required("subjects must contain at least one value"));
    }
    for subject in subjects.items() {
        self::subject(&subject, errors);
    }
    let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.add(|| rule.required(why));
    }
    for resource in resources.items() {
        resource_rule(&resource, errors);
    }
    for other in others.items() {
        non_resource_rule(&other, errors);
    }
}

/// A subject must have the member for its kind, and no other.
fn subject(subject: &Field<'_>, errors: &mut FieldErrors) {
    let kind = subject.get("kind");
    let own = match kind.text() {
        "ServiceAccount" => "serviceAccount",
        "User" => "user",
        "Group" => "group",
        _ => return errors.add(|| kind.not_supported(&SUBJECTS)),
    };
    named_subject(&subject.get(own), own, kind.text(), errors);
    let others = [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")];
    for (name, of) in others.into_iter().filter(|(name, _)| *name != own) {
        let other = subject.get(name);
        if other.is_set() {
            errors.add(|| other.forbidden(format!("{name} is forbidden when subject kind is not '{of}'")));
        }
    }
}

fn named_subject(own: &Field<'_>, member: &str, kind: &str, errors: &mut FieldErrors) {
    if !own.is_set() {
        return errors.add(|| own.required(format!("{member} is required when subject kind is '{kind}'")));
    }
    let name = own.get("name");
    if name.text().is_empty() {
        errors.add(|| name.required(""));
    }
    if kind != "ServiceAccount" {
        return;
    }
    if !name.text().is_empty() && name.text() != ALL {
        name.named(NameRule::Subdomain, errors);
    }
    let namespace = own.get("namespace");
    if namespace.text().is_empty() {
        errors.add(|| namespace.required("must specify namespace for service account"));
    } else {
        namespace.named(NameRule::Label, errors);
    }
}

fn resource_rule(rule: &Field<'_>, errors: &mut FieldErrors) {
    verbs(&rule.get("verbs"), errors);
    for (name, noun, others) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        let list = rule.get(name);
        if list.is_empty() {
            errors.add(|| list.required(format!("resource rules must supply at least one {noun}")));
        } else {
            alone(&list, others, errors);
        }
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").flag() {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.add(|| namespaces.required(why));
    } else if has_all(&namespaces) {
        alone(&namespaces, "namespaces", errors);
    } else {
        for namespace in namespaces.items() {
            for problem in NameRule::Label.problems(namespace.text(), false) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
                errors.add(|| namespace.invalid(why));
            }
        }
    }
}

fn non_resource_rule(rule: &Field<'_>, errors: &mut FieldErrors) {
    verbs(&rule.get("verbs"), errors);
    let urls = rule.get("nonResourceURLs");
    if urls.is_empty() {
        errors.add(|| urls.required("nonResourceURLs must contain at least one value"));
    } else if has_all(&urls) {
        alone(&urls, "non-resource URLs", errors);
    } else {
        for url in urls.items() {
            if let Some(problem) = url_problem(url.text()) {
                errors.add(|| url.invalid(problem));
            }
        }
    }
}

fn verbs(verbs: &Field<'_>, errors: &mut FieldErrors) {
    if verbs.is_empty() {
        errors.add(|| verbs.required("verbs must contain at least one value"));
    } else if has_all(verbs) {
        alone(verbs, "verbs", errors);
    } else if !verbs.texts().all(|verb| VERBS.contains(&verb)) {
        let shown = verbs.shown_texts();
        errors.add(|| verbs.with(&shown).not_supported(&VERBS));
    }
}

fn has_all(list: &Field<'_>) -> bool {
    list.texts().any(|text| text == ALL)
}

/// `*` means all, so no other item is allowed beside it.
fn alone(list: &Field<'_>, others: &str, errors: &mut FieldErrors) {
    if list.len() > 1 && has_all(list) {
        let why = format!("if '*' is present, must not specify other {others}");
        errors.add(|| list.invalid_as(list.shown_texts(), why));
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    let wildcards = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if wildcards > 1 || (wildcards == 1 && !url.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    fn schema(rule: &Value) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {
            "matchingPrecedence": 10_001, "priorityLevelConfiguration": {"name": "l"}, "rules": [rule]
        }})
    }

    #[test]
    fn wildcards_stand_alone() {
        let rule = json!({
            "subjects": [{"kind": "Group", "user": {"name": "u"}}],
            "resourceRules": [
                {"verbs": ["*", "get"], "apiGroups": ["*", ""], "resources": ["*"], "namespaces": ["*", "a"]}
            ],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/a*", "/a b", "/a//b", "/*", "/"]}]
        });
        let at = "spec.rules[0]";
        assert_eq!(
            told(&STRATEGY, &schema(&rule), None),
            [
                "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000".to_owned(),
                format!(
                    "{at}.subjects[0].group: Required value: group is required when subject kind is 'Group'"
                ),
                format!(
                    "{at}.subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'"
                ),
                format!(
                    "{at}.resourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify \
                     other verbs"
                ),
                format!(
                    "{at}.resourceRules[0].apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify \
                     other api groups"
                ),
                format!(
                    "{at}.resourceRules[0].namespaces: Invalid value: [\"*\",\"a\"]: if '*' is present, must not \
                     specify other namespaces"
                ),
                format!(
                    "{at}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"/a*\": wildcard can only do suffix \
                     matching"
                ),
                format!(
                    "{at}.nonResourceRules[0].nonResourceURLs[1]: Invalid value: \"/a b\": must not contain white-space"
                ),
                format!(
                    "{at}.nonResourceRules[0].nonResourceURLs[2]: Invalid value: \"/a//b\": must not contain double \
                     slash"
                ),
            ]
        );
    }
}
