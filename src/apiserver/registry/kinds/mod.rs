//! Calls what is specific to a built-in kind or a CRD version for the verbs: defaults, fields that the server sets,
//! validation, warnings, deletion.

mod fixed_defaults;

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::autoscalers;
use crate::builtin::tables;
use crate::call::Call;
use crate::kinds::shared::pod_spec;
use crate::kinds::{Habit, Placed, Reading, Request, Strategy, has, strategy};
use crate::object;
use crate::objects::Objects;
use crate::resources::{ResourceInfo, Subresource};
use crate::status::{Cause, Causes, Refusal};
use crate::store::Key;
use crate::validation::{self, metadata};

/// Returns whether a client may set the status together with the rest.
pub(super) fn status_is_kept(info: &ResourceInfo) -> bool {
    has(info, Habit::StatusIsKept)
}

/// Returns whether objects of this kind have a generation that counts changes of their spec.
pub(super) fn has_generation(info: &ResourceInfo) -> bool {
    const COUNTED: [&str; 24] = [
        "pods",
        "replicationcontrollers",
        "jobs",
        "cronjobs",
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "poddisruptionbudgets",
        "customresourcedefinitions",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "networkpolicies",
        "ingresses",
        "ingressclasses",
        "endpointslices",
        "flowschemas",
        "prioritylevelconfigurations",
        "resourceslices",
        "podtemplates",
    ];
    !info.builtin || COUNTED.contains(&info.plural.as_str())
}

/// Returns whether two values of a field are equal, by meaning for fields of built-in kinds.
pub(super) fn alike(info: &ResourceInfo, field: &str, one: Option<&Value>, other: Option<&Value>) -> bool {
    let tables = tables();
    let id = info.builtin.then(|| tables.kind(&info.group, &info.version, &info.kind)).flatten();
    let Some(field) = id.and_then(|id| tables.field(id, field)) else { return one == other };
    let [one, other] = [one, other].map(|value| value.unwrap_or(&Value::Null));
    tables.alike_as(&field.kind, one, other)
}

/// Returns whether an empty value that was sent is a change by itself, and `new` still has it.
pub(super) fn counts_emptied(call: &Call, new: &Value) -> bool {
    has(&call.info, Habit::CountsEmpty)
        && call.emptied.places().iter().any(|place| !place.is_metadata() && place.is_empty_in(new))
}

/// Returns whether PUT must name the resourceVersion that it replaces.
pub(super) fn needs_resource_version(info: &ResourceInfo) -> bool {
    !info.builtin || has(info, Habit::NeedsVersion)
}

/// Sets the defaults of an object that a client sent; they count as sent by the client.
pub(super) fn default(call: &Call, object: &mut Value) {
    match &call.custom {
        Some(custom) => custom.fill(object),
        None => {
            call.emptied.put_back_for(object, |object| default_as(&call.info.version, &call.info, object));
            if autoscalers::is_older(&call.info) {
                *object = autoscalers::reread(object);
            }
        }
    }
}

/// Sets the defaults of a stored object, where empty values that were sent are gone.
pub(super) fn default_stored(call: &Call, object: &mut Value) {
    if call.info.builtin && !call.emptied.places().is_empty() {
        default_as(&call.info.version, &call.info, object);
    }
}

/// Sets the defaults of a built-in object that the server creates, which has no empty values.
pub(super) fn default_unsent(info: &ResourceInfo, object: &mut Value) {
    default_as(&info.version, info, object);
}

/// Sets the defaults of a built-in object in another version.
pub(super) fn default_as(version: &str, info: &ResourceInfo, object: &mut Value) {
    if info.builtin {
        fixed_defaults::fill(info, object);
    }
    if let Some(default) = strategy(info).and_then(|strategy| strategy.default) {
        default(version, object);
    }
}

/// Prepares a new object for storage, after its metadata is set.
pub(super) fn prepare_create(call: &Call, object: &mut Value) {
    if call.info.builtin {
        pod_spec::write_divisors(object);
        pod_spec::drop_switched_off(object, None);
    }
    if has_generation(&call.info) {
        object::set_meta(object, "generation", Some(1.into()));
    }
    if let Some(warnings) = strategy(&call.info).and_then(|strategy| strategy.warnings_before) {
        warnings(object).into_iter().for_each(|warning| call.warnings.add(warning));
    }
    if let Some(prepare) = strategy(&call.info).and_then(|strategy| strategy.prepare_create) {
        prepare(object);
    }
    if let Some(stamp) = strategy(&call.info).and_then(|strategy| strategy.stamp) {
        stamp(object, &Request { identity: &call.identity, clock: &call.clock });
    }
}

