//! What policies that change objects ask of the kinds that are served: merging, decoding and defaults.

use std::sync::Arc;

use admit_policy::{GroupVersionKind, Reason, Status, StatusCause, StatusDetails, Unmade};
use serde_json::Value;

use super::{Registry, kinds};
use crate::codec::{recheck, recheck_kind};
use crate::managed_fields::configuration::{MergeError, merged};
use crate::managed_fields::schema::builtin;
use crate::managed_fields::typed::Typing;
use crate::resources::{ResourceInfo, ResourceTable};

impl Registry {
    /// Whether anything is served in the group and version of the kind, which is as far as upstream looks.
    pub(super) fn knows(&self, kind: &GroupVersionKind) -> bool {
        let is_its = |row: &Arc<ResourceInfo>| row.group == kind.group && row.version == kind.version;
        self.served().table.rows().iter().any(is_its)
    }

    /// `live` with what a policy sets.
    ///
    /// # Errors
    /// When the schema of the kind does not allow that.
    pub(super) fn merge(
        &self,
        kind: &GroupVersionKind,
        live: &Value,
        configuration: &Value,
    ) -> Result<Value, Unmade> {
        let served = self.served();
        let GroupVersionKind { group, version, kind } = kind;
        let info = served.table.find_kind(group, version, kind);
        let custom = info.filter(|info| !info.builtin).and_then(|info| served.custom_version(info));
        let typing = match &custom {
            Some(custom) => Some(Typing { schema: &custom.typing.0, root: custom.typing.1 }),
            None => typed(group, version, kind),
        };
        let made = typing
            .ok_or(MergeError::Untyped { group, version, kind })
            .and_then(|typing| merged(typing, live, configuration));
        made.map_err(|error| Unmade::Failed(error.to_string()))
    }

    /// An object that a policy changed, as it is read. What a definition does not know is dropped later, with what webhooks
    /// set.
    ///
    /// # Errors
    /// When it is none of its kind any longer; with `strict` also when it has fields that the kind has not.
    pub(super) fn settle(
        &self,
        kind: &GroupVersionKind,
        mut object: Value,
        strict: bool,
    ) -> Result<Value, Unmade> {
        let served = self.served();
        let info = served.table.find_kind(&kind.group, &kind.version, &kind.kind);
        if let Some(custom) = info.filter(|info| !info.builtin).and_then(|info| served.custom_version(info)) {
            custom.fill(&mut object);
            return Ok(object);
        }
        settle(&served.table, kind, object, strict)
    }
}

/// The same of a built-in kind.
pub(super) fn settle(
    table: &ResourceTable,
    kind: &GroupVersionKind,
    object: Value,
    strict: bool,
) -> Result<Value, Unmade> {
    let GroupVersionKind { group, version, kind } = kind;
    let info = table.find_kind(group, version, kind);
    let read = match info {
        Some(info) => recheck(info, None, object),
        None => recheck_kind((group, version, kind), object),
    };
    let read = read.map_err(|why| unread(why.to_string(), strict))?;
    if strict && !read.strict.is_empty() {
        return Err(unread(format!("strict decoding error: {}", read.strict.join(", ")), true));
    }
    let mut object = read.object;
    if let Some(info) = info {
        kinds::default_unsent(info, &mut object);
    }
    Ok(object)
}

/// The type of a built-in kind of objects: options of streams are none.
pub(super) fn typed(group: &str, version: &str, kind: &str) -> Option<Typing<'static>> {
    let (schema, root) = builtin(group, version, kind).filter(|_| !kind.ends_with("Options"))?;
    Some(Typing { schema, root })
}

/// What a patch makes that cannot be read is a fault of the server, whatever the failure policy is; what is merged is not.
fn unread(why: String, strict: bool) -> Unmade {
    if !strict {
        return Unmade::Failed(why);
    }
    let cause = StatusCause { reason: "".into(), message: why.clone(), field: String::new() };
    let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
    let status = Status::new(Reason::InternalError, format!("Internal error occurred: {why}"));
    Unmade::Refused(Box::new(status.with(details)))
}
