//! GET of one object.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Registry, views};
use crate::status::Refusal;

impl Registry {
    /// # Errors
    /// 404 when there is none, 500 for one that a webhook would have to convert.
    pub fn get(&self, call: &Call, name: &str) -> Result<Arc<Value>, Refusal> {
        let stored = self.store.get(&call.key(name)).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        let view = views::shown(call, stored.object)?;
        Ok(call.scale().map(|paths| paths.scale_of(&view).into()).unwrap_or(view))
    }
}
