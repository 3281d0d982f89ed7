//! Values as the API server holds them inside, which is how some of its errors show them.

use serde_json::Value;

use crate::builtin::{internal, tables};
use crate::kinds::field::Field;

/// The part in its internal form; `name` is its published type (`io.k8s.api.apps.v1.DeploymentStrategy`).
pub(crate) fn shown(part: &Field<'_>, name: &str) -> Value {
    let id = tables().by_openapi_name(name);
    id.map(|id| internal(tables(), id, part.value())).unwrap_or_default()
}
