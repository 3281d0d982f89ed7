//! The mode `Node`: what the kubelet of a node may do.
//!
//! | part | decides |
//! |---|---|
//! | `graph` | which objects have to do with which node |
//! | this file | what a node may do with those, and with what all nodes may use alike |
//!
//! A kubelet is a user `system:node:NAME` of the group `system:nodes`. It may read the secrets, config maps, claims and
//! volumes of the pods on its node, ask for tokens of their accounts, and keep its own objects. The plugin `NodeRestriction`
//! looks at what is written, which nobody knows here.
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

/// The namespace of the leases by which nodes show that they live.
const LEASES_IN: &str = "kube-node-lease";

/// Verbs, the group, and resources.
type Allowed = (&'static [&'static str], &'static str, &'static [&'static str]);

/// What all nodes may do alike: upstream's `NodeRules`, without the resources that are told apart below.
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

/// What is asked of nodes, in the parts of a request.
#[derive(Clone, Copy)]
struct Asked<'a> {
    node: &'a str,
    verb: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
    fields: &'a str,
}

/// Why a node may not, in words that clients are shown; empty where nothing is said.
#[derive(Debug)]
struct Denied(String);

/// Whether a node may.
type Answer = Result<(), Denied>;

/// Knows the graph of the cluster once somebody asked.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    graph: RwLock<Option<Graph>>,
}

impl Nodes {
    /// Whether a node may do it. Users who are no nodes may nothing by this mode.
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

    /// Has the graph made anew.
    pub(super) fn forget(&self) {
        *self.graph.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes a write or removal at this key into the graph, where there is one.
    pub(super) fn written(&self, objects: &dyn Objects, key: &Key) {
        let Some(source) = SOURCES.into_iter().find(|source| *source == &*key.resource) else { return };
        let mut known = self.graph.write().unwrap_or_else(PoisonError::into_inner);
        let Some(graph) = known.as_mut() else { return };
        // Looked up while this is held: of several changes the last one is what stays.
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

    /// Whether the object that is asked about has to do with the node.
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
        // Held while reading, so that a change in between is not overwritten by what it replaced.
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

/// A verb in a list of verbs, or the words for another one.
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

    /// An object with the name of the node. That of a new one is not known yet; `NodeRestriction` looks at it.
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

    /// Whether only objects are asked for whose field names the node.
    fn selects(self, field: &str) -> bool {
        let terms = field_terms(self.fields).unwrap_or_default();
        terms.iter().any(|term| term.equal && term.path == field && term.value == self.node)
    }
}

/// What a node may do with its own objects.
const KEPT: [&str; 5] = ["get", "create", "update", "patch", "delete"];
