//! Runs a server's built-in admission plugins on the objects at hand. Callers supply the plugins, like the knowledge of [built-in
//! kinds](super::builtins::Builtins).

use std::fmt::Debug;

use serde_json::Value;

use crate::report::decision::Status;
use crate::request::host::Host;
use crate::request::{GroupVersionKind, Request};

/// A server's built-in admission plugins. They look up objects in the host, which may know only part of a cluster.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::apply::{Options, Rehearsal, pair};
/// use admit_policy::{
///     GroupVersionKind, Host, LoadOptions, Plugged, Plugins, PolicySet, Reason, Request, Status,
/// };
/// use serde_json::json;
///
/// /// Wants a Namespace to have an owner before anything is written there.
/// #[derive(Debug)]
/// struct Owned;
///
/// impl Plugins for Owned {
///     fn looks_up(&self, kind: &GroupVersionKind) -> bool {
///         kind.kind == "Namespace"
///     }
///
///     fn mutate(&self, _: &Request<'_>, _: &dyn Host) -> Plugged {
///         Plugged::default()
///     }
///
///     fn validate(&self, request: &Request<'_>, host: &dyn Host) -> Plugged {
///         let namespace = host.namespace(&request.namespace).ok().flatten();
///         let owned = namespace.is_some_and(|it| it.pointer("/metadata/labels/owner").is_some());
///         let refusal = (!owned).then(|| Status::new(Reason::Forbidden, "nobody's namespace"));
///         Plugged { refusal, ..Plugged::default() }
///     }
///
///     fn charge(&self, _: &Request<'_>, _: &dyn Host) -> Option<Status> {
///         None
///     }
/// }
///
/// let set = PolicySet::load_files([], LoadOptions::default()).unwrap().plugging(Arc::new(Owned));
/// assert!(set.looks_up(&GroupVersionKind::new("", "v1", "Namespace")));
/// let mut documents = set.documents().clone();
/// documents.set_plugins(Arc::new(Owned));
/// assert!(documents.plugins().is_some());
/// let map = Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
/// let pair = pair(&[map], &[], set.documents(), "shop").unwrap().pairs.remove(0);
/// let applied = Rehearsal::new(&set, [], Options::default()).apply(&pair);
/// assert_eq!(applied.refusal.unwrap().message, "nobody's namespace");
/// assert!(applied.assumed.is_empty());
/// ```
pub trait Plugins: Send + Sync + Debug {
    /// Whether plugins look up objects of the kind.
    fn looks_up(&self, kind: &GroupVersionKind) -> bool;

    /// Lets those that change objects change that of the request, before policies do.
    fn mutate(&self, request: &Request<'_>, host: &dyn Host) -> Plugged;

    /// Runs the plugins that validate the object in its final form, before policies run.
    fn validate(&self, request: &Request<'_>, host: &dyn Host) -> Plugged;

    /// Charges quotas for an admitted object, or returns why they would be exceeded.
    fn charge(&self, request: &Request<'_>, host: &dyn Host) -> Option<Status>;
}

/// The result of plugins for a request.
///
/// [`Plugins`] has an example.
#[derive(Clone, Debug, Default)]
pub struct Plugged {
    /// The object, if they changed it.
    pub object: Option<Value>,
    /// The `Status` of the first plugin that rejects it.
    pub refusal: Option<Status>,
    /// Texts for the client.
    pub warnings: Vec<String>,
    /// What they write into the audit log.
    pub audit_annotations: Vec<(String, String)>,
    /// What the object names and the host does not have, so that it was taken as being there: `PriorityClass "high"`.
    pub assumed: Vec<String>,
}

/// Kinds, beside Namespaces, whose objects plugins of some server look up.
const READ: [(&str, &str); 8] = [
    ("", "LimitRange"),
    ("", "Node"),
    ("", "ResourceQuota"),
    ("", "ServiceAccount"),
    ("networking.k8s.io", "IngressClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
];

/// Whether objects of the kind may be among policies for the plugins' use.
pub(crate) fn is_read(kind: &GroupVersionKind) -> bool {
    READ.contains(&(kind.group.as_str(), kind.kind.as_str()))
}
