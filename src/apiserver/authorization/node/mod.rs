//! Implements the mode `Node`, which authorizes kubelets.
//!
//! | part | decides |
//! |---|---|
//! | `graph` | which objects belong to which node |
//! | this file | what a node may do with those, and with what all nodes may use |
//!
//! A kubelet is a user `system:node:NAME` of the group `system:nodes`. It may read the secrets, config maps, claims and
//! volumes of the pods on its node, request tokens for their accounts, and maintain its own objects. Request bodies are not
//! known here; the plugin `NodeRestriction` checks them.
//!
//! Read from plugin/pkg/auth/authorizer/node of Kubernetes 1.33 and 1.34, whose graph and rules are those of 1.36 where no feature is
//! turned on that is off by default: `AuthorizeNodeWithSelectors` is always on since 1.34, and `PodCertificateRequest` and
//! `ClusterTrustBundle` are off.

mod graph;

use std::sync::{LazyLock, PoisonError, RwLock};

use admit_apimachinery::go;
use admit_apimachinery::selector::field_terms;
use admit_policy::rbac::Rule;
use admit_policy::{Access, AccessAttributes, UserInfo};

use self::graph::{Graph, SOURCES, Vertex};
use crate::identity::node_of;
use crate::objects::Objects;
use crate::store::{Kept, Key};

/// The namespace of the leases that serve as node heartbeats.
const LEASES_IN: &str = "kube-node-lease";

/// The verbs, the group, and the resources of a rule.
type Allowed = (&'static [&'static str], &'static str, &'static [&'static str]);

/// The rules for all nodes: upstream's `NodeRules`, without the resources that are authorized individually below.
const ALIKE: [Allowed; 8] = [
    (&["create"], "authentication.k8s.io", &["tokenreviews"]),
    (&["create"], "authorization.k8s.io", &["localsubjectaccessreviews", "subjectaccessreviews"]),
    (&["get", "list", "watch"], "", &["services"]),
    (&["create", "patch", "update"], "", &["events"]),
    (&["create", "patch", "update"], "events.k8s.io", &["events"]),
    (&["create", "get", "list", "watch"], "certificates.k8s.io", &["certificatesigningrequests"]),
    (&["get", "list", "watch"], "storage.k8s.io", &["csidrivers"]),
    (&["get", "list", "watch"], "node.k8s.io", &["runtimeclasses"]),
];

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let endpoints: Allowed = (&["get"], "", &["endpoints"]);
    let all = ALIKE.into_iter().chain([endpoints]);
    all.map(|(verbs, group, resources)| Rule {
        verbs: owned(verbs),
        api_groups: owned(&[group]),
        resources: owned(resources),
        ..Rule::default()
    })
    .collect()
});

/// The attributes of a node's request.
#[derive(Clone, Copy)]
struct Asked<'a> {
    node: &'a str,
    verb: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
    fields: &'a str,
}

/// The reason of a refusal, shown to clients; may be empty.
#[derive(Debug)]
struct Denied(String);

/// The decision about a node's request.
type Answer = Result<(), Denied>;

/// Authorizes nodes; builds the graph at the first use.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    graph: RwLock<Option<Graph>>,
}

impl Nodes {
    /// Returns whether the user may do it. This mode allows nothing to users who are not nodes.
    pub(super) fn access(
        &self,
        objects: &dyn Objects,
        user: &UserInfo,
        attributes: &AccessAttributes,
    ) -> Access {
        let answer = match node_of(&user.username, &user.groups) {
            None => Err(Denied(String::new())),
            Some("") => Err(Denied(format!("unknown node for user {}", go::quote(&user.username)))),
            Some(node) => self.answer(objects, node, attributes),
        };
        let allowed = answer.is_ok();
        Access { allowed, reason: answer.err().map_or_else(String::new, |denied| denied.0) }
    }

