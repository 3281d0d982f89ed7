//! Provides the schemas of served kinds to mutating policies: merging, decoding and defaults.

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
    /// Returns whether the kind's group and version are served, which is all that upstream checks.
    pub(super) fn knows(&self, kind: &GroupVersionKind) -> bool {
        let is_its = |row: &Arc<ResourceInfo>| row.group == kind.group && row.version == kind.version;
        self.served().table.rows().iter().any(is_its)
    }

    /// Merges a policy's apply configuration into `live`.
    ///
    /// # Errors
    /// If the schema of the kind does not allow it.
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

    /// Decodes an object that a policy changed. Fields that a CRD does not define are dropped later, with those that webhooks
    /// set.
    ///
    /// # Errors
    /// If it cannot be decoded as its kind; with `strict` also if it has unknown fields.
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

/// Decodes an object of a built-in kind that a policy changed.
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

/// Returns the type of a built-in kind; None for the options of streams.
pub(super) fn typed(group: &str, version: &str, kind: &str) -> Option<Typing<'static>> {
    let (schema, root) = builtin(group, version, kind).filter(|_| !kind.ends_with("Options"))?;
    Some(Typing { schema, root })
}

/// Returns the error of an undecodable result: of a patch a server error whatever the failure policy is, of a merge not.
fn unread(why: String, strict: bool) -> Unmade {
    if !strict {
        return Unmade::Failed(why);
    }
    let cause = StatusCause { reason: "".into(), message: why.clone(), field: String::new() };
    let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
    let status = Status::new(Reason::InternalError, format!("Internal error occurred: {why}"));
    Unmade::Refused(Box::new(status.with(details)))
}
