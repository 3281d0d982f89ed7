//! Validates container statuses in a new pod status: which containers may restart, and the health of their resources.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::FieldErrors;

use crate::kinds::field::Field;

/// The lists of a status, and the corresponding list of the specification.
const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    (DEBUGGING, "ephemeralContainers"),
];

/// Statuses of ephemeral containers.
const DEBUGGING: &str = "ephemeralContainerStatuses";

/// A terminated container may only run again if a restart policy or rule allows it.
pub(super) fn states(status: &Field<'_>, old: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    let all = ["containers", "initContainers"].into_iter().flat_map(|list| spec.get(list).items());
    let any_restarts_all = all
        .flat_map(|container| container.get("restartPolicyRules").items())
        .any(|rule| rule.get("action").text() == "RestartAllContainers");
    for (list, of_spec) in LISTS {
        if any_restarts_all && list != DEBUGGING {
            continue;
        }
        let (now, containers) = (by_name(&status.get(list)), by_name(&spec.get(of_spec)));
        for (at, before) in old.get(list).items().enumerate() {
            let (ended, name) = (before.get("state").get("terminated"), before.get("name").text());
            let goes_on = now.get(name).is_some_and(|now| !now.get("state").get("terminated").is_set());
            let code = ended.get("exitCode").integer().unwrap_or_default();
            let may_go_on = list != DEBUGGING
                && containers.get(name).is_some_and(|container| starts_anew(container, spec, code));
            if ended.is_set() && goes_on && !may_go_on {
                let state = status.get(list).index(at).get("state");
                errors.add(|| state.forbidden("may not be transitioned to non-terminated state"));
            }
        }
    }
}

/// Maps names to items, the first of each name.
fn by_name<'o>(list: &Field<'o>) -> HashMap<&'o str, Field<'o>> {
    let mut found = HashMap::new();
    for item in list.items() {
        found.entry(item.get("name").text()).or_insert(item);
    }
    found
}

/// Whether a container that ended with the exit code is restarted: by its rules, its own policy, or its pod's.
fn starts_anew(container: &Field<'_>, spec: &Field<'_>, code: i64) -> bool {
    let own = container.get("restartPolicy");
    let by_rule = container.get("restartPolicyRules").items().find(|rule| {
        let codes = rule.get("exitCodes");
        let is_listed = codes.get("values").items().any(|value| value.integer() == Some(code));
        match codes.get("operator").text() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    });
    if own.is_set() && by_rule.is_some_and(|rule| rule.get("action").text() == "Restart") {
        return true;
    }
    let policies = [own.text(), spec.get("restartPolicy").text()];
    match policies.into_iter().find(|policy| ["Always", "OnFailure", "Never"].contains(policy)) {
        Some("OnFailure") => code != 0,
        Some("Never") => false,
        _ => true,
    }
}

const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
/// Most bytes of a message about a resource's health.
const LONGEST_MESSAGE: i64 = 1024;

/// Validates the health of resources that are allocated to containers.
pub(super) fn resources(status: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    for (list, of_spec) in LISTS {
        let containers = by_name(&spec.get(of_spec));
        for one in status.get(list).items() {
            let given = one.get("allocatedResourcesStatus");
            if list == DEBUGGING {
                if !given.is_empty() {
                    errors.add(|| given.forbidden("must not be specified in container status"));
                }
                continue;
            }
            for resource in given.items() {
                if let Some(container) = containers.get(one.get("name").text()) {
                    is_asked_for(&resource.get("name"), container, errors);
                }
                health(&resource.get("resources"), errors);
            }
        }
    }
}

