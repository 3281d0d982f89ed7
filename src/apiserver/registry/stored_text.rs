//! What the store keeps of an object, where that is what the caller sees: answers are made of such texts without an object
//! being parsed or written again.

use serde_json::Value;

use super::{Registry, storage_version};
use crate::call::Call;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::store::Kept;

/// The first two members of a document of a built-in kind.
pub(super) fn type_members(kind: &str, version: &str) -> String {
    format!("\"kind\":{},\"apiVersion\":{}", Value::from(kind), Value::from(version))
}

/// How the text of an object begins that is stored in the version it is read in.
pub(super) fn beginning(info: &ResourceInfo) -> String {
    format!("{{{},", type_members(&info.kind, &info.api_version()))
}

impl Registry {
    /// The object as it is stored, where its text is the JSON that [`Self::get`] answers with.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(crate) fn get_stored(&self, call: &Call, name: &str) -> Result<Option<Kept>, Refusal> {
        if !storage_version::is_read_as_stored(call) || call.scale().is_some() {
            return Ok(None);
        }
        let kept = self.store.kept(&call.key(name)).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        let is_so = kept.object.text().starts_with(beginning(&call.info).as_bytes());
        Ok(is_so.then_some(kept))
    }
}
