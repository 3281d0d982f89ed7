//! CertificateSigningRequest: a request by a user, which only its approvers decide, and whose specification stays.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::{Value, json};

use super::signature;
use crate::clock::Clock;
use crate::kinds::field::Field;
use crate::kinds::shared::signer_name;
use crate::kinds::{Habit, Naming, Request, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "CertificateSigningRequest",
    habits: &[Habit::DisownsAll, Habit::ObjectAgain, Habit::StatusAlike],
    name: Some(Naming::Own(|_, _, _| Vec::new())),
    stamp: Some(stamp),
    prepare_update: Some(keep_all),
    prepare_status: Some(prepare_status),
    prepare_approval: Some(prepare_approval),
    // The specification stays from the beginning, and so nobody owns what it was created with either.
    unowned: &["spec"],
    validate_create: Some(|object, errors| validate(object, Allowed::default(), errors)),
    validate_update: Some(update),
    validate_status: Some(status),
    ..Strategy::PLAIN
};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const SHORTEST_SECONDS: i64 = 600;
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// Conditions that are true where they are at all, and never go.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Whose request it is the server says.
fn stamp(object: &mut Value, request: &Request<'_>) {
    let who = request.identity;
    let spec = &mut object["spec"];
    spec["username"] = who.username.as_str().into();
    spec["groups"] = json!(who.groups);
    object::set_field(spec, "uid", (!who.uid.is_empty()).then(|| who.uid.as_str().into()));
    object::set_field(spec, "extra", (!who.extra.is_empty()).then(|| json!(who.extra)));
}

fn keep_all(object: &mut Value, old: &Value) {
    for half in ["spec", "status"] {
        object::set_field(object, half, old.get(half).cloned());
    }
}

/// Whoever signs leaves the decision alone: if it would change, all conditions stay.
fn prepare_status(object: &mut Value, old: &Value, clock: &Clock) {
    let (new, before) = (conditions_of(object), conditions_of(old));
    let count = |all: &[Value], kind: &str| all.iter().filter(|one| is_of(one, kind)).count();
    let is_kept = DECISIONS.iter().all(|kind| count(new, kind) == count(before, kind));
    let kept = if is_kept { preserved(new, before) } else { before.to_vec() };
    if !kept.is_empty() || object.pointer("/status/conditions").is_some() {
        object["status"]["conditions"] = kept.into();
    }
    set_times(object, old, clock);
}

fn prepare_approval(object: &mut Value, old: &Value, clock: &Clock) {
    set_times(object, old, clock);
}

fn conditions_of(object: &Value) -> &[Value] {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.map(Vec::as_slice).unwrap_or_default()
}

fn is_of(condition: &Value, kind: &str) -> bool {
    condition.get("type").and_then(Value::as_str) == Some(kind)
}

/// The new conditions, with the old ones in place of decisions.
fn preserved(new: &[Value], before: &[Value]) -> Vec<Value> {
    let mut approved = before.iter().filter(|one| is_of(one, "Approved"));
    let mut denied = before.iter().filter(|one| is_of(one, "Denied"));
    let mut old_of = |condition: &Value| match condition.get("type").and_then(Value::as_str) {
        Some("Approved") => approved.next(),
        Some("Denied") => denied.next(),
        _ => None,
    };
    new.iter().map(|condition| old_of(condition).unwrap_or(condition).clone()).collect()
}

/// Conditions tell when they were written last, and when their status came to be what it is.
fn set_times(object: &mut Value, old: &Value, clock: &Clock) {
    let is_absent = |condition: &Value, name: &str| condition.get(name).is_none_or(Value::is_null);
    let before = conditions_of(old);
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter(|condition| condition.is_object()) {
        if is_absent(condition, "lastUpdateTime") {
            object::set_field(condition, "lastUpdateTime", Some(clock.stamp().into()));
        }
        if is_absent(condition, "lastTransitionTime") {
            let mut same = before.iter().filter(|one| {
                ["type", "status"].iter().all(|name| one.get(name) == condition.get(name))
                    && !is_absent(one, "lastTransitionTime")
            });
            let time = same.next().and_then(|one| one.get("lastTransitionTime")).cloned();
            let time = time.unwrap_or_else(|| clock.stamp().into());
            object::set_field(condition, "lastTransitionTime", Some(time));
        }
    }
}

/// Rules that the stored request breaks already, and so may the new one.
#[derive(Clone, Copy, Debug, Default)]
struct Allowed {
    both_decisions: bool,
    legacy_signer: bool,
    repeated_types: bool,
    empty_types: bool,
    any_certificate: bool,
    repeated_usages: bool,
    unknown_usages: bool,
}

impl Allowed {
    fn of(new: &Value, old: &Value) -> Self {
        let (spec, status) = (Field::root(old).get("spec"), Field::root(old).get("status"));
        let types: Vec<&str> =
            status.get("conditions").items().map(|condition| condition.get("type").text()).collect();
        let usages: Vec<&str> = spec.get("usages").texts().collect();
        let certificate = |object| Field::root(object).get("status").get("certificate").text();
        Self {
            both_decisions: DECISIONS.iter().all(|kind| types.contains(kind)),
            legacy_signer: spec.get("signerName").text() == LEGACY_SIGNER,
            repeated_types: repeats(&types),
            empty_types: types.contains(&""),
            any_certificate: certificate(new) == certificate(old)
                || chain_problem(certificate(old)).is_some(),
            repeated_usages: repeats(&usages),
            unknown_usages: usages.iter().any(|usage| !USAGES.contains(usage)),
        }
    }
}

