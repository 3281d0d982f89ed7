//! Answers what mutations need to know about kinds from files: the definitions among them, and a server's knowledge of built-in kinds.

use serde_json::Value;

use crate::request::GroupVersionKind;
use crate::schema;
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;
use crate::vap::{Schemas, Unmade};

/// The kinds that files define, and those that are built in.
#[derive(Clone, Copy, Debug)]
pub struct KnownKinds<'a> {
    /// The definitions of custom resources.
    pub documents: &'a Documents,
    /// A server's knowledge of built-in kinds.
    pub builtins: Option<&'a dyn Builtins>,
}

impl Schemas for KnownKinds<'_> {
    /// Whether a cluster serves a kind that no file defines is unknown: patches work without a schema.
    fn serves(&self, _kind: &GroupVersionKind) -> bool {
        true
    }

    fn merged(&self, kind: &GroupVersionKind, live: &Value, configuration: &Value) -> Result<Value, Unmade> {
        let version = self.documents.crd_of(kind).and_then(|crd| crd.version(&kind.version));
        let outline = version.map(|version| schema::outline(version.schema()));
        let unknown = || {
            let GroupVersionKind { group, version, kind } = kind;
            Err(Unmade::Failed(format!(
                "failed to convert patch object to typed object: no corresponding type for {group}/{version}, Kind={kind}"
            )))
        };
        let Some(builtins) = self.builtins else { return unknown() };
        builtins.merged(kind, outline.as_ref(), live, configuration).unwrap_or_else(unknown)
    }

    fn settled(&self, kind: &GroupVersionKind, mut object: Value, strict: bool) -> Result<Value, Unmade> {
        if let Some(version) = self.documents.crd_of(kind).and_then(|crd| crd.version(&kind.version)) {
            version.default(&mut object);
            return Ok(object);
        }
        match self.builtins {
            Some(builtins) => builtins.settled(kind, object, strict),
            None => Ok(object),
        }
    }
}
