//! Maintains which objects belong to each node: those that its pods use, and those that name it.
//!
//! ```text
//! node <- pod <- secret, config map, claim of a volume, claim of devices, account
//! node <- pod <- claim <- persistent volume <- secret
//! node <- volume attachment, resource slice
//! ```
//!
//! Upstream keeps edges between vertices. Here each object counts the pods of each node that use it, so that a lookup
//! does not walk all pods that share a secret.

use std::collections::{BTreeSet, HashMap};

use admit_apimachinery::pointer::text;
use serde_json::Value;

use crate::kinds::shared::pod_uses;
use crate::object;

/// The resources from which the graph is built: their plurals, which are also their storage keys.
pub(super) const PODS: &str = "pods";
pub(super) const VOLUMES: &str = "persistentvolumes";
pub(super) const ATTACHMENTS: &str = "volumeattachments";
pub(super) const SLICES: &str = "resourceslices";
pub(super) const SOURCES: [&str; 4] = [PODS, VOLUMES, ATTACHMENTS, SLICES];

/// The kind of an object in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Vertex {
    Account,
    Attachment,
    Claim,
    ConfigMap,
    Pod,
    ResourceClaim,
    Secret,
    Slice,
    Volume,
}

/// Namespace and name.
type Place = (String, String);

#[derive(Debug, Default)]
pub(super) struct Graph {
    pods: HashMap<Place, Pod>,
    /// The number of pods of each node that use an object, by the object.
    users: HashMap<(Vertex, Place), HashMap<String, usize>>,
    volumes: HashMap<String, Volume>,
    /// The volumes that are accessed with a secret, by the secret.
    opened: HashMap<Place, BTreeSet<String>>,
    attachments: HashMap<String, String>,
    slices: HashMap<String, String>,
}

/// A pod on a node. What it uses is immutable, except for resource claims that are generated for it.
#[derive(Debug)]
struct Pod {
    node: String,
    uid: String,
    made: [Value; 2],
    uses: BTreeSet<(Vertex, String)>,
}

#[derive(Debug)]
struct Volume {
    claim: Place,
    secrets: Vec<Place>,
}

impl Graph {
    /// Adds or updates an object of one of the [`SOURCES`].
    pub(super) fn insert(&mut self, source: &str, object: &Value) {
        let name = object::name(object);
        match source {
            PODS => self.insert_pod(object),
            VOLUMES => self.insert_volume(object),
            ATTACHMENTS => put(&mut self.attachments, name, text(object, "/spec/nodeName")),
            SLICES => put(&mut self.slices, name, text(object, "/spec/nodeName")),
            _ => {}
        }
    }

    pub(super) fn remove(&mut self, source: &str, namespace: &str, name: &str) {
        match source {
            PODS => self.remove_pod(&place(namespace, name)),
            VOLUMES => self.remove_volume(name),
            ATTACHMENTS => drop(self.attachments.remove(name)),
            SLICES => drop(self.slices.remove(name)),
            _ => {}
        }
    }

    /// Returns whether the object belongs to the node.
    pub(super) fn leads(&self, vertex: Vertex, (namespace, name): (&str, &str), node: &str) -> bool {
        let is_it = |known: Option<&String>| known.is_some_and(|known| known == node);
        let at = place(namespace, name);
        match vertex {
            Vertex::Attachment => is_it(self.attachments.get(name)),
            Vertex::Slice => is_it(self.slices.get(name)),
            Vertex::Pod => is_it(self.pods.get(&at).map(|pod| &pod.node)),
            Vertex::Volume => self.opens(name, node),
            Vertex::Secret => {
                let opened = self.opened.get(&at);
                self.is_used(vertex, at, node)
                    || opened.into_iter().flatten().any(|volume| self.opens(volume, node))
            }
            Vertex::Account | Vertex::Claim | Vertex::ConfigMap | Vertex::ResourceClaim => {
                self.is_used(vertex, at, node)
            }
        }
    }

    /// Returns whether a pod of the node uses the claim that is bound to the volume.
    fn opens(&self, volume: &str, node: &str) -> bool {
        let claim = self.volumes.get(volume).map(|volume| volume.claim.clone());
        claim.is_some_and(|claim| self.is_used(Vertex::Claim, claim, node))
    }

    fn is_used(&self, vertex: Vertex, at: Place, node: &str) -> bool {
        self.users.get(&(vertex, at)).is_some_and(|nodes| nodes.contains_key(node))
    }

    fn insert_pod(&mut self, object: &Value) {
        let node = text(object, "/spec/nodeName");
        if node.is_empty() {
            return;
        }
        let at = place(object::namespace(object), object::name(object));
        let made = ["/status/resourceClaimStatuses", "/status/extendedResourceClaimStatus"]
            .map(|made| object.pointer(made).cloned().unwrap_or_default());
        if let Some(known) = self.pods.get(&at)
            && known.node == node
            && known.uid == object::uid(object)
            && known.made == made
        {
            return;
        }
        self.remove_pod(&at);
        let uses = if pod_uses::is_mirror(object) { BTreeSet::new() } else { uses(object) };
        for (vertex, name) in &uses {
            let key = (*vertex, place(&at.0, name));
            let count = self.users.entry(key).or_default().entry(node.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        let pod = Pod { node: node.to_owned(), uid: object::uid(object).to_owned(), made, uses };
        self.pods.insert(at, pod);
    }

    fn remove_pod(&mut self, at: &Place) {
        let Some(pod) = self.pods.remove(at) else { return };
        for (vertex, name) in pod.uses {
            let key = (vertex, place(&at.0, &name));
            let Some(nodes) = self.users.get_mut(&key) else { continue };
            if let Some(count) = nodes.get_mut(&pod.node) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    nodes.remove(&pod.node);
                }
            }
            if nodes.is_empty() {
                self.users.remove(&key);
            }
        }
    }