fn repeats(texts: &[&str]) -> bool {
    let mut seen = HashSet::new();
    !texts.iter().all(|text| seen.insert(*text))
}

/// Why a field of bytes holds no chain of certificates.
fn chain_problem(encoded: &str) -> Option<String> {
    signature::chain_problem(&decoded(encoded))
}

/// The text in a field of bytes.
fn decoded(encoded: &str) -> String {
    let bytes = go::json::bytes(encoded).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn validate(object: &Value, allowed: Allowed, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let request = spec.get("request");
    if let Some(problem) = signature::request_problem(&decoded(request.text())) {
        errors.add(|| request.invalid_as(&*request.as_sent(), problem));
    }
    usages(&spec.get("usages"), allowed, errors);
    let signer = spec.get("signerName");
    if signer.text() == LEGACY_SIGNER && !allowed.legacy_signer {
        errors.add(|| signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        signer_name::validate(&signer, errors);
    }
    let seconds = spec.get("expirationSeconds");
    if seconds.integer().is_some_and(|seconds| seconds < SHORTEST_SECONDS) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.add(|| seconds.invalid(why));
    }
    let status = Field::root(object).get("status");
    conditions(&status.get("conditions"), allowed, errors);
    let certificate = status.get("certificate");
    if !allowed.any_certificate
        && let Some(problem) = chain_problem(certificate.text())
    {
        errors.add(|| certificate.invalid_as("<certificate data>", problem));
    }
}

fn usages(usages: &Field<'_>, allowed: Allowed, errors: &mut FieldErrors) {
    if usages.is_empty() {
        errors.add(|| usages.required(""));
    }
    if !allowed.unknown_usages {
        for usage in usages.items().filter(|usage| !USAGES.contains(&usage.text())) {
            errors.add(|| usage.not_supported(&USAGES));
        }
    }
    if !allowed.repeated_usages {
        let mut seen = HashSet::new();
        for usage in usages.items().filter(|usage| !seen.insert(usage.text())) {
            errors.add(|| usage.duplicate());
        }
    }
}

fn conditions(conditions: &Field<'_>, allowed: Allowed, errors: &mut FieldErrors) {
    let mut types = HashSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.text().is_empty() && !allowed.empty_types {
            errors.add(|| kind.required(""));
        }
        let statuses: &[&str] =
            if LASTING.contains(&kind.text()) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.text().is_empty() {
            errors.add(|| status.required(""));
        } else if !statuses.contains(&status.text()) {
            errors.add(|| status.not_supported(statuses));
        }
        let opposite = match kind.text() {
            "Approved" => types.contains("Denied"),
            "Denied" => types.contains("Approved"),
            _ => false,
        };
        if opposite && !allowed.both_decisions {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.add(|| conditions.invalid_as(kind.text(), why));
        }
        if !types.insert(kind.text()) && !allowed.repeated_types {
            errors.add(|| kind.duplicate());
        }
    }
}

fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(object, Allowed::of(object, old), errors);
    lasting(object, old, errors);
}

/// What was decided stays decided.
fn lasting(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let conditions = |object| Field::root(object).get("status").get("conditions");
    for kind in LASTING {
        let count = |object| conditions(object).items().filter(|one| one.get("type").text() == kind).count();
        if count(object) < count(old) {
            let why = format!("updates may not remove a condition of type {}", go::quote(kind));
            errors.add(|| conditions(object).forbidden(why));
        }
    }
}

fn status(object: &Value, old: &Value, errors: &mut FieldErrors) {
    update(object, old, errors);
    let certificate = |object| Field::root(object).get("status").get("certificate");
    let before = certificate(old).text();
    if !before.is_empty() && certificate(object).text() != before {
        errors.add(|| certificate(object).forbidden("updates may not modify existing certificate content"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    fn request(spec: &Value, conditions: &Value) -> Value {
        json!({"spec": spec, "status": {"conditions": conditions}})
    }

    #[test]
    fn signers_are_of_a_domain() {
        let wrong = |signer: &str| {
            let spec = json!({"signerName": signer, "usages": ["any"]});
            told(&STRATEGY, &request(&spec, &json!([])), None).into_iter().skip(1).collect::<Vec<_>>()
        };
        assert!(wrong("example.com/a.b").is_empty());
        assert_eq!(
            wrong("example/a"),
            [
                "spec.signerName: Invalid value: \"example\": should be a domain with at least two segments separated \
                 by dots"
            ]
        );
        assert_eq!(
            wrong(LEGACY_SIGNER),
            [
                "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not \
                 allowed via this API version"
            ]
        );
    }

    #[test]
    fn decisions_last() {
        let condition = |kind: &str| json!({"type": kind, "status": "True"});
        let spec = json!({"signerName": "a.b/c", "usages": ["any"]});
        let of = |kinds: &[&str]| {
            request(&spec, &kinds.iter().map(|kind| condition(kind)).collect::<Vec<_>>().into())
        };
        let wrong = |new: &[&str], old: &[&str]| {
            told(&STRATEGY, &of(new), Some(&of(old))).into_iter().skip(1).collect::<Vec<_>>()
        };
        assert_eq!(
            wrong(&["Denied"], &["Approved", "Failed"]),
            [
                "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"",
                "status.conditions: Forbidden: updates may not remove a condition of type \"Failed\"",
            ]
        );
        assert_eq!(
            wrong(&["Approved", "Denied"], &["Approved"]),
            [
                "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive"
            ]
        );
        assert!(wrong(&["Approved", "Denied"], &["Approved", "Denied"]).is_empty());
    }
}
