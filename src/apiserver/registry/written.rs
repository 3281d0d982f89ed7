//! Normalizes any object that is written: it gets the namespace of the path, and what admission changed is decoded
//! as if a client had sent it.

use serde_json::{Value, json};

use super::kinds;
use crate::admission::Mutated;
use crate::call::Call;
use crate::codec::recheck;
use crate::managed_fields::managers;
use crate::object;
use crate::resources::Scope;
use crate::status::Refusal;
use crate::validation::metadata;

/// Decodes what admission made of the object `before`, as if a client had sent it.
pub(super) fn remade(call: &Call, before: &Value, changed: Mutated) -> Result<Value, Refusal> {
    let mut made = changed.object;
    keep_readable_managers(call, before, &mut made);
    let mut object = match &call.custom {
        Some(custom) => {
            object::set_field(&mut made, "kind", Some(call.info.kind.as_str().into()));
            object::set_field(&mut made, "apiVersion", Some(call.info.api_version().into()));
            custom.read_made(&mut made);
            made
        }
        None => {
            let received = recheck(&call.info, None, made);
            let received = received.map_err(|why| why.refusal(Refusal::internal))?;
            if changed.is_rewritten {
                call.emptied.set(received.emptied);
            }
            received.object
        }
    };
    kinds::default(call, &mut object);
    if let Some(warning) = metadata::dedup_owners(&mut object) {
        call.warnings.add(warning);
    }
    belongs_to_path(call, &mut object)?;
    Ok(object)
}

/// Restores the previous managed fields, with a warning, if they cannot be decoded after admission. An empty
/// list counts as none.
fn keep_readable_managers(call: &Call, before: &Value, made: &mut Value) {
    fn entries(object: &Value) -> Option<&Value> {
        object::meta(object, "managedFields")
    }
    if entries(made) == entries(before) {
        return;
    }
    match managers::decode(made) {
        Err(why) => {
            call.warnings.add(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
                 admission controller; please fix your requests: {why}"
            ));
            object::set_meta(made, "managedFields", entries(before).cloned());
        }
        Ok(_) if entries(made).is_some_and(|entries| *entries == json!([])) => {
            object::set_meta(made, "managedFields", None);
        }
        Ok(_) => {}
    }
}

/// Sets the namespace of the path on the object; refuses an object that names another.
pub(crate) fn belongs_to_path(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    if call.info.scope == Scope::Cluster {
        object::set_meta(object, "namespace", None);
        return Ok(());
    }
    match object::namespace(object) {
        "" => object::set_meta(object, "namespace", Some(call.namespace.as_str().into())),
        own if own == call.namespace => {}
        _ if call.namespace.is_empty() => object::set_meta(object, "namespace", None),
        _ => {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}