    fn insert_volume(&mut self, object: &Value) {
        let name = object::name(object);
        self.remove_volume(name);
        let Some(claim) = object.pointer("/spec/claimRef").filter(|claim| claim.is_object()) else { return };
        let secrets: Vec<Place> =
            pod_uses::secrets_of_volume(object).map(|(namespace, secret)| place(namespace, secret)).collect();
        for secret in &secrets {
            self.opened.entry(secret.clone()).or_default().insert(name.to_owned());
        }
        let claim = place(text(claim, "/namespace"), text(claim, "/name"));
        self.volumes.insert(name.to_owned(), Volume { claim, secrets });
    }

    fn remove_volume(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else { return };
        for secret in volume.secrets {
            let Some(volumes) = self.opened.get_mut(&secret) else { continue };
            volumes.remove(name);
            if volumes.is_empty() {
                self.opened.remove(&secret);
            }
        }
    }
}

/// Returns the objects that the node of a pod may read.
fn uses(pod: &Value) -> BTreeSet<(Vertex, String)> {
    let account = text(pod, "/spec/serviceAccountName");
    let of = |vertex: Vertex, name: &str| (vertex, name.to_owned());
    let mut uses: BTreeSet<(Vertex, String)> =
        pod_uses::claims(pod).map(|name| (Vertex::Claim, name)).collect();
    uses.extend(pod_uses::secrets(pod).map(|name| of(Vertex::Secret, name)));
    uses.extend(pod_uses::config_maps(pod).map(|name| of(Vertex::ConfigMap, name)));
    uses.extend(pod_uses::resource_claims(pod).map(|name| of(Vertex::ResourceClaim, name)));
    uses.extend((!account.is_empty()).then(|| of(Vertex::Account, account)));
    uses
}

fn put(known: &mut HashMap<String, String>, name: &str, node: &str) {
    if node.is_empty() {
        known.remove(name);
    } else {
        known.insert(name.to_owned(), node.to_owned());
    }
}

fn place(namespace: &str, name: &str) -> Place {
    (namespace.to_owned(), name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str, spec: &Value) -> Value {
        let mut pod = json!({"metadata": {"name": name, "namespace": "n", "uid": name}, "spec": spec});
        pod["spec"]["nodeName"] = node.into();
        pod
    }

    #[test]
    fn objects_lead_to_a_node_as_long_as_its_pods_use_them() {
        let mut graph = Graph::default();
        let spec = json!({"volumes": [{"secret": {"secretName": "s"}}, {"persistentVolumeClaim": {"claimName": "c"}}]});
        let volume = json!({"metadata": {"name": "v"}, "spec": {"claimRef": {"namespace": "n", "name": "c"},
            "csi": {"nodeStageSecretRef": {"namespace": "o", "name": "t"}}}});
        let all = [
            (Vertex::Secret, ("n", "s")),
            (Vertex::Claim, ("n", "c")),
            (Vertex::Volume, ("", "v")),
            (Vertex::Secret, ("o", "t")),
        ];
        let led = |graph: &Graph, node: &str| all.map(|(vertex, at)| graph.leads(vertex, at, node));
        graph.insert(VOLUMES, &volume);
        assert_eq!(led(&graph, "a"), [false; 4]);
        for name in ["p", "q"] {
            graph.insert(PODS, &pod(name, "a", &spec));
        }
        assert_eq!((led(&graph, "a"), led(&graph, "b")), ([true; 4], [false; 4]));
        graph.remove(PODS, "n", "p");
        assert_eq!(led(&graph, "a"), [true; 4], "the other pod uses them still");
        graph.insert(VOLUMES, &json!({"metadata": {"name": "v"}, "spec": {}}));
        assert_eq!(led(&graph, "a"), [true, true, false, false]);
        graph.insert(VOLUMES, &volume);
        graph.remove(PODS, "n", "q");
        assert_eq!(led(&graph, "a"), [false; 4]);
        graph.remove(VOLUMES, "", "v");
        assert!(graph.users.is_empty() && graph.opened.is_empty() && graph.pods.is_empty());
    }

    #[test]
    fn what_a_pod_uses_is_read_when_it_gets_its_node() {
        let mut graph = Graph::default();
        let leads = |graph: &Graph, secret: &str| graph.leads(Vertex::Secret, ("n", secret), "a");
        let with = |secret: &str| json!({"imagePullSecrets": [{"name": secret}]});
        let mut mirror = pod("m", "a", &with("s"));
        mirror["metadata"]["annotations"] = json!({pod_uses::MIRROR: "x"});
        graph.insert(PODS, &mirror);
        assert!(!leads(&graph, "s"), "mirror pods give nothing");
        assert!(graph.leads(Vertex::Pod, ("n", "m"), "a"));
        graph.insert(PODS, &pod("p", "", &with("s")));
        assert!(!leads(&graph, "s"), "it has no node yet");
        graph.insert(PODS, &pod("p", "a", &with("s")));
        graph.insert(PODS, &pod("p", "a", &with("t")));
        assert_eq!([leads(&graph, "s"), leads(&graph, "t")], [true, false], "the same pod");
        let mut other = pod("p", "a", &with("t"));
        other["metadata"]["uid"] = "another".into();
        graph.insert(PODS, &other);
        assert_eq!([leads(&graph, "s"), leads(&graph, "t")], [false, true]);
        other["status"] = json!({"extendedResourceClaimStatus": {"resourceClaimName": "r"}});
        graph.insert(PODS, &other);
        assert!(graph.leads(Vertex::ResourceClaim, ("n", "r"), "a"));
    }
}
