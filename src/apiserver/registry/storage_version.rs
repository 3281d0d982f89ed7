//! Converts a stored object to the version of a request: the API version of its path, or either form of Events and
//! autoscalers.
//!
//! Objects are stored in the version that `ResourceInfo::storage_version` names; Events as core/v1. Conversions that
//! need a webhook are refused here: `converting` has done them before.

use std::borrow::Cow;
use std::sync::Arc;

use admit_apimachinery::go;
use admit_policy::crd::ConversionError;
use serde_json::{Map, Value};

use super::{autoscalers, kinds};
use crate::builtin::decode::rewritten;
use crate::builtin::{tables, through_store};
use crate::call::Call;
use crate::object;
use crate::resources::ResourceInfo;

/// Converts the stored object for the caller.
///
/// # Errors
/// If a webhook must convert it first.
pub(super) fn outgoing<'v>(call: &Call, stored: &'v Value) -> Result<Cow<'v, Value>, ConversionError> {
    if is_shown_as_it_is(call, stored) {
        return Ok(Cow::Borrowed(stored));
    }
    seen(call, object::copied(stored)).map(Cow::Owned)
}

fn is_shown_as_it_is(call: &Call, stored: &Value) -> bool {
    let version_differs = stored.get("apiVersion").and_then(Value::as_str) != Some(&call.info.api_version());
    !version_differs && call.custom.is_none() && !kinds::reads_otherwise(&call.info, stored)
}

fn seen(call: &Call, mut view: Value) -> Result<Value, ConversionError> {
    if kinds::reads_otherwise(&call.info, &view) {
        kinds::read(&call.info, &mut view);
        view = arranged(&call.info, view);
    }
    if is_regarding(&call.info) {
        view = canonical(&call.info.group, &call.info, regarding_event(&view));
    }
    if autoscalers::is_older(&call.info) {
        view = autoscalers::to_v1(&view);
        object::set_field(&mut view, "apiVersion", Some(call.info.api_version().into()));
        view = arranged(&call.info, view);
    }
    match &call.custom {
        Some(custom) => custom.read_stored(&mut view)?,
        None => object::set_field(&mut view, "apiVersion", Some(call.info.api_version().into())),
    }
    Ok(view)
}

/// Returns whether every object stored in the current version is shown to the caller as it is stored.
pub(super) fn is_read_as_stored(call: &Call) -> bool {
    let info = &call.info;
    info.builtin
        && call.custom.is_none()
        && !is_regarding(info)
        && !autoscalers::is_older(info)
        && !kinds::may_read_otherwise(info)
}

/// Like [`outgoing`], with an owned result. An unshared object is not copied, nor one that does not differ from the stored one.
///
/// # Errors
/// If a webhook must convert it first.
pub(super) fn shown(call: &Call, stored: Arc<Value>) -> Result<Arc<Value>, ConversionError> {
    if is_shown_as_it_is(call, &stored) {
        return Ok(stored);
    }
    match Arc::try_unwrap(stored) {
        Ok(stored) => seen(call, stored).map(Arc::new),
        Err(stored) => {
            let view = seen(call, object::copied(&stored))?;
            Ok(if view == *stored { stored } else { view.into() })
        }
    }
}

/// Converts the caller's object to its stored form.
///
/// # Errors
/// If a webhook must convert it first.
pub(super) fn incoming(call: &Call, mut object: Value) -> Result<Value, ConversionError> {
    let info = &*call.info;
    if let Some(custom) = &call.custom {
        custom.to_stored(&mut object, &info.storage_version)?;
    }
    if is_regarding(info) {
        object = canonical(info.internal_group(), info, core_event(&object));
    }
    if autoscalers::is_older(info) {
        object = autoscalers::to_v2(&object);
        // Stored objects get the defaults of their own version.
        kinds::default_as("v2", info, &mut object);
    }
    let api_version = if is_regarding(info) { info.storage_version.clone() } else { info.stored_as() };
    object::set_field(&mut object, "apiVersion", Some(api_version.into()));
    // The member reserves the place that the store fills in.
    object::set_meta(&mut object, "resourceVersion", Some("0".into()));
    Ok(arranged(info, object))
}

/// Orders the members of the object as they are shown: as declared, or by name in custom resources, whose
/// numbers are normalized as by the store.
pub(super) fn arranged(info: &ResourceInfo, object: Value) -> Value {
    if !info.builtin {
        return by_name(object);
    }
    let group = if is_regarding(info) && object.get("involvedObject").is_some() { "" } else { &info.group };
    let version =
        object.get("apiVersion").and_then(Value::as_str).and_then(|version| version.rsplit('/').next());
    let version = version.filter(|version| **version == info.storage_version).unwrap_or(&info.version);
    let Some(id) = tables().kind(group, version, &info.kind) else { return object };
    let mut typed = rewritten(tables(), id, object);
    through_store(tables(), id, &mut typed);
    typed
}

/// Returns the initial status of a built-in kind.
pub(super) fn empty_status(info: &ResourceInfo) -> Option<Value> {
    let id = tables().kind(&info.group, &info.version, &info.kind).filter(|_| info.builtin)?;
    let mut empty = rewritten(tables(), id, Value::Object(Map::new()));
    empty.get_mut("status").map(Value::take)
}

fn by_name(mut value: Value) -> Value {
    object::sort_members(&mut value, |number| *number = go::json::reread(number));
    value
}

/// Converts an object to another view or version of the same resource.
pub(super) fn converted(from: &ResourceInfo, to: &ResourceInfo, object: &Value) -> Value {
    let mut view = object.clone();
    if is_regarding(from) != is_regarding(to) {
        view = if is_regarding(to) {
            canonical(&to.group, to, regarding_event(object))
        } else {
            canonical(&to.group, to, core_event(object))
        };
    }
    match (autoscalers::is_older(from), autoscalers::is_older(to)) {
        (false, true) => view = autoscalers::to_v1(&view),
        (true, false) => view = autoscalers::to_v2(&view),
        _ => {}
    }
    object::set_field(&mut view, "apiVersion", Some(to.api_version().into()));
    view
}

pub(super) fn is_regarding(info: &ResourceInfo) -> bool {
    info.builtin && info.group == "events.k8s.io"
}

/// The (core/v1, events.k8s.io/v1) names of the same fields.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Adds the fields that this form always shows, and drops empty ones that it omits.
fn canonical(group: &str, info: &ResourceInfo, event: Value) -> Value {
    match tables().kind(group, &info.version, &info.kind) {
        Some(id) => rewritten(tables(), id, event),
        None => event,
    }
}

fn regarding_event(core: &Value) -> Value {
    renamed(core, |name| EVENT_FIELDS.iter().find(|pair| pair.0 == name).map(|pair| pair.1))
}

fn core_event(regarding: &Value) -> Value {
    renamed(regarding, |name| EVENT_FIELDS.iter().find(|pair| pair.1 == name).map(|pair| pair.0))
}

fn renamed(event: &Value, other_name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(members) = event else { return event.clone() };
    let mut out = Map::with_capacity(members.len());
    for (name, value) in members {
        out.insert(other_name(name).map_or_else(|| name.clone(), str::to_owned), value.clone());
    }
    Value::Object(out)
}
