//! PersistentVolumeClaims. Read from pkg/apis/core/validation, pkg/api/persistentvolumeclaim and
//! pkg/registry/core/persistentvolumeclaim of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use serde_json::{Value, json};

use crate::kinds::field::Field;
use crate::kinds::shared::amount::{self, Amount};
use crate::kinds::shared::claim::specification;
use crate::kinds::shared::defaults::{set_absent, set_phase};
use crate::kinds::shared::{inside, resource_names};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "PersistentVolumeClaim",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    default: Some(default),
    prepare_create: Some(prepare_create),
    prepare_update: Some(prepare_update),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

fn default(_: &str, claim: &mut Value) {
    set_phase(claim, "Pending");
    set_absent(&mut claim["spec"], &[("volumeMode", "Filesystem".into())]);
}

fn prepare_create(claim: &mut Value) {
    claim["status"] = json!({"phase": "Pending"});
    drop_foreign_source(claim, None);
    keep_old_sources(claim, None);
    agree_on_source(claim);
}

fn prepare_update(claim: &mut Value, old: &Value) {
    drop_foreign_source(claim, Some(old));
    keep_old_sources(claim, Some(old));
    agree_on_source(claim);
}

/// Whether there is a source in the field.
fn has_source(claim: &Value, field: &str) -> bool {
    claim.get("spec").and_then(|spec| spec.get(field)).is_some_and(|source| !source.is_null())
}

/// A source in another namespace is dropped, as long as the feature is off, but where there was some before.
fn drop_foreign_source(claim: &mut Value, old: Option<&Value>) {
    let namespace = claim.pointer("/spec/dataSourceRef/namespace").and_then(Value::as_str);
    let in_use = old.is_some_and(|old| has_source(old, "dataSourceRef"));
    if !in_use && namespace.is_some_and(|namespace| !namespace.is_empty()) {
        object::set_field(&mut claim["spec"], "dataSourceRef", None);
    }
}

/// The older field takes claims and snapshots only where the newer one is not given; other sources are dropped from it,
/// but where there was some before.
fn keep_old_sources(claim: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| has_source(old, "dataSource")) || has_source(claim, "dataSourceRef") {
        return;
    }
    let Some(source) = claim.pointer("/spec/dataSource") else { return };
    let text = |field: &str| source.get(field).and_then(Value::as_str).unwrap_or_default();
    let known = [("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io")];
    if !known.contains(&(text("kind"), text("apiGroup"))) {
        object::set_field(&mut claim["spec"], "dataSource", None);
    }
}

/// The older and the newer field say the same where only one of them is given.
fn agree_on_source(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec") else { return };
    let of = |spec: &Value, field: &str| spec.get(field).filter(|source| !source.is_null()).cloned();
    match (of(spec, "dataSource"), of(spec, "dataSourceRef")) {
        (Some(source), None) => object::set_field(spec, "dataSourceRef", Some(source)),
        (None, Some(mut source))
            if source.get("namespace").and_then(Value::as_str).is_none_or(str::is_empty) =>
        {
            object::set_field(&mut source, "namespace", None);
            object::set_field(spec, "dataSource", Some(source));
        }
        _ => {}
    }
}

fn validate(claim: &Value, errors: &mut FieldErrors) {
    specification(&Field::root(claim).get("spec"), false, errors);
}

