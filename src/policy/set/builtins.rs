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
    /// What `kubectl apply` makes of `live` by a manifest, where it applied `last` before; none where nothing is known of
    /// the kind.
    fn applied(&self, manifest: &Value, live: &Value, last: &Value) -> Option<Value>;

    /// What a strategic merge patch makes of `object`, or why it cannot be applied; none where nothing is known of the
    /// kind.
    fn patched(&self, object: &Value, patch: &Value) -> Option<Result<Value, StrategicError>>;

    /// The Scale of an object: of a custom resource by the paths of its definition; none where objects of the kind are
    /// not scaled.
    fn scale(&self, object: &Value, paths: Option<&ScalePaths>) -> Option<Value>;

    /// A write of `new` over `old`, or of its status alone; none where nothing is known of the kind.
    fn prepare(&self, new: &Value, old: Option<&Value>, status: bool) -> Option<Prepared>;

    /// `live` with what a policy sets: of a custom resource by the outline of its schema; none where nothing is known of the
    /// kind.
    fn merged(
        &self,
        kind: &GroupVersionKind,
        outline: Option<&Value>,
        live: &Value,
        configuration: &Value,
    ) -> Option<Result<Value, Unmade>>;

    /// An object that a policy made, decoded as its kind and with defaults; as it is where nothing is known of the kind.
    ///
    /// # Errors
    /// When it is none of its kind any longer.
    fn settled(&self, kind: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade>;

    /// The kind of a resource, the first where a group or version of `*` leaves several; none where nothing is known of it.
    fn kind_of(&self, group: &str, version: &str, resource: &str) -> Option<GroupVersionKind>;

    /// The kinds with the types of their fields; none where that is not known.
    fn catalogue(&self) -> Option<&Catalogue> {
        None
    }

    /// Objects of a kind that have no more than a server demands, one of each form that they may have; none where that is not
    /// known.
    fn smallest(&self, _: &GroupVersionKind) -> Vec<Value> {
        Vec::new()
    }

    /// Like [`Self::prepare`], of a write of `new` over `old` through a subresource by that name, or through none where it is
    /// empty; none where objects of the kind are not written through it.
    fn written(&self, new: &Value, old: Option<&Value>, subresource: &str) -> Option<Prepared> {
        match subresource {
            "" => self.prepare(new, old, false),
            "status" => self.prepare(new, old, true),
            _ => None,
        }
    }
}

/// Why a server does not apply a strategic merge patch, in its words.
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
    /// The server's refusal of the object before policies are asked, if any.
    pub refusal: Option<Status>,
    /// Texts for the client.
    pub warnings: Vec<String>,
}