/// Prepares a changed object for storage.
pub(super) fn prepare_update(call: &Call, object: &mut Value, old: &Value) {
    if call.info.builtin {
        pod_spec::write_divisors(object);
        pod_spec::drop_switched_off(object, Some(old));
    }
    if let (None, Some(Strategy { stamp_change: Some(stamp), .. })) = (call.subresource, strategy(&call.info))
    {
        stamp(object, &call.clock);
    }
    match (call.subresource, strategy(&call.info)) {
        (None, Some(Strategy { prepare_update: Some(prepare), .. })) => prepare(object, old),
        (Some(Subresource::Status), Some(Strategy { prepare_status: Some(prepare), .. }))
        | (Some(Subresource::Approval), Some(Strategy { prepare_approval: Some(prepare), .. })) => {
            prepare(object, old, &call.clock);
        }
        (Some(Subresource::Finalize), Some(Strategy { prepare_finalize: Some(prepare), .. })) => {
            prepare(object)
        }
        _ => {}
    }
}

/// Refuses any creation while the definition is terminating.
pub(super) fn refuse_create(call: &Call, object: &Value) -> Result<(), Refusal> {
    if call.custom.as_ref().is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Refusal::forbidden(&call.info, object::name(object), why));
    }
    Ok(())
}

/// Validates the object, and the change if there is an old one. Checks that need the object's namespace run only with
/// `objects`.
pub(super) fn validate(
    call: &Call,
    objects: Option<&dyn Objects>,
    object: &Value,
    old: Option<&Value>,
) -> Causes {
    if autoscalers::is_older(&call.info) && call.subresource != Some(Subresource::Scale) {
        // What the older version keeps in annotations is judged, too.
        let old = old.map(autoscalers::to_v2);
        return call.emptied.shown_by(|| causes(call, objects, &autoscalers::to_v2(object), old.as_ref()));
    }
    let refused = objects.is_some_and(Objects::refuses_privileged);
    pod_spec::privileged::refused_if(refused, || call.emptied.shown_by(|| causes(call, objects, object, old)))
}

/// Runs the checks that depend on the object's namespace.
fn misplaced(call: &Call, objects: Option<&dyn Objects>, object: &Value, old: Option<&Value>) -> Causes {
    let judge = strategy(&call.info).and_then(|strategy| strategy.validate_placed);
    let Some((judge, objects)) = judge.zip(objects) else { return Causes::default() };
    let name = object::namespace(object).to_owned();
    let key = Key { resource: "namespaces".into(), namespace: String::new(), name };
    let namespace = objects.latest_object(&key);
    let namespace = namespace.as_ref().map(|stored| &*stored.object);
    let mut errors = FieldErrors::default();
    judge(&Placed { subresource: call.subresource, object, old, namespace }, &mut errors);
    errors.into_iter().map(|error| error.cause()).collect()
}

fn causes(call: &Call, objects: Option<&dyn Objects>, object: &Value, old: Option<&Value>) -> Causes {
    let status = call.subresource == Some(Subresource::Status);
    if let Some(custom) = call.custom.as_ref().filter(|custom| object::kind(object) != custom.info.kind) {
        // An object of another kind is not validated further.
        return custom.validate(object, old, status, (&[], &call.warnings));
    }
    let mut causes = match old {
        None => metadata::validate(&call.info, object),
        Some(_) => metadata::validate_replacing(&call.info, object),
    };
    if old.is_none() && has(&call.info, Habit::JudgedApart) {
        let found = validation::content(&call.info, object, None);
        return if found.is_empty() { causes } else { found };
    }
    if let Some(old) = old {
        causes.extend(of_change(call, object, old));
    }
    if let Some(custom) = &call.custom {
        let found = custom.validate(object, old, status, (&causes, &call.warnings));
        causes.extend(found);
        return causes;
    }
    causes.extend(misplaced(call, objects, object, old));
    if matches!(call.subresource, None | Some(Subresource::Scale | Subresource::Approval)) {
        causes.extend(validation::content(&call.info, object, old));
    }
    if let (
        Some(below @ (Subresource::EphemeralContainers | Subresource::Resize | Subresource::Finalize)),
        Some(old),
    ) = (call.subresource, old)
        && let Some(validate) = strategy(&call.info).and_then(|strategy| strategy.validate_below)
    {
        let mut errors = FieldErrors::default();
        validate(below, object, old, &mut errors);
        causes.extend(errors.into_iter().map(|error| error.cause()));
    }
    if let (true, Some(old), Some(strategy)) = (status, old, strategy(&call.info)) {
        causes.extend(strategy.status_errors(object, old).into_iter().map(|error| error.cause()));
    }
    if let (None, Some(compile)) =
        (call.subresource, strategy(&call.info).and_then(|strategy| strategy.compile))
    {
        add_new(&mut causes, compile(object, old));
    }
    if old.is_none() && causes.is_empty() {
        // The names fit into a path whatever the kind allows.
        causes.extend(metadata::validate_replacing(&call.info, object));
    }
    causes
}