fn validate_update(claim: &Value, old: &Value, errors: &mut FieldErrors) {
    let (new, was) = (Field::root(claim).get("spec"), Field::root(old).get("spec"));
    let any_group =
        ["dataSource", "dataSourceRef"].iter().any(|source| was.get(source).get("apiGroup").is_set());
    specification(&new, any_group, errors);
    let annotation = |claim| object::meta_map(claim, "annotations").find(|(key, _)| *key == CLASS_ANNOTATION);
    let (new_class, old_class) =
        (annotation(claim).map(|(_, class)| class), annotation(old).map(|(_, class)| class));
    let named = new.get("storageClassName");
    let is_named_now = named.is_set() && !was.get("storageClassName").is_set();
    let is_moved = is_named_now
        && old_class == Some(named.text())
        && new_class.is_none_or(|class| Some(class) == old_class);
    if !is_moved && new_class != old_class {
        let place = Field::root(claim).get("metadata").get("annotations").key(CLASS_ANNOTATION);
        errors.add(|| place.invalid_as(new_class.unwrap_or_default(), "field is immutable"));
    }
    let may_be_named = is_named_now && old_class.is_none_or(|class| class == named.text());
    unchanged(claim, old, is_moved || may_be_named, errors);
    size(claim, old, errors);
    Field::root(claim)
        .get("volumeMode")
        .with(new.get("volumeMode").value())
        .immutable(&was.get("volumeMode"), errors);
    let (attributes, before) = (new.get("volumeAttributesClassName"), was.get("volumeAttributesClassName"));
    // A class stays once a volume has had one.
    let had = Field::root(old).get("status").get("currentVolumeAttributesClassName").is_set();
    if had && attributes.is_empty() && attributes.value() != before.value() {
        let to = if attributes.is_set() { "empty string" } else { "nil" };
        errors.add(|| {
            attributes.forbidden(format!(
                "update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
            ))
        });
    }
}

/// What is claimed stays, but for the volume, which is found once, the class, if it may be named now, the size of a
/// bound claim, and the class of attributes.
fn unchanged(claim: &Value, old: &Value, may_be_named: bool, errors: &mut FieldErrors) {
    let copy = |claim: &Value| {
        claim.get("spec").filter(|spec| spec.is_object()).cloned().unwrap_or_else(|| json!({}))
    };
    let (mut new, mut was) = (copy(claim), copy(old));
    let take =
        |from: &Value, to: &mut Value, field: &str| object::set_field(to, field, from.get(field).cloned());
    if was.get("volumeName").and_then(Value::as_str).is_none_or(str::is_empty) {
        take(&new, &mut was, "volumeName");
    }
    if may_be_named {
        take(&was, &mut new, "storageClassName");
    }
    let is_bound = claim.pointer("/status/phase").is_some_and(|phase| phase == "Bound");
    if is_bound {
        take(&was, &mut new, "volumeAttributesClassName");
    }
    if is_bound
        && let Some(requests) = new.pointer_mut("/resources/requests").filter(|requests| requests.is_object())
    {
        let size = was.pointer("/resources/requests/storage").cloned().unwrap_or_else(|| "0".into());
        object::set_field(requests, "storage", Some(size));
    }
    const NAME: &str = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
    if inside::alike(NAME, &new, &was) {
        return;
    }
    let shown = |spec: &Value| inside::shown(NAME, spec);
    let root = Field::root(claim);
    let sent = shown(&root.get("spec").with(&new).as_sent());
    let difference = inside::difference(&shown(&was), &sent);
    let why = format!(
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
         claims\n{difference}"
    );
    errors.add(|| root.get("spec").forbidden(why));
}

/// A claim may become smaller as long as it is larger than what it has.
fn size(claim: &Value, old: &Value, errors: &mut FieldErrors) {
    let requested = Field::root(claim).get("spec").get("resources").get("requests").get("storage");
    let before = old.pointer("/spec/resources/requests/storage").unwrap_or(&Value::Null);
    let has = old.pointer("/status/capacity/storage").unwrap_or(&Value::Null);
    let asked = Amount::of(&requested);
    if asked.compare(&Amount::read(before)).is_lt() && asked.compare(&Amount::read(has)).is_le() {
        errors.add(|| requested.forbidden("field can not be less than status.capacity"));
    }
}

fn validate_status(claim: &Value, _: &Value, errors: &mut FieldErrors) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let root = Field::root(claim);
    if root.get("spec").get("accessModes").is_empty() {
        let place = root.get("Spec").get("accessModes");
        errors.add(|| place.required(""));
    }
    let status = root.get("status");
    status.get("capacity").entries().for_each(|(_, amount)| amount::basic(&amount, errors));
    let place = status.get("allocatedResourceStatuses");
    for (resource, state) in status.get("allocatedResourceStatuses").entries() {
        resource_key(resource, &place, errors);
        if !STATES.contains(&state.text()) {
            let key = Value::from(resource);
            errors.add(|| place.with(&key).not_supported(&STATES));
        }
    }
    let allocated = status.get("allocatedResources");
    for (resource, amount) in allocated.entries() {
        if !resource_key(resource, &allocated, errors) {
            continue;
        }
        amount::basic(&amount, errors);
    }
}

