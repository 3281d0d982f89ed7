//! Checks that a patched object still is one of the resource's kind, as upstream's decoder finds it.
//!
//! A built-in object without a version is decoded into the internal type, whose fields have no names in JSON but those of its metadata.

use admit_apimachinery::go;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::codec::{self, recheck, recheck_kind};
use crate::object;
use crate::status::{Cause, Refusal, shown};

/// Builds the refusal of a patched object that cannot be decoded.
pub(super) fn refused(patched: &Value, why: &str) -> Refusal {
    refused_as(patched.to_string(), why)
}

pub(super) fn refused_as(what: String, why: &str) -> Refusal {
    let text = shown(&Value::String(what));
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        field: "patch".to_owned(),
        message: format!("Invalid value: {text}: {why}"),
    };
    Refusal::invalid_kind("", "", "", vec![cause])
}

/// Returns the object as it is decoded, and its fields that the decoder does not know.
///
/// # Errors
/// 422 for another kind or version.
pub(super) fn same_kind(
    call: &Call,
    name: &str,
    mut patched: Value,
) -> Result<(Value, Vec<String>), Refusal> {
    if !patched.is_object() {
        return Err(refused(&patched, &go::json::without_kind(&patched)));
    }
    if let Some(why) = codec::unnamed(&patched) {
        return Err(refused(&patched, &why));
    }
    let text = |field: &str| patched.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if api_version.matches('/').count() > 1 {
        return Err(refused(&patched, &format!("unexpected GroupVersion string: {api_version}")));
    }
    if !call.info.builtin {
        custom_kind(call, name, &patched, (kind, api_version))?;
        return Ok((patched, Vec::new()));
    }
    // A built-in object without a kind keeps its kind.
    let is_own = kind.is_empty() || kind == call.info.kind;
    if is_own && api_version == call.info.api_version() {
        return Ok((patched, Vec::new()));
    }
    if is_own && api_version.is_empty() {
        return Ok(from_internal(std::mem::take(object::map_of(&mut patched))));
    }
    Err(other_kind(call, &patched, (kind, api_version)))
}

/// Reads an object of an internal type.
fn from_internal(members: Map<String, Value>) -> (Value, Vec<String>) {
    let (mut metadata, mut unknown) = (Map::new(), Vec::new());
    for (name, value) in members {
        if codec::is_metadata(&name) {
            metadata.insert(name, value);
        } else if name != "kind" && name != "apiVersion" {
            unknown.push(codec::unknown_text(&name));
        }
    }
    let object = Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
    (Value::Object(object), unknown)
}

/// Builds the refusal of a built-in object of another kind or version.
fn other_kind(call: &Call, patched: &Value, (kind, api_version): (&str, &str)) -> Refusal {
    let info = &call.info;
    let kind = if kind.is_empty() { &info.kind } else { kind };
    if api_version.is_empty() {
        let why = match codec::is_registered(&info.api_version(), kind) {
            true => {
                let package = info.go_package();
                format!("converting ({package}.{kind}) to ({package}.{}): unknown conversion", info.kind)
            }
            false => format!(
                "no kind \"{kind}\" is registered for the internal version of group \"{}\" in scheme \"{}\"",
                info.group,
                codec::scheme_of(info)
            ),
        };
        return refused(patched, &why);
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // Decoded as what it says, and converted after that.
    match recheck_kind((group, version, kind), patched.clone()) {
        Err(why) => why.refusal(|why| refused(patched, &why)),
        Ok(_) => refused(patched, &codec::unlike_kind(info, kind, api_version)),
    }
}

/// Checks kind and version of a custom object.
fn custom_kind(
    call: &Call,
    name: &str,
    patched: &Value,
    (kind, api_version): (&str, &str),
) -> Result<(), Refusal> {
    if kind.is_empty() {
        return Err(refused(patched, &format!("Object 'Kind' is missing in '{patched}'")));
    }
    if api_version.is_empty() {
        return Err(match patched.get("apiVersion") {
            Some(Value::Null) => {
                refused(patched, ".apiVersion accessor error: <nil> is of the type <nil>, expected string")
            }
            _ => Refusal::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"),
        });
    }
    let expected = call.info.api_version();
    if (kind, api_version) == (call.info.kind.as_str(), &expected) {
        return Ok(());
    }
    // It is decoded before its kind is compared.
    recheck(&call.info, None, patched.clone()).map_err(|why| why.refusal(|why| refused(patched, &why)))?;
    let mut causes = Vec::new();
    if kind != call.info.kind {
        causes.push(Cause::invalid("kind", &kind.into(), &format!("must be {}", call.info.kind)));
    }
    if api_version != expected {
        causes.push(Cause::invalid("apiVersion", &api_version.into(), &format!("must be {expected}")));
    }
    Err(Refusal::invalid_kind(object::group_of(api_version), kind, name, causes))
}