/// The name must be that of a resource request of the container, or of one of its claims.
fn is_asked_for(name: &Field<'_>, container: &Field<'_>, errors: &mut FieldErrors) {
    let resources = container.get("resources");
    let Some(claim) = name.text().strip_prefix("claim:") else {
        if resources.get("requests").value().get(name.text()).is_none() {
            errors.add(|| name.invalid("must match one of the container's resource requests"));
        }
        return;
    };
    let is_it = |own: Field<'_>| match (own.get("name").text(), own.get("request").text()) {
        (name, "") => claim == name,
        (name, request) => claim.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')) == Some(request),
    };
    if !resources.get("claims").items().any(is_it) {
        errors.add(|| {
            name.invalid(
                "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
                 'claim:<claimName>' if request is empty",
            )
        });
    }
}

fn health(list: &Field<'_>, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for one in list.items() {
        let (health, message, id) = (one.get("health"), one.get("message"), one.get("resourceID"));
        if !HEALTH.contains(&health.text()) {
            errors.add(|| health.not_supported(&HEALTH));
        }
        if message.is_set() && message.text().is_empty() {
            errors.add(|| message.required("must be non-empty if specified"));
        } else if i64::try_from(message.text().len()).is_ok_and(|length| length > LONGEST_MESSAGE) {
            errors.add(|| message.too_long(LONGEST_MESSAGE));
        }
        if !seen.insert(id.text()) {
            errors.add(|| id.duplicate());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(check: impl Fn(&mut FieldErrors)) -> Vec<String> {
        let mut errors = FieldErrors::default();
        check(&mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn what_ended_goes_on_where_something_starts_it() {
        let ended = |code: i64| json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}]});
        let now = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
        let refused = |spec: &Value, code: i64| {
            let (now, before, spec) = (Field::root(&now), ended(code), Field::root(spec));
            !told(|errors| states(&now, &Field::root(&before), &spec, errors)).is_empty()
        };
        let pod = |policy: &str, own: Value| {
            let mut container = own;
            container["name"] = json!("c");
            json!({"restartPolicy": policy, "containers": [container]})
        };
        let rule = json!({"restartPolicy": "Never", "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]});
        for (spec, code, expected) in [
            (pod("Always", json!({})), 1, false),
            (pod("OnFailure", json!({})), 1, false),
            (pod("OnFailure", json!({})), 0, true),
            (pod("Never", json!({})), 1, true),
            (pod("Never", json!({"restartPolicy": "Always"})), 0, false),
            (pod("Always", rule.clone()), 42, false),
            (pod("Always", rule), 1, true),
            // A container that is not in the specification is never restarted.
            (json!({"restartPolicy": "Always", "containers": [{"name": "d"}]}), 1, true),
        ] {
            assert_eq!(refused(&spec, code), expected, "{spec} {code}");
        }
    }

    #[test]
    fn health_is_of_what_was_asked_for() {
        let spec = json!({"containers": [{"name": "c", "resources":
            {"requests": {"example.com/gpu": "1"}, "claims": [{"name": "a", "request": "r"}, {"name": "b"}]}}]});
        let given = |name: &str, health: Value| json!({"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": name, "resources": health}]}]});
        let of = |status: &Value| told(|errors| resources(&Field::root(status), &Field::root(&spec), errors));
        for name in ["example.com/gpu", "claim:a/r", "claim:b"] {
            assert_eq!(
                of(&given(name, json!([{"resourceID": "1", "health": "Healthy"}]))),
                Vec::<String>::new()
            );
        }
        let at = "containerStatuses[0].allocatedResourcesStatus[0]";
        assert_eq!(
            of(&given(
                "cpu",
                json!([{"resourceID": "1", "health": "Ill", "message": ""}, {"resourceID": "1", "health": "Unknown"}])
            )),
            [
                format!(
                    "{at}.name: Invalid value: \"cpu\": must match one of the container's resource requests"
                ),
                format!(
                    "{at}.resources[0].health: Unsupported value: \"Ill\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\""
                ),
                format!("{at}.resources[0].message: Required value: must be non-empty if specified"),
                format!("{at}.resources[1].resourceID: Duplicate value: \"1\""),
            ]
        );
        assert!(of(&given("claim:a", json!([])))[0].contains("resource claims in a format"));
    }
}
