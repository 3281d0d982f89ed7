//! The description of one served resource in one version.

use std::sync::Arc;

use serde_json::Value;

/// The fields of the metadata that upstream's `ResetObjectMetaForStatus` leaves as they are: those that most statuses and
/// subresources cannot change.
pub(crate) const RESET_FOR_STATUS: [&str; 7] =
    ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"];

/// Group, version and kind of what has no row, because it is only sent or answered.
pub(crate) type OwnKind = (&'static str, &'static str, &'static str);

/// How many replicas there should be of an object of any kind.
pub(crate) const SCALE: OwnKind = ("autoscaling", "v1", "Scale");
/// A token for a service account.
pub(crate) const TOKEN_REQUEST: OwnKind = ("authentication.k8s.io", "v1", "TokenRequest");
/// The deletion of a pod, if its budget allows it.
pub(crate) const EVICTION: OwnKind = ("policy", "v1", "Eviction");
/// The node of a pod.
pub(crate) const BINDING: OwnKind = ("", "v1", "Binding");

/// Whether objects of a resource live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// A subresource that is served below an object's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subresource {
    Status,
    Scale,
    /// `certificatesigningrequests/approval`: the conditions, as approvers set them.
    Approval,
    /// `pods/ephemeralcontainers`: containers that are added to a pod that runs.
    EphemeralContainers,
    /// `pods/resize`: the resources of containers.
    Resize,
    /// `pods/log`: text, GET only.
    Log,
    /// `namespaces/finalize`: PUT only.
    Finalize,
    /// `serviceaccounts/token`: POST only.
    Token,
    /// `pods/binding`: POST only, which gives the pod its node.
    Binding,
    /// `pods/eviction`: POST only, which deletes the pod if its budget allows.
    Eviction,
    /// `pods/exec`, `pods/attach`, `pods/portforward`: streams to a node.
    Exec,
    Attach,
    PortForward,
    /// `nodes/proxy`, `pods/proxy`, `services/proxy`: requests that are passed on.
    Proxy,
}

/// What a field holds of the options with which something is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Flag,
    Text,
    Texts,
    Numbers,
}

const STREAMS: [(&str, Asked); 6] = [
    ("stdin", Asked::Flag),
    ("stdout", Asked::Flag),
    ("stderr", Asked::Flag),
    ("tty", Asked::Flag),
    ("container", Asked::Text),
    ("command", Asked::Texts),
];

impl Subresource {
    const ALL: [Self; 14] = [
        Self::Status,
        Self::Scale,
        Self::Approval,
        Self::EphemeralContainers,
        Self::Resize,
        Self::Log,
        Self::Finalize,
        Self::Token,
        Self::Binding,
        Self::Eviction,
        Self::Exec,
        Self::Attach,
        Self::PortForward,
        Self::Proxy,
    ];

    /// The last segment of the subresource's path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Approval => "approval",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Log => "log",
            Self::Finalize => "finalize",
            Self::Token => "token",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
        }
    }

    /// The subresource that a path names so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subresource| subresource.name() == name)
    }

    /// Group, version and kind of what is sent to it, where that is not the resource's own kind. Kinds of the core group
    /// have neither group nor version.
    #[must_use]
    pub(crate) fn own_kind(self, of: &ResourceInfo) -> Option<OwnKind> {
        match self {
            Self::Scale => Some(SCALE),
            Self::Token => Some(TOKEN_REQUEST),
            Self::Eviction => Some(EVICTION),
            Self::Binding => Some(("", "", BINDING.2)),
            Self::Exec => Some(("", "", "PodExecOptions")),
            Self::Attach => Some(("", "", "PodAttachOptions")),
            Self::PortForward => Some(("", "", "PodPortForwardOptions")),
            Self::Proxy => Some((
                "",
                "",
                match of.kind.as_str() {
                    "Node" => "NodeProxyOptions",
                    "Service" => "ServiceProxyOptions",
                    _ => "PodProxyOptions",
                },
            )),
            Self::Status
            | Self::Approval
            | Self::EphemeralContainers
            | Self::Resize
            | Self::Log
            | Self::Finalize => None,
        }
    }

    /// The fields of what is asked for by those who connect to it; none where nobody does.
    #[must_use]
    pub(crate) fn asked(self) -> &'static [(&'static str, Asked)] {
        match self {
            Self::Exec => &STREAMS,
            // The process runs already.
            Self::Attach => STREAMS.split_last().map_or(&[], |(_, fields)| fields),
            Self::PortForward => &[("ports", Asked::Numbers)],
            Self::Proxy => &[("path", Asked::Text)],
            Self::Status
            | Self::Scale
            | Self::Approval
            | Self::EphemeralContainers
            | Self::Resize
            | Self::Log
            | Self::Finalize
            | Self::Token
            | Self::Binding
            | Self::Eviction => &[],
        }
    }

    /// Whether objects are read and written through it.
    #[must_use]
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Status | Self::Scale | Self::Approval | Self::EphemeralContainers | Self::Resize)
    }

    /// Whether requests are passed on to something else, whatever their media types.
    #[must_use]
    pub fn is_connected(self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::PortForward | Self::Proxy)
    }

    /// The verbs that discovery lists for the subresource.
    #[must_use]
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["get"],
            Self::Finalize => &["update"],
            Self::Token | Self::Binding | Self::Eviction => &["create"],
            Self::Exec | Self::Attach | Self::PortForward => &["create", "get"],
            Self::Proxy => &["create", "delete", "get", "patch", "update"],
            Self::Status | Self::Scale | Self::Approval | Self::EphemeralContainers | Self::Resize => {
                &["get", "patch", "update"]
            }
        }
    }
}

