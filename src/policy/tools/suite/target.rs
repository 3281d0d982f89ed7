//! Determines the resource that a test case's request is for: what the case says, else what the kind of its object
//! implies.

use crate::request::{GroupVersionKind, GroupVersionResource, Operation};
use crate::set::documents::Documents;

/// A kind whose objects are sent to a subresource of another: API version, kind; resource, subresource, operation.
type Sent = (&'static str, &'static str, &'static str, &'static str, Operation);

const SENT: [Sent; 9] = [
    ("policy/v1", "Eviction", "pods", "eviction", Operation::Create),
    ("v1", "Binding", "pods", "binding", Operation::Create),
    ("v1", "PodExecOptions", "pods", "exec", Operation::Connect),
    ("v1", "PodAttachOptions", "pods", "attach", Operation::Connect),
    ("v1", "PodPortForwardOptions", "pods", "portforward", Operation::Connect),
    ("v1", "PodProxyOptions", "pods", "proxy", Operation::Connect),
    ("v1", "NodeProxyOptions", "nodes", "proxy", Operation::Connect),
    ("v1", "ServiceProxyOptions", "services", "proxy", Operation::Connect),
    ("authentication.k8s.io/v1", "TokenRequest", "serviceaccounts", "token", Operation::Create),
];

fn sent(kind: &GroupVersionKind) -> Option<&'static Sent> {
    SENT.iter().find(|(api_version, name, ..)| kind.kind == *name && kind.api_version() == *api_version)
}

/// The operation that objects of the kind imply.
pub(super) fn operation(kind: &GroupVersionKind) -> Option<Operation> {
    sent(kind).map(|(.., operation)| *operation)
}

/// The resource and subresource; `resource` is a plural name, or one with its group, or with version and group:
/// `deployments`, `deployments.apps`, `deployments.v1.apps`. A group without version is in the version of the object where
/// that is of the group too, else in the one that a definition stores, else in `v1`.
pub(super) fn resource(
    kind: &GroupVersionKind,
    resource: Option<&str>,
    subresource: &str,
    known: &Documents,
) -> (GroupVersionResource, String) {
    let implied =
        sent(kind).filter(|(_, _, _, implied, _)| subresource.is_empty() || subresource == *implied);
    let subresource = implied.map_or(subresource, |(_, _, _, implied, _)| implied).to_owned();
    let mut target = match implied {
        Some((_, _, plural, ..)) => GroupVersionResource::new("", "v1", *plural),
        None => known.resource_of(kind),
    };
    if let Some((plural, place)) = resource.and_then(|resource| resource.split_once('.')) {
        let (version, group) = match place.split_once('.') {
            Some((version, group)) if is_version(version) => (Some(version), group),
            _ => (None, place),
        };
        let own = (kind.group == group).then_some(kind.version.as_str());
        let version = version.or(own).or_else(|| known.stored_version(group, plural)).unwrap_or("v1");
        target = GroupVersionResource::new(group, version, plural);
    } else if let Some(plural) = resource {
        plural.clone_into(&mut target.resource);
    }
    (target, subresource)
}

/// `v1`, `v1beta2`, and no part of a group.
fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
