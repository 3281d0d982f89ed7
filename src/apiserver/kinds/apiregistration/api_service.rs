//! APIService: who serves a version of a group. Those that this server serves itself are available from the start.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use crate::kinds::field::Field;
use crate::kinds::{Habit, Naming, Request, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "APIService",
    habits: &[Habit::NeedsVersion],
    default: Some(default),
    stamp: Some(stamp),
    name: Some(Naming::Own(name)),
    validate: Some(validate),
    validate_update: Some(|service, _, errors| {
        still_named(service, errors);
        validate(service, errors);
    }),
    validate_status: Some(status),
    ..Strategy::PLAIN
};

const HIGHEST_GROUP_PRIORITY: i64 = 20_000;
const HIGHEST_VERSION_PRIORITY: i64 = 1_000;

fn default(_version: &str, service: &mut Value) {
    if let Some(target) = service.pointer_mut("/spec/service").filter(|target| target.is_object())
        && target.get("port").is_none_or(Value::is_null)
    {
        object::set_field(target, "port", Some(443.into()));
    }
}

fn stamp(service: &mut Value, request: &Request<'_>) {
    service["status"] = json!({});
    if service.pointer("/spec/service").is_none_or(Value::is_null) {
        service["status"]["conditions"] = json!([{
            "type": "Available", "status": "True", "lastTransitionTime": request.clock.stamp(), "reason": "Local",
            "message": "Local APIServices are always available"
        }]);
    }
}

fn name(object: &Value, name: &str, _is_prefix: bool) -> Vec<String> {
    let problems = NameRule::PathSegment.problems(name, false);
    let spec = Field::root(object).get("spec");
    let required = format!("{}.{}", spec.get("version").text(), spec.get("group").text());
    if !problems.is_empty() || name == required {
        return problems;
    }
    vec![format!("must be `spec.version+\".\"+spec.group`: {}", go::quote(&required))]
}

/// The name says what is served, which can be changed.
fn still_named(service: &Value, errors: &mut FieldErrors) {
    let own = Field::root(service).get("metadata").get("name");
    for problem in name(service, own.text(), false) {
        errors.add(|| own.invalid(problem));
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    if group.text().is_empty() {
        if version.text() != "v1" {
            errors.add(|| group.required("only v1 may have an empty group and it better be legacy kube"));
        }
    } else {
        group.named(NameRule::Subdomain, errors);
    }
    version.named(NameRule::Label1035, errors);
    for (name, highest) in
        [("groupPriorityMinimum", HIGHEST_GROUP_PRIORITY), ("versionPriority", HIGHEST_VERSION_PRIORITY)]
    {
        let priority = spec.get(name);
        let number = priority.integer().unwrap_or(0);
        if !(1..=highest).contains(&number) {
            errors.add(|| priority.invalid_as(number, format!("must be positive and less than {highest}")));
        }
    }
    target(&spec, errors);
}

fn target(spec: &Field<'_>, errors: &mut FieldErrors) {
    let (service, bundle, insecure) =
        (spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    if !service.is_set() {
        if !bundle.is_empty() {
            let length = go::json::bytes(bundle.text()).map_or(0, |bytes| bytes.len());
            let why = "local APIServices may not have a caBundle";
            errors.add(|| bundle.invalid_as(format!("{length} bytes").as_str(), why));
        }
        if insecure.flag() {
            errors.add(|| insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    for name in ["namespace", "name"] {
        if service.get(name).text().is_empty() {
            errors.add(|| service.get(name).required(""));
        }
    }
    let port = service.get("port");
    if port.integer().is_some_and(|port| !(1..=65_535).contains(&port)) {
        errors.add(|| port.invalid("port is not valid: must be between 1 and 65535, inclusive"));
    }
    if insecure.flag() && !bundle.is_empty() {
        errors.add(|| insecure.invalid("may not be true if caBundle is present"));
    }
}

fn status(object: &Value, _old: &Value, errors: &mut FieldErrors) {
    const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
    for condition in Field::root(object).get("status").get("conditions").items() {
        let status = condition.get("status");
        if !STATUSES.contains(&status.text()) {
            errors.add(|| status.not_supported(&STATUSES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn local_services_trust_nobody() {
        let service = json!({"spec": {"version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1001,
            "caBundle": "YWJj"}});
        assert_eq!(
            told(&STRATEGY, &service, None),
            [
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
                "spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a caBundle",
            ]
        );
        assert_eq!(name(&service, "v1.", false), Vec::<String>::new());
        assert_eq!(name(&service, "v1", false), ["must be `spec.version+\".\"+spec.group`: \"v1.\""]);
    }
}