/// The name of what a claim has: storage, or something of somebody else. Answers whether it is right.
fn resource_key(resource: &str, place: &Field<'_>, errors: &mut FieldErrors) -> bool {
    let problems = labels::key(resource);
    if problems.is_empty() && resource_names::is_native(resource) && resource != "storage" {
        let key = Value::from(resource);
        errors.add(|| place.with(&key).not_supported(&["storage"]));
        return false;
    }
    let is_right = problems.is_empty();
    for problem in problems {
        errors.add(|| place.invalid_as(resource, problem));
    }
    is_right
}

fn warnings(claim: &Value, _: Option<&Value>) -> Vec<String> {
    fractions(&Field::root(claim).get("spec"))
}

/// Storage has no parts of bytes, which the specification of a claim may ask for all the same.
pub(crate) fn fractions(spec: &Field<'_>) -> Vec<String> {
    let resources = spec.get("resources");
    let fraction = |side: &'static str| {
        let amount = resources.get(side).key("storage");
        let is_odd = amount.is_set() && !Amount::of(&amount).is_whole();
        is_odd.then(|| {
            format!(
                "{amount}: fractional byte value \"{}\" is invalid, must be an integer",
                Amount::of(&amount).text()
            )
        })
    };
    ["requests", "limits"].into_iter().filter_map(fraction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(spec: &Value, status: &Value) -> Value {
        let mut claim = json!({"spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "2Gi"}}},
            "status": status});
        object::map_of(&mut claim["spec"]).extend(spec.as_object().cloned().unwrap_or_default());
        claim
    }

    fn texts(check: impl Fn(&mut FieldErrors)) -> Vec<String> {
        let mut errors = FieldErrors::default();
        check(&mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn bound_claims_grow_and_recover() {
        let old = claim(&json!({}), &json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}));
        let sized =
            |size: &str| claim(&json!({"resources": {"requests": {"storage": size}}}), &old["status"]);
        for fine in ["3Gi", "1500Mi"] {
            assert_eq!(
                texts(|errors| validate_update(&sized(fine), &old, errors)),
                Vec::<String>::new(),
                "{fine}"
            );
        }
        assert_eq!(
            texts(|errors| validate_update(&sized("1Gi"), &old, errors)),
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
        );
        let found = claim(&json!({"volumeName": "v", "storageClassName": "c"}), &json!({}));
        assert_eq!(texts(|errors| validate_update(&found, &old, errors)), Vec::<String>::new());
    }

    #[test]
    fn sources_agree() {
        let reference = json!({"apiGroup": "g.example.com", "kind": "K", "name": "n"});
        let mut one = claim(&json!({"dataSourceRef": reference}), &json!({}));
        prepare_create(&mut one);
        assert_eq!(one["spec"]["dataSource"], reference);
        let other = claim(
            &json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
            "dataSourceRef": {"kind": "Pod", "name": "a"}}),
            &json!({}),
        );
        assert_eq!(
            texts(|errors| validate(&other, errors)),
            [
                "spec.dataSourceRef: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when referencing the \
                 default apiGroup",
                "spec: Invalid value: {}: must match dataSourceRef",
            ]
        );
    }

    #[test]
    fn states_of_resizing_are_known() {
        let odd = claim(&json!({}), &json!({"allocatedResourceStatuses": {"storage": "Odd"}}));
        assert_eq!(
            texts(|errors| validate_status(&odd, &odd, errors)),
            ["status.allocatedResourceStatuses: Unsupported value: \"storage\": supported values: \
              \"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", \"NodeResizeInProgress\", \
              \"NodeResizeInfeasible\", \"NodeResizePending\""]
        );
    }
}