/// Returns the Go package of the internal types of a built-in group.
#[must_use]
pub(crate) fn go_package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(name) => name,
    }
}

/// One column of the Table that `kubectl get` prints.
#[derive(Clone, Debug, PartialEq)]
pub struct PrinterColumn {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`, as in a CRD.
    pub kind: String,
    pub format: String,
    pub description: String,
    /// 0 is always shown, above 0 with `-o wide`.
    pub priority: i32,
    /// The column's JSONPath, with its leading dot: `.status.dataGatherState`.
    pub json_path: String,
}

/// One resource in one served version: the row that discovery, OpenAPI, Tables and the registry read.
#[derive(Clone, Debug)]
pub struct ResourceInfo {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// The version that objects are stored in, from which discovery's storage version hash is made.
    pub storage_version: String,
    /// `GROUP/VERSION` that the hash of the storage version is made of: the first one that the kind was stored in, and
    /// the group of the form that the server itself works with.
    pub first_stored: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub scope: Scope,
    /// The verbs of the main resource, in discovery's (alphabetical) order.
    pub verbs: Vec<String>,
    pub subresources: Vec<Subresource>,
    /// Fields of the metadata that writes of the status leave as they are, or `metadata` for all of it, or
    /// `reset-for-status` for those of upstream's `ResetObjectMetaForStatus`.
    pub status_keeps: Vec<String>,
    /// Columns beside NAME; empty means `AGE` alone.
    pub columns: Vec<PrinterColumn>,
    /// The structural OpenAPI v3 schema of the object, where there is one. A CRD's is as written.
    pub schema: Option<Arc<Value>>,
    /// The key of objects in the store, without the `/registry/` that messages put before it: `jobs`,
    /// `example.dev/widgets`. Versions and views of one resource share it. Empty: nothing is stored.
    pub storage_key: String,
    /// Paths that field selectors may name beside `metadata.name` and `metadata.namespace`: `status.phase`.
    pub selectable_fields: Vec<String>,
    /// The warning that requests to a version on its way out get.
    pub deprecation: Option<String>,
    /// Built in (strategic merge patch is offered, field tables apply) or defined by a CRD.
    pub builtin: bool,
}

impl ResourceInfo {
    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The `apiVersion` of the version that objects are stored in.
    #[must_use]
    pub fn stored_as(&self) -> String {
        let version = &self.storage_version;
        if self.group.is_empty() { version.clone() } else { format!("{}/{version}", self.group) }
    }

    /// `pods` or `datagathers.insights.openshift.io`, as error messages name a resource.
    #[must_use]
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The Go package of a built-in kind's internal type, which some texts name.
    #[must_use]
    pub fn go_package(&self) -> &str {
        go_package(&self.group)
    }

    /// The group of the form that the server itself works with, which errors name.
    #[must_use]
    pub(crate) fn internal_group(&self) -> &str {
        self.first_stored.rsplit_once('/').map_or(self.group.as_str(), |(group, _)| group)
    }

    /// Whether a write of the status leaves this field of the metadata as it is.
    #[must_use]
    pub fn status_keeps(&self, field: &str) -> bool {
        let keeps = |kept: &String| match kept.as_str() {
            "metadata" => true,
            "reset-for-status" => RESET_FOR_STATUS.contains(&field),
            kept => kept == field,
        };
        self.status_keeps.iter().any(keeps)
    }

    /// Whether both are rows of one resource, in whichever version.
    #[must_use]
    pub(crate) fn is_same_resource(&self, other: &Self) -> bool {
        self.storage_key == other.storage_key && self.kind == other.kind
    }

    #[must_use]
    pub fn serves(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }
}
