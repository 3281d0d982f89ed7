//! What the verbs ask the rooms of the kinds, and the versions of definitions: defaults, fields that the server sets,
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

/// Whether a client may give the status together with the rest.
pub(super) fn status_is_kept(info: &ResourceInfo) -> bool {
    has(info, Habit::StatusIsKept)
}

/// Whether objects of this kind count the changes of their specification.
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

/// Whether two values of a field of a kind mean the same, where only what they mean is compared.
pub(super) fn alike(info: &ResourceInfo, field: &str, one: Option<&Value>, other: Option<&Value>) -> bool {
    let tables = tables();
    let id = info.builtin.then(|| tables.kind(&info.group, &info.version, &info.kind)).flatten();
    let Some(field) = id.and_then(|id| tables.field(id, field)) else { return one == other };
    let [one, other] = [one, other].map(|value| value.unwrap_or(&Value::Null));
    tables.alike_as(&field.kind, one, other)
}

/// Whether something empty that was sent is a change by itself, and nothing has taken its place in `new`.
pub(super) fn counts_emptied(call: &Call, new: &Value) -> bool {
    has(&call.info, Habit::CountsEmpty)
        && call.emptied.places().iter().any(|place| !place.is_metadata() && place.is_empty_in(new))
}

/// Whether PUT has to name the resourceVersion that it replaces.
pub(super) fn needs_resource_version(info: &ResourceInfo) -> bool {
    !info.builtin || has(info, Habit::NeedsVersion)
}

/// Fills in what a client may leave out: it counts as sent by the client.
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

/// Fills in what is read of a stored object, which has nothing empty in it any longer.
pub(super) fn default_stored(call: &Call, object: &mut Value) {
    if call.info.builtin && !call.emptied.places().is_empty() {
        default_as(&call.info.version, &call.info, object);
    }
}

/// Fills in what may be left out of a built-in object that is made anew, and has nothing empty in it.
pub(super) fn default_unsent(info: &ResourceInfo, object: &mut Value) {
    default_as(&info.version, info, object);
}

/// Fills in what a client may leave out of a built-in object in another version.
pub(super) fn default_as(version: &str, info: &ResourceInfo, object: &mut Value) {
    if info.builtin {
        fixed_defaults::fill(info, object);
    }
    if let Some(default) = strategy(info).and_then(|strategy| strategy.default) {
        default(version, object);
    }
}

/// Fills in a new object, after the metadata.
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

/// Brings a changed object into the form that is stored.
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

/// Reasons why nothing may be created now, whatever the object says.
pub(super) fn refuse_create(call: &Call, object: &Value) -> Result<(), Refusal> {
    if call.custom.as_ref().is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Refusal::forbidden(&call.info, object::name(object), why));
    }
    Ok(())
}

/// What is wrong with the object, and with the change where there is an old one. Where it lies is looked at if there are
/// objects to look at.
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

/// What is wrong with an object in its namespace.
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
        // An object of another kind is not looked at any further.
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

/// What is wrong with the metadata of a changed object, as often as upstream's validations find it.
fn of_change(call: &Call, object: &Value, old: &Value) -> Causes {
    let mut causes = Causes::default();
    let change = metadata::validate_update(object, old);
    causes.extend(change.clone());
    if call.subresource.is_none() {
        causes.extend(validation::before_change(&call.info, object, old));
    }
    // What is below is validated as a change alone.
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

/// Adds what a kind's own validation found, which looks at the metadata, too, and so did the one of every kind.
fn add_new(causes: &mut Causes, found: Causes) {
    let before: HashSet<Cause> = causes.iter().cloned().collect();
    causes.extend(found.into_iter().filter(|cause| !before.contains(cause)));
}

/// The refusal of an object for these causes; it names what kind the object says it is.
pub(super) fn invalid(call: &Call, object: &Value, name: &str, causes: Causes) -> Refusal {
    match object::kind(object) {
        kind if call.custom.is_some() => Refusal::invalid_kind(&call.info.group, kind, name, causes),
        _ if call.subresource == Some(Subresource::Scale) => {
            Refusal::invalid_kind("autoscaling", "Scale", name, causes)
        }
        _ => Refusal::invalid(&call.info, name, causes),
    }
}

/// Warnings that the object deserves although it is accepted: of what it did not have before.
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

/// How objects of the kind are read, where that is not as they are stored.
fn reading(info: &ResourceInfo) -> Option<Reading> {
    strategy(info).and_then(|strategy| strategy.reading)
}

/// Fills in what is not stored, but read.
pub(super) fn read(info: &ResourceInfo, object: &mut Value) {
    if let Some(reading) = reading(info).filter(|reading| (reading.differs)(object)) {
        (reading.read)(object);
    }
}

/// Whether what is read of the stored object is not all stored. It is asked of a new object before defaults are filled in:
/// what the server adds to the fields that are read from is in what is read then.
pub(super) fn reads_otherwise(info: &ResourceInfo, stored: &Value) -> bool {
    reading(info).is_some_and(|reading| (reading.differs)(stored))
}

/// Fills in what is read of the object, whether it differs or not.
pub(super) fn read_anew(info: &ResourceInfo, object: &mut Value) {
    if let Some(reading) = reading(info) {
        (reading.read)(object);
    }
}

/// Whether that can be so for an object of the kind.
pub(super) fn may_read_otherwise(info: &ResourceInfo) -> bool {
    reading(info).is_some()
}

/// Whether a terminating object has nothing left to wait for.
pub(super) fn is_finished(info: &ResourceInfo, object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    object::is_terminating(object)
        && object::finalizers(object).is_empty()
        && grace == 0
        && !is_held(info, object)
}

/// How long a deletion waits, in seconds; None: at once, without asking.
pub(super) fn grace_period(info: &ResourceInfo, object: &Value, asked: Option<i64>) -> i64 {
    let own = strategy(info).and_then(|strategy| strategy.grace_period);
    own.map_or(0, |grace_period| grace_period(object, asked))
}

/// Marks what DELETE marks beside the common metadata. Answers whether that was all: the kind ends in a way of its own.
pub(super) fn mark_deleted(call: &Call, object: &mut Value) -> bool {
    if let Some(mark) = strategy(&call.info).and_then(|strategy| strategy.mark_deleted) {
        mark(object, &call.clock);
    }
    has(&call.info, Habit::EndsByItself)
}

/// Whether something beside `metadata.finalizers` holds the object.
pub(super) fn is_held(info: &ResourceInfo, object: &Value) -> bool {
    strategy(info).and_then(|strategy| strategy.is_held).is_some_and(|is_held| is_held(object))
}
