//! What is made of any object that is written: it belongs to the namespace of the path, and what admission changed is read
//! as if a client had sent it.

use serde_json::Value;

use super::kinds;
use crate::admission::Mutated;
use crate::call::Call;
use crate::codec::recheck;
use crate::object;
use crate::resources::Scope;
use crate::status::Refusal;
use crate::validation::metadata;

/// An object that plugins, policies or webhooks changed, in the form of one that a client sent.
pub(super) fn remade(call: &Call, changed: Mutated) -> Result<Value, Refusal> {
    let received = recheck(&call.info, call.custom.as_deref(), changed.object);
    let received = received.map_err(|why| why.refusal(Refusal::internal))?;
    if changed.is_rewritten {
        call.emptied.set(received.emptied);
    }
    let mut object = received.object;
    kinds::default(call, &mut object);
    if let Some(warning) = metadata::dedup_owners(&mut object) {
        call.warnings.add(warning);
    }
    Ok(object)
}

/// The namespace of the path is the object's; an object that names another does not belong there.
pub(crate) fn belongs_to_path(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    if call.info.scope == Scope::Cluster {
        object::set_meta(object, "namespace", None);
        return Ok(());
    }
    match object::namespace(object) {
        "" => object::set_meta(object, "namespace", Some(call.namespace.as_str().into())),
        own if own == call.namespace => {}
        _ => {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}