/// Validates the metadata of a changed object, with each error as often as upstream reports it.
fn of_change(call: &Call, object: &Value, old: &Value) -> Causes {
    let mut causes = Causes::default();
    let change = metadata::validate_update(object, old);
    causes.extend(change.clone());
    if call.subresource.is_none() {
        causes.extend(validation::before_change(&call.info, object, old));
    }
    // These subresources are validated as a change only.
    let is_below = matches!(call.subresource, Some(Subresource::Status | Subresource::Finalize))
        && !has(&call.info, Habit::StatusAlike);
    let is_judged = !is_below || !has(&call.info, Habit::StatusUnjudged);
    if is_judged && (is_below || !has(&call.info, Habit::ChangeOnce)) {
        causes.extend(change);
    }
    let again = if is_below { 0 } else { validation::validated_again(&call.info) };
    if matches!(call.subresource, Some(Subresource::Status | Subresource::Finalize)) && is_judged {
        let times = if is_below { 1 } else { validation::times_of_change(&call.info) };
        causes.extend(validation::bare_finalizers(&call.info, object, times));
    }
    for _ in 0..again {
        causes.extend(metadata::validate(&call.info, object));
    }
    causes
}

/// Adds the errors of a kind's validation that the common validation has not found already.
fn add_new(causes: &mut Causes, found: Causes) {
    let before: HashSet<Cause> = causes.iter().cloned().collect();
    causes.extend(found.into_iter().filter(|cause| !before.contains(cause)));
}

/// Builds the refusal of an invalid object; it names the kind in the object.
pub(super) fn invalid(call: &Call, object: &Value, name: &str, causes: Causes) -> Refusal {
    match object::kind(object) {
        kind if call.custom.is_some() => Refusal::invalid_kind(&call.info.group, kind, name, causes),
        _ if call.subresource == Some(Subresource::Scale) => {
            Refusal::invalid_kind("autoscaling", "Scale", name, causes)
        }
        _ => Refusal::invalid(&call.info, name, causes),
    }
}

/// Adds warnings for what the object did not have before.
pub(super) fn warnings(call: &Call, object: &Value, old: Option<&Value>) {
    for warning in metadata::finalizer_warnings(&call.info, object, old) {
        call.warnings.add(warning);
    }
    let Some(strategy) = strategy(&call.info) else { return };
    let warnings = match call.subresource {
        None => strategy.warnings.map(|warnings| warnings(object, old)),
        Some(Subresource::Status) => strategy.status_warnings.map(|warnings| warnings(object)),
        Some(_) => None,
    };
    warnings.into_iter().flatten().for_each(|warning| call.warnings.add(warning));
}

/// Returns how objects of the kind are read, if they are not read as stored.
fn reading(info: &ResourceInfo) -> Option<Reading> {
    strategy(info).and_then(|strategy| strategy.reading)
}

/// Sets fields that are not stored, but computed when an object is read.
pub(super) fn read(info: &ResourceInfo, object: &mut Value) {
    if let Some(reading) = reading(info).filter(|reading| (reading.differs)(object)) {
        (reading.read)(object);
    }
}

/// Returns whether the stored object differs from what is read. For a new object it is called before defaults are set:
/// what the server adds to the source fields is part of what is read.
pub(super) fn reads_otherwise(info: &ResourceInfo, stored: &Value) -> bool {
    reading(info).is_some_and(|reading| (reading.differs)(stored))
}

/// Sets the fields computed on reading, whether they differ or not.
pub(super) fn read_anew(info: &ResourceInfo, object: &mut Value) {
    if let Some(reading) = reading(info) {
        (reading.read)(object);
    }
}

/// Returns whether objects of the kind can differ from what is read.
pub(super) fn may_read_otherwise(info: &ResourceInfo) -> bool {
    reading(info).is_some()
}

/// Returns whether a terminating object has nothing left to wait for.
pub(super) fn is_finished(info: &ResourceInfo, object: &Value) -> bool {
    let grace = object::meta(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    object::is_terminating(object)
        && object::finalizers(object).is_empty()
        && grace == 0
        && !is_held(info, object)
}

/// Returns the grace period of a deletion in seconds; 0 for kinds without one.
pub(super) fn grace_period(info: &ResourceInfo, object: &Value, asked: Option<i64>) -> i64 {
    let own = strategy(info).and_then(|strategy| strategy.grace_period);
    own.map_or(0, |grace_period| grace_period(object, asked))
}

/// Sets what DELETE changes beside the common metadata. Returns true if the kind has a termination of its own.
pub(super) fn mark_deleted(call: &Call, object: &mut Value) -> bool {
    if let Some(mark) = strategy(&call.info).and_then(|strategy| strategy.mark_deleted) {
        mark(object, &call.clock);
    }
    has(&call.info, Habit::EndsByItself)
}

/// Returns whether something beside `metadata.finalizers` blocks the removal.
pub(super) fn is_held(info: &ResourceInfo, object: &Value) -> bool {
    strategy(info).and_then(|strategy| strategy.is_held).is_some_and(|is_held| is_held(object))
}
