//! Reads objects as stored text, where that equals what the caller sees: responses are built without
//! parsing and serializing objects.

use std::sync::Arc;

use serde_json::Value;

use super::{Registry, storage_version};
use crate::call::Call;
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::store::{Kept, Packed};

/// Returns the first two members of a document of a built-in kind.
pub(super) fn type_members(kind: &str, version: &str) -> String {
    format!("\"kind\":{},\"apiVersion\":{}", Value::from(kind), Value::from(version))
}

/// Returns the beginning of the text of an object that is stored in the version it is read in.
pub(super) fn beginning(info: &ResourceInfo) -> String {
    format!("{{{},", type_members(&info.kind, &info.api_version()))
}

/// Returns whether the text of a stored object is the JSON that the caller sees.
fn is_seen_as_stored(call: &Call, kept: &Kept) -> bool {
    storage_version::is_read_as_stored(call)
        && call.scale().is_none()
        && kept.object.text().starts_with(beginning(&call.info).as_bytes())
}

/// Returns what the store kept after the write of `object`, if that is still there and its text is the JSON that the caller sees.
pub(super) fn seen(call: &Call, kept: Option<Kept>, object: &Value) -> Option<Arc<Packed>> {
    let kept = kept.filter(|kept| is_seen_as_stored(call, kept))?;
    (object::resource_version(object) == kept.revision.to_string()).then_some(kept.object)
}

impl Registry {
    /// Returns the stored object if its text is the JSON that [`Self::get`] would return.
    ///
    /// # Errors
    /// 404 if it does not exist.
    pub(crate) fn get_stored(&self, call: &Call, name: &str) -> Result<Option<Kept>, Refusal> {
        if !storage_version::is_read_as_stored(call) || call.scale().is_some() {
            return Ok(None);
        }
        let kept = self.store.kept(&call.key(name)).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        Ok(Some(kept).filter(|kept| is_seen_as_stored(call, kept)))
    }
}
