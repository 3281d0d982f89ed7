//! Finalizers that keep an object as long as it is used: the admission plugin `StorageObjectInUseProtection`.

use serde_json::Value;

use crate::object;

/// Adds the finalizer, if it is not there yet.
pub(crate) fn add(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<Value> = object::finalizers(object).into_iter().map(Value::from).collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.into());
        object::set_meta(object, "finalizers", Some(finalizers.into()));
    }
}
