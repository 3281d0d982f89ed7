//! Builds the graph of owners and dependents at one revision of the store.
//!
//! All kinds are listed at the same revision: listed one after the other, an owner that is created with its dependents, or
//! removed after them, would seem to be gone while they still name it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::call::{Call, Propagation};
use crate::object;
use crate::registry::Registry;
use crate::resources::{ResourceInfo, Scope};
use crate::served::Served;
use crate::store::{Kept, Key, Range, StoreError};

/// One stored object, with what collection needs.
pub(super) struct Node {
    pub(super) call: Call,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    owners: Vec<Owner>,
    /// Whether its dependents are orphaned before it is removed.
    pub(super) orphans: bool,
    /// Whether it waits until its dependents are removed.
    pub(super) waits: bool,
    pub(super) terminating: bool,
}

/// An owner reference.
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    /// Whether the object blocks the foreground deletion of this owner.
    blocks: bool,
}

/// The state of an owner.
enum State<'g> {
    /// It exists, and stays or orphans its dependents.
    Solid(&'g Node),
    /// It exists until its dependents are removed.
    Waiting(&'g Node),
    /// It does not exist at the reference's place, or has another uid.
    Gone,
    /// Cannot be determined: its kind is not served, or is namespaced while the dependent is not.
    Unknown,
}

/// All stored objects.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    by_key: HashMap<Key, usize>,
    kinds: HashMap<(String, String), Arc<ResourceInfo>>,
}

/// The owners of one object, by state.
#[derive(Default)]
pub(super) struct Owners<'g> {
    pub(super) solid: usize,
    pub(super) waiting: Vec<&'g str>,
    pub(super) gone: Vec<&'g str>,
    pub(super) unknown: bool,
}

impl Graph {
    /// Returns the dependents of each existing owner by its uid, and whether they block its deletion.
    pub(super) fn dependents(&self) -> HashMap<&str, Vec<(&Node, bool)>> {
        let mut dependents: HashMap<&str, Vec<(&Node, bool)>> = HashMap::new();
        for node in &self.nodes {
            for owner in &node.owners {
                if let State::Solid(found) | State::Waiting(found) = self.state(node, owner) {
                    dependents.entry(&found.uid).or_default().push((node, owner.blocks));
                }
            }
        }
        dependents
    }

    /// Returns the owners of `node` by state.
    pub(super) fn owners<'g>(&'g self, node: &'g Node) -> Owners<'g> {
        let mut owners = Owners::default();
        for owner in &node.owners {
            match self.state(node, owner) {
                State::Solid(_) => owners.solid += 1,
                State::Waiting(_) => owners.waiting.push(&owner.uid),
                State::Gone => owners.gone.push(&owner.uid),
                State::Unknown => owners.unknown = true,
            }
        }
        owners
    }

    /// Returns the terminating owners of `node` that orphan it.
    pub(super) fn orphaning<'g>(&'g self, node: &'g Node) -> Vec<&'g str> {
        let lets_go = |owner: &Owner| match self.state(node, owner) {
            State::Solid(found) | State::Waiting(found) => found.terminating && found.orphans,
            State::Gone | State::Unknown => false,
        };
        node.owners.iter().filter(|owner| lets_go(owner)).map(|owner| owner.uid.as_str()).collect()
    }

    /// Returns the state of an owner, which is looked up at the reference's place as by kube-controller-manager: an object
    /// with the same uid elsewhere does not count.
    fn state(&self, node: &Node, owner: &Owner) -> State<'_> {
        let kind = (owner.api_version.clone(), owner.kind.clone());
        let Some(info) = self.kinds.get(&kind) else { return State::Unknown };
        let namespace = match info.scope {
            Scope::Namespaced if node.call.namespace.is_empty() => return State::Unknown,
            Scope::Namespaced => node.call.namespace.clone(),
            Scope::Cluster => String::new(),
        };
        let key = Key { resource: info.storage_key.as_str().into(), namespace, name: owner.name.clone() };
        let found = self.by_key.get(&key).and_then(|place| self.nodes.get(*place));
        match found.filter(|found| found.uid == owner.uid) {
            None => State::Gone,
            Some(found) if found.terminating && found.waits => State::Waiting(found),
            Some(found) => State::Solid(found),
        }
    }
}

impl Node {
    pub(super) fn is_owned(&self) -> bool {
        !self.owners.is_empty()
    }

    /// Returns whether it blocks the deletion of an owner.
    pub(super) fn blocks(&self) -> bool {
        self.owners.iter().any(|owner| owner.blocks)
    }

    /// Returns how its own dependents are treated when it is deleted, according to its finalizers.
    pub(super) fn propagation(&self) -> Propagation {
        match (self.orphans, self.waits) {
            (true, _) => Propagation::Orphan,
            (false, true) => Propagation::Foreground,
            (false, false) => Propagation::Background,
        }
    }
}

impl Registry {
    /// Builds the graph of all stored objects.
    ///
    /// # Errors
    /// If the store cannot list them: without all of them missing owners cannot be determined.
    pub(super) fn graph(&self) -> Result<Graph, StoreError> {
        let began = Instant::now();
        let at = self.store.revision();
        let served = self.served();
        let nodes = self.nodes(&served, at)?;
        let place = |(place, node): (usize, &Node)| (node.call.key(&node.name), place);
        let by_key = nodes.iter().enumerate().map(place).collect();
        let mut kinds = HashMap::new();
        for info in served.table.rows().iter().filter(|info| !info.storage_key.is_empty()) {
            kinds.entry((info.api_version(), info.kind.clone())).or_insert_with(|| Arc::clone(info));
        }
        self.collector.walked_for(began.elapsed());
        Ok(Graph { nodes, by_key, kinds })
    }

    fn nodes(&self, served: &Served, at: u64) -> Result<Vec<Node>, StoreError> {
        let mut seen = HashSet::new();
        let mut nodes = Vec::new();
        for info in served.table.rows() {
            if info.storage_key.is_empty() || !seen.insert(info.storage_key.as_str()) {
                continue;
            }
            let mut collect = |kept: &Kept| {
                let head = kept.object.head();
                nodes.push(node(self.own_call_about(info, &head), &head));
                false
            };
            let range = Range { at: Some(at), ..Range::default() };
            self.store.list(&info.storage_key, range, 0, &mut collect)?;
        }
        Ok(nodes)
    }
}

fn node(call: Call, object: &Value) -> Node {
    let owners = object::meta(object, "ownerReferences").and_then(Value::as_array);
    let text = |reference: &Value, name: &str| reference[name].as_str().unwrap_or_default().to_owned();
    let owner = |reference: &Value| Owner {
        api_version: text(reference, "apiVersion"),
        kind: text(reference, "kind"),
        name: text(reference, "name"),
        uid: text(reference, "uid"),
        blocks: reference["blockOwnerDeletion"] == true,
    };
    let finalizers = object::finalizers(object);
    Node {
        call,
        name: object::name(object).to_owned(),
        uid: object::uid(object).to_owned(),
        resource_version: object::resource_version(object).to_owned(),
        owners: owners.into_iter().flatten().map(owner).collect(),
        orphans: finalizers.contains(&"orphan"),
        waits: finalizers.contains(&"foregroundDeletion"),
        terminating: object::is_terminating(object),
    }
}
