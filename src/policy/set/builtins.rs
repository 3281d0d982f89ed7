//! Defines the interface to a server's knowledge of built-in kinds: defaults, strict decoding, validation and patches. Callers supply
//! it; this package has no tables of built-in kinds.

use std::fmt::Debug;

use serde_json::Value;

use crate::crd::ScalePaths;
use crate::report::decision::Status;
use crate::request::GroupVersionKind;
use crate::set::catalogue::Catalogue;
use crate::vap::Unmade;

/// A server's handling of built-in kinds before admission: defaults, strict decoding and validation.
///
/// ```
/// use admit_policy::crd::ScalePaths;
/// use admit_policy::{
///     Builtins, Documents, GroupVersionKind, LoadOptions, PolicySet, Prepared, StrategicError, Unmade,
/// };
/// use serde_json::{Value, json};
///
/// /// Knows that ConfigMaps have data.
/// #[derive(Debug)]
/// struct ConfigMaps;
///
/// impl Builtins for ConfigMaps {
///     fn applied(&self, manifest: &Value, _: &Value, _: &Value) -> Option<Value> {
///         Some(manifest.clone())
///     }
///
///     fn patched(&self, _: &Value, _: &Value) -> Option<Result<Value, StrategicError>> {
///         None
///     }
///
///     fn scale(&self, _: &Value, _: Option<&ScalePaths>) -> Option<Value> {
///         None
///     }
///
///     fn prepare(&self, new: &Value, old: Option<&Value>, _: bool) -> Option<Prepared> {
///         let mut object = new.clone();
///         object.as_object_mut()?.entry("data").or_insert_with(|| json!({}));
///         let (strict, refusal, warnings) = (Vec::new(), None, Vec::new());
///         Some(Prepared { object, old: old.cloned(), strict, refusal, warnings })
///     }
///
///     fn merged(
///         &self,
///         _: &GroupVersionKind,
///         _: Option<&Value>,
///         _: &Value,
///         _: &Value,
///     ) -> Option<Result<Value, Unmade>> {
///         None
///     }
///
///     fn settled(&self, _: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade> {
///         match object["data"].is_object() || !strict {
///             true => Ok(object),
///             false => Err(Unmade::Failed("a ConfigMap has data".to_owned())),
///         }
///     }
///
///     fn kind_of(&self, group: &str, version: &str, resource: &str) -> Option<GroupVersionKind> {
///         (group.is_empty() && resource == "configmaps").then(|| GroupVersionKind::new("", version, "ConfigMap"))
///     }
/// }
///
/// let prepared = ConfigMaps.prepare(&json!({"kind": "ConfigMap"}), None, false).unwrap();
/// assert_eq!(prepared.object["data"], json!({}));
/// assert!(ConfigMaps.written(&json!({"kind": "ConfigMap"}), None, "scale").is_none());
/// assert!(ConfigMaps.catalogue().is_none());
/// assert!(ConfigMaps.smallest(&GroupVersionKind::new("", "v1", "ConfigMap")).is_empty());
/// let set = PolicySet::load_files([], LoadOptions::default()).unwrap().knowing(&ConfigMaps);
/// assert_eq!(set.policies().count(), 0);
/// let mut documents = Documents::default();
/// documents.set_builtins(&ConfigMaps);
/// assert!(documents.builtins().is_some_and(|kinds| kinds.kind_of("", "v1", "configmaps").is_some()));
/// ```
pub trait Builtins: Sync + Debug {
    /// Returns the result of `kubectl apply` of a manifest to `live`, after `last` was applied; None if the kind is unknown.
    fn applied(&self, manifest: &Value, live: &Value, last: &Value) -> Option<Value>;

    /// Returns the result of a strategic merge patch of `object`, or why it cannot be applied; None if the kind is unknown.
    fn patched(&self, object: &Value, patch: &Value) -> Option<Result<Value, StrategicError>>;

    /// Returns the Scale of an object: of a custom resource by the paths of its definition; None for kinds without the subresource.
    fn scale(&self, object: &Value, paths: Option<&ScalePaths>) -> Option<Value>;

    /// Prepares a write of `new` over `old`, or of its status alone, as a server does; None if the kind is unknown.
    fn prepare(&self, new: &Value, old: Option<&Value>, status: bool) -> Option<Prepared>;

    /// Merges the fields that a policy sets into `live`: for a custom resource by the outline of its schema; None if the kind is
    /// unknown.
    fn merged(
        &self,
        kind: &GroupVersionKind,
        outline: Option<&Value>,
        live: &Value,
        configuration: &Value,
    ) -> Option<Result<Value, Unmade>>;

    /// Returns an object from a policy, decoded as its kind and with defaults; unchanged if the kind is unknown.
    ///
    /// # Errors
    /// If it is no longer a valid object of its kind.
    fn settled(&self, kind: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade>;

    /// Returns the kind of a resource, the first where `*` as group or version leaves several; None if it is unknown.
    fn kind_of(&self, group: &str, version: &str, resource: &str) -> Option<GroupVersionKind>;

    /// Returns the kinds with the types of their fields; None if unavailable.
    fn catalogue(&self) -> Option<&Catalogue> {
        None
    }

    /// Returns minimal valid objects of a kind, one of each form that it may have; empty if unknown.
    fn smallest(&self, _: &GroupVersionKind) -> Vec<Value> {
        Vec::new()
    }

    /// Like [`Self::prepare`], for a write through a subresource, or through none if the name is empty; None where objects of the kind
    /// are not written through it.
    fn written(&self, new: &Value, old: Option<&Value>, subresource: &str) -> Option<Prepared> {
        match subresource {
            "" => self.prepare(new, old, false),
            "status" => self.prepare(new, old, true),
            _ => None,
        }
    }
}

/// Why a server does not apply a strategic merge patch, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StrategicError(pub String);

/// An object on its way to the policies.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The object with defaults.
    pub object: Value,
    /// The old object, as a server reads it back from its store.
    pub old: Option<Value>,
    /// Errors of strict decoding: `unknown field "spec.bogus"`.
    pub strict: Vec<String>,
    /// The server's rejection of the object before policies run, if any.
    pub refusal: Option<Status>,
    /// Texts for the client.
    pub warnings: Vec<String>,
}
