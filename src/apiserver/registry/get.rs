//! Implements GET: reads one object.

use std::sync::Arc;

use serde_json::Value;

use super::{Registry, storage_version};
use crate::call::Call;
use crate::status::Refusal;

impl Registry {
    /// # Errors
    /// 400 for an impossible name, 404 if it does not exist, 500 if it cannot be converted.
    pub(crate) async fn get(&self, call: &Call, name: &str) -> Result<Arc<Value>, Refusal> {
        call.check_name(name)?;
        let stored = self.store.get(&call.key(name)).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        Ok(scaled(call, self.shown(call, stored.object).await?))
    }

    /// Like [`Self::get`], for a built-in kind, which no webhook converts.
    ///
    /// # Errors
    /// 400 for an impossible name, 404 if it does not exist.
    pub(crate) fn get_builtin(&self, call: &Call, name: &str) -> Result<Arc<Value>, Refusal> {
        call.check_name(name)?;
        let stored = self.store.get(&call.key(name)).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        Ok(scaled(call, storage_version::shown(call, stored.object)?))
    }
}

fn scaled(call: &Call, view: Arc<Value>) -> Arc<Value> {
    call.scale().map(|paths| paths.scale_of(&view).into()).unwrap_or(view)
}