    /// Drops the graph, which is built again when needed.
    pub(super) fn forget(&self) {
        *self.graph.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Updates the graph, if it was built, after a write or removal at this key.
    pub(super) fn written(&self, objects: &dyn Objects, key: &Key) {
        let Some(source) = SOURCES.into_iter().find(|source| *source == &*key.resource) else { return };
        let mut known = self.graph.write().unwrap_or_else(PoisonError::into_inner);
        let Some(graph) = known.as_mut() else { return };
        // Read under the lock, so that of concurrent changes the last one stays.
        match objects.latest_object(key) {
            Some(stored) => graph.insert(source, &stored.object),
            None => graph.remove(source, &key.namespace, &key.name),
        }
    }

    fn answer(&self, objects: &dyn Objects, node: &str, attributes: &AccessAttributes) -> Answer {
        if let AccessAttributes::Resource {
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            field_selector,
            ..
        } = attributes
        {
            let asked = Asked { node, verb, subresource, namespace, name, fields: field_selector };
            let leads = |vertex: Vertex| self.leads(objects, asked, vertex);
            let told_apart = match (group.as_str(), resource.as_str()) {
                ("", "secrets") => asked.read_in_namespace(|| leads(Vertex::Secret)),
                ("", "configmaps") => asked.read_in_namespace(|| leads(Vertex::ConfigMap)),
                ("", "persistentvolumeclaims") if subresource == "status" => {
                    asked.update_status(|| leads(Vertex::Claim))
                }
                ("", "persistentvolumeclaims") => asked.get(|| leads(Vertex::Claim)),
                ("", "persistentvolumes") => asked.get(|| leads(Vertex::Volume)),
                ("resource.k8s.io", "resourceclaims") => asked.get(|| leads(Vertex::ResourceClaim)),
                ("storage.k8s.io", "volumeattachments") => asked.get(|| leads(Vertex::Attachment)),
                ("", "serviceaccounts") => asked.token(|| leads(Vertex::Account)),
                ("coordination.k8s.io", "leases") => asked.lease(),
                ("storage.k8s.io", "csinodes") => asked.csi_node(),
                ("resource.k8s.io", "resourceslices") => asked.slice(|| leads(Vertex::Slice)),
                ("", "nodes") => asked.node(),
                ("", "pods") => asked.pod(|| leads(Vertex::Pod)),
                _ => return allowed_alike(attributes),
            };
            return told_apart;
        }
        allowed_alike(attributes)
    }

    /// Checks that the requested object belongs to the node.
    fn leads(&self, objects: &dyn Objects, asked: Asked<'_>, vertex: Vertex) -> Answer {
        let Asked { node, namespace, name, .. } = asked;
        let why = || Denied(format!("no relationship found between node '{node}' and this object"));
        if name.is_empty() {
            return told("No Object name found");
        }
        let leads =
            |graph: &Graph| graph.leads(vertex, (namespace, name), node).then_some(()).ok_or_else(why);
        if let Some(graph) = &*self.graph.read().unwrap_or_else(PoisonError::into_inner) {
            return leads(graph);
        }
        // The lock is held while reading, so that a concurrent change is not overwritten by an older state.
        let mut known = self.graph.write().unwrap_or_else(PoisonError::into_inner);
        leads(known.get_or_insert_with(|| read(objects)))
    }
}

fn read(objects: &dyn Objects) -> Graph {
    let mut graph = Graph::default();
    for source in SOURCES {
        let mut insert = |kept: &Kept| graph.insert(source, &kept.object.values());
        if let Err(error) = objects.each_object(source, None, &mut insert) {
            tracing::error!(%error, source, "what belongs to nodes cannot be listed");
        }
    }
    graph
}

fn allowed_alike(attributes: &AccessAttributes) -> Answer {
    if RULES.iter().any(|rule| rule.allows(attributes)) { Ok(()) } else { told("") }
}

fn told(why: &str) -> Answer {
    Err(Denied(why.to_owned()))
}

/// Allows a verb of the list, or refuses with this reason.
fn one_of(verb: &str, verbs: &[&str], otherwise: &str) -> Answer {
    if verbs.contains(&verb) { Ok(()) } else { told(otherwise) }
}

impl Asked<'_> {
    fn read_in_namespace(self, leads: impl FnOnce() -> Answer) -> Answer {
        one_of(self.verb, &["get", "list", "watch"], "can only read resources of this type")?;
        if !self.subresource.is_empty() {
            return told("cannot read subresource");
        }
        if self.namespace.is_empty() {
            return told("can only read namespaced object of this type");
        }
        leads()
    }

