//! Determines the target of a request, and whether admission policies apply to it, from its verb and subresource.

use admit_policy::{GroupVersionResource, Operation};

use super::event::{Event, ObjectRef};
use super::needs::Concern;
use super::outcome::{self, Outcome};
use super::store::Key;

/// Subresources whose requests contain the whole object.
const WHOLE: [&str; 6] = ["", "status", "finalize", "approval", "ephemeralcontainers", "resize"];
/// Subresources that connect to something (CONNECT).
const CONNECTING: [&str; 4] = ["attach", "exec", "portforward", "proxy"];

/// The kind of request that an event records.
#[derive(Debug)]
pub(super) enum Asked {
    /// A request that changes nothing, or is not about a resource.
    Read,
    /// A `deletecollection` request, which deletes all objects that it selects.
    Collection(About),
    Write(About),
}

/// The target of a request, as the event records it.
#[derive(Debug)]
pub(super) struct About {
    pub(super) operation: Operation,
    pub(super) resource: GroupVersionResource,
    pub(super) subresource: String,
    pub(super) key: Key,
    pub(super) outcome: Outcome,
    pub(super) dry_run: bool,
}

impl Asked {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let Some(about) = &event.object_ref else { return Self::Read };
        let created = event.response_status.as_ref().and_then(|status| status.code) == Some(201);
        let operation = match &*event.verb {
            _ if CONNECTING.contains(&&*about.subresource) => Operation::Connect,
            "create" => Operation::Create,
            "update" | "patch" if created => Operation::Create,
            "update" | "patch" => Operation::Update,
            "delete" | "deletecollection" => Operation::Delete,
            _ => return Self::Read,
        };
        let found = About::new(event, about, operation);
        if event.verb == "deletecollection" { Self::Collection(found) } else { Self::Write(found) }
    }
}

impl About {
    fn new(event: &Event<'_>, about: &ObjectRef<'_>, operation: Operation) -> Self {
        let ObjectRef { resource, namespace, name, api_group, api_version, subresource } = about;
        let resource = GroupVersionResource::new(&**api_group, &**api_version, &**resource);
        // Events give a Namespace its own name as its namespace.
        let namespace = if is_namespaces(&resource) { "" } else { &**namespace };
        let key = Key {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            namespace: namespace.to_owned(),
            name: name.clone().into_owned(),
        };
        Self {
            operation,
            resource,
            subresource: subresource.clone().into_owned(),
            key,
            outcome: outcome::of(event),
            dry_run: event.parameter("dryRun").is_some_and(|value| value == "All"),
        }
    }

    /// Reports whether requests to the subresource contain the whole object.
    pub(super) fn is_whole(&self) -> bool {
        WHOLE.contains(&self.subresource.as_str())
    }

    pub(super) fn is_namespace(&self) -> bool {
        is_namespaces(&self.resource)
    }

    pub(super) fn concern(&self) -> Concern<'_> {
        Concern { operation: self.operation, resource: &self.resource, subresource: &self.subresource }
    }

    /// Formats the resource: `deployments.apps/scale`.
    pub(super) fn shown(&self) -> String {
        let resource = self.resource.group_resource();
        if self.subresource.is_empty() { resource } else { format!("{resource}/{}", self.subresource) }
    }
}

/// Reports whether the resource is Namespaces, whose events carry their own name as namespace.
fn is_namespaces(resource: &GroupVersionResource) -> bool {
    resource.group.is_empty() && resource.resource == "namespaces"
}
