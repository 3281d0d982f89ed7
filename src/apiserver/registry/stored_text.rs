//! Reads objects as stored text, where that equals what the caller sees: responses are built without
//! parsing and serializing objects.

use serde_json::Value;

use super::{Registry, storage_version};
use crate::call::Call;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::store::Kept;

/// Returns the first two members of a document of a built-in kind.
pub(super) fn type_members(kind: &str, version: &str) -> String {
    format!("\"kind\":{},\"apiVersion\":{}", Value::from(kind), Value::from(version))
}

/// Returns the beginning of the text of an object that is stored in the version it is read in.
pub(super) fn beginning(info: &ResourceInfo) -> String {
    format!("{{{},", type_members(&info.kind, &info.api_version()))
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
        let is_so = kept.object.text().starts_with(beginning(&call.info).as_bytes());
        Ok(is_so.then_some(kept))
    }
}