    fn get(self, leads: impl FnOnce() -> Answer) -> Answer {
        one_of(self.verb, &["get"], "can only get individual resources of this type")?;
        if self.subresource.is_empty() { leads() } else { told("cannot get subresource") }
    }

    fn update_status(self, leads: impl FnOnce() -> Answer) -> Answer {
        one_of(self.verb, &["update", "patch"], "can only get/update/patch this type")?;
        leads()
    }

    fn token(self, leads: impl FnOnce() -> Answer) -> Answer {
        if self.verb != "create" || self.name.is_empty() {
            return told("can only create tokens for individual service accounts");
        }
        if self.subresource != "token" {
            return told("can only create token subresource of serviceaccount");
        }
        leads()
    }

    fn lease(self) -> Answer {
        let why = "can only get, create, update, patch, or delete a node lease";
        one_of(self.verb, &KEPT, why)?;
        if self.namespace != LEASES_IN {
            return Err(Denied(format!(
                "can only access leases in the {} system namespace",
                go::quote(LEASES_IN)
            )));
        }
        self.own("can only access node lease with the same name as the requesting node")
    }

    fn csi_node(self) -> Answer {
        one_of(self.verb, &KEPT, "can only get, create, update, patch, or delete a CSINode")?;
        if !self.subresource.is_empty() {
            return told("cannot authorize CSINode subresources");
        }
        self.own("can only access CSINode with the same name as the requesting node")
    }

    /// Allows an object with the name of the node. A new object's name is not known here; `NodeRestriction` checks it.
    fn own(self, otherwise: &str) -> Answer {
        if self.verb == "create" || self.name == self.node { Ok(()) } else { told(otherwise) }
    }

    fn slice(self, leads: impl FnOnce() -> Answer) -> Answer {
        if !self.subresource.is_empty() {
            return told("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => leads(),
            "watch" | "list" | "deletecollection" if self.selects("nodeName") => Ok(()),
            "watch" | "list" | "deletecollection" => {
                told("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => told(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, \
                 deletecollection",
            ),
        }
    }

    fn node(self) -> Answer {
        let Self { node, name, .. } = self;
        match (self.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") if name == node => Ok(()),
            ("", "get" | "list" | "watch") if name.is_empty() => {
                Err(Denied(format!("node '{node}' cannot read all nodes, only its own Node object")))
            }
            ("", "get" | "list" | "watch") => {
                Err(Denied(format!("node '{node}' cannot read '{name}', only its own Node object")))
            }
            _ => told(""),
        }
    }

    fn pod(self, leads: impl FnOnce() -> Answer) -> Answer {
        match (self.subresource, self.verb) {
            ("", "list" | "watch") if self.selects("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if self.name.is_empty() => {
                told("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "get" | "list" | "watch") => leads(),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
            _ => told(""),
        }
    }

    /// Returns whether the request selects only objects whose field names the node.
    fn selects(self, field: &str) -> bool {
        let terms = field_terms(self.fields).unwrap_or_default();
        terms.iter().any(|term| term.equal && term.path == field && term.value == self.node)
    }
}

/// The verbs that a node may use on its own objects.
const KEPT: [&str; 5] = ["get", "create", "update", "patch", "delete"];
