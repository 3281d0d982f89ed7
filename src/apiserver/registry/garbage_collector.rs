//! The garbage collector: deletes dependents of deleted owners, releases orphans, and empties deleted namespaces.
//!
//! It is notified of every removal and of every object that waits for it, and processes them in batches, each with
//! one walk over the stored objects. At start it looks at everything once, so that nothing is forgotten over a
//! restart.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::Registry;
use crate::call::{Call, DeleteOptions, ListOptions, Propagation};
use crate::conversion::Conversions;
use crate::identity::Identity;
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::warning::Warnings;

/// Objects that are deleted at once: enough for a commit that lasts as long as hundreds of changes are made, and few enough
/// that each batch is answered soon.
pub(super) const AT_ONCE: usize = 64;

/// How many times as long as its last walk the collector rests: a fifth of the time is walked at most.
const REST: u32 = 4;

/// What the collector was told since it last looked.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pending: Mutex<bool>,
    wake: Notify,
}

impl Collector {
    pub(super) fn poke(&self) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_one();
    }

    async fn wait(&self) {
        loop {
            let due = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
            if due {
                return;
            }
            self.wake.notified().await;
        }
    }
}

/// One stored object, as far as collection goes.
struct Node {
    call: Call,
    name: String,
    uid: String,
    /// By uid, whether the object blocks the owner's deletion.
    owners: BTreeMap<String, bool>,
    /// Whether its dependents are let go before it goes.
    orphans: bool,
    /// Whether it waits until they are gone.
    waits: bool,
    terminating: bool,
}

impl Registry {
    /// Collects until the future is dropped.
    pub(crate) async fn collect(&self) {
        self.collector.poke();
        loop {
            self.collector.wait().await;
            let began = Instant::now();
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "garbage collection will try again with the next change");
            }
            // While objects go one by one, a walk over all that are left is not worth each of them.
            sleep(began.elapsed() * REST).await;
        }
    }

    /// Processes all stored objects once.
    ///
    /// # Errors
    /// The first refusal that is not a race with somebody else.
    pub(crate) async fn sweep(&self) -> Result<(), Refusal> {
        let nodes = self.nodes();
        let alive: HashSet<&str> = nodes.iter().map(|node| node.uid.as_str()).collect();
        let orphaning: HashSet<&str> = nodes
            .iter()
            .filter(|node| node.terminating && node.orphans)
            .map(|node| node.uid.as_str())
            .collect();
        let mut dependents: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in &nodes {
            // One change for all owners that let it go: each change is as large as the object.
            if node.owners.keys().any(|owner| orphaning.contains(owner.as_str())) {
                ignore_races(self.disown(node, &orphaning).await)?;
            }
            for owner in node.owners.keys().filter(|owner| alive.contains(owner.as_str())) {
                dependents.entry(owner.as_str()).or_default().push(node);
            }
        }
        let orphaned = |node: &&Node| {
            !node.owners.is_empty() && node.owners.keys().all(|owner| !alive.contains(owner.as_str()))
        };
        let left_behind: Vec<&Node> =
            nodes.iter().filter(|node| !node.terminating).filter(orphaned).collect();
        self.delete_all(&left_behind, |node| of_uid(&node.uid)).await?;
        let mut ended = HashSet::new();
        for node in nodes.iter().filter(|node| node.terminating) {
            let own = dependents.get(node.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
            self.end(node, own, &mut ended).await?;
        }
        self.settle_definitions().await;
        self.empty_namespaces().await
    }

    /// Does what the finalizers of a terminating owner ask for. `ended`: the dependents that were told to go.
    async fn end<'n>(
        &self,
        owner: &Node,
        dependents: &[&'n Node],
        ended: &mut HashSet<&'n str>,
    ) -> Result<(), Refusal> {
        if owner.orphans {
            return ignore_races(self.release(owner, "orphan").await);
        }
        if !owner.waits {
            return Ok(());
        }
        let blocked = dependents.iter().any(|one| one.owners.get(&owner.uid).is_some_and(|blocks| *blocks));
        let mut going: Vec<&Node> = dependents.iter().copied().filter(|one| !one.terminating).collect();
        going.retain(|one| ended.insert(&one.uid));
        let with_theirs =
            |one: &Node| DeleteOptions { propagation: Some(Propagation::Foreground), ..of_uid(&one.uid) };
        self.delete_all(&going, with_theirs).await?;
        // A dependent's removal pokes the collector again, which then finds the owner free.
        if blocked { Ok(()) } else { ignore_races(self.release(owner, "foregroundDeletion").await) }
    }

    /// Deletes `nodes`, so many at once that a durable store commits them together.
    async fn delete_all(
        &self,
        nodes: &[&Node],
        options: impl Fn(&Node) -> DeleteOptions,
    ) -> Result<(), Refusal> {
        for together in nodes.chunks(AT_ONCE) {
            let options: Vec<DeleteOptions> = together.iter().map(|node| options(node)).collect();
            let deleted = together
                .iter()
                .zip(&options)
                .map(|(node, options)| self.delete(&node.call, &node.name, options));
            for outcome in join_all(deleted).await {
                ignore_races(outcome)?;
            }
        }
        Ok(())
    }

    async fn disown(&self, dependent: &Node, owners: &HashSet<&str>) -> Result<(), Refusal> {
        let gone = |reference: &Value| reference["uid"].as_str().is_some_and(|uid| owners.contains(uid));
        self.amend(&dependent.call, &dependent.name, |object| {
            if let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") {
                owners.retain(|reference| !gone(reference));
                if owners.is_empty() {
                    object::set_meta(object, "ownerReferences", None);
                }
            }
        })
        .await
    }

    async fn release(&self, owner: &Node, finalizer: &str) -> Result<(), Refusal> {
        self.amend(&owner.call, &owner.name, |object| {
            let kept: Vec<&str> =
                object::finalizers(object).into_iter().filter(|name| *name != finalizer).collect();
            let kept = (!kept.is_empty()).then(|| json!(kept));
            object::set_meta(object, "finalizers", kept);
        })
        .await
    }

    async fn empty_namespaces(&self) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("", "v1", "namespaces") else { return Ok(()) };
        let call = self.own_call(info, "");
        let namespaces = self.list_unconverted(&call, &ListOptions::default())?.items;
        let going: Vec<&str> =
            namespaces.iter().filter(|one| object::is_terminating(one)).map(object::name).collect();
        if going.is_empty() {
            return Ok(());
        }
        let nodes = self.nodes();
        let mut content: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in &nodes {
            content.entry(node.call.namespace.as_str()).or_default().push(node);
        }
        for name in going {
            let nodes = content.get(name).map(Vec::as_slice).unwrap_or_default();
            self.empty_namespace(&call, name, nodes).await?;
        }
        Ok(())
    }

    async fn empty_namespace(&self, call: &Call, name: &str, nodes: &[&Node]) -> Result<(), Refusal> {
        let at_once = |node: &Node| DeleteOptions {
            grace_period_seconds: Some(0),
            propagation: Some(Propagation::Background),
            ..of_uid(&node.uid)
        };
        self.delete_all(nodes, at_once).await?;
        if nodes.iter().any(|node| self.store.kept(&node.call.key(&node.name)).is_some()) {
            return Ok(());
        }
        ignore_races(self.amend(call, name, |namespace| namespace["spec"]["finalizers"] = json!([])).await)
    }

    /// A change by the server itself: no admission, no validation.
    async fn amend(&self, call: &Call, name: &str, change: impl Fn(&mut Value)) -> Result<(), Refusal> {
        let key = call.key(name);
        let live = self.store.latest(&key).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        let mut next = (*live.object).clone();
        change(&mut next);
        if next == *live.object {
            return Ok(());
        }
        if super::kinds::is_finished(&call.info, &next) {
            self.store
                .delete(&key, live.revision, next)
                .await
                .map_err(|_| Refusal::modified(&call.info, name))?;
            self.after_delete(call, &live.object).await;
        } else {
            let expect = crate::store::Expect::Revision(live.revision);
            self.store.put(&key, expect, next).await.map_err(|_| Refusal::modified(&call.info, name))?;
        }
        Ok(())
    }

    /// About an object of the resource. If that is a custom one, in the version that the object is stored in, served or not:
    /// in that one it can always be had.
    pub(super) fn own_call_about(&self, info: &Arc<ResourceInfo>, object: &Value) -> Call {
        let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let served = self.served();
        let versions = served.custom_kind(&info.group, &info.plural).map(|kind| kind.versions.as_slice());
        let mut versions = versions.unwrap_or_default().iter();
        let stored_in = versions.find(|candidate| candidate.info.api_version() == version);
        self.own_call(stored_in.map_or(info, |stored_in| &stored_in.info), object::namespace(object))
    }

    pub(super) fn own_call(&self, info: &Arc<ResourceInfo>, namespace: &str) -> Call {
        Call {
            info: Arc::clone(info),
            custom: self.served().custom_version(info),
            namespace: namespace.to_owned(),
            subresource: None,
            identity: Identity::new(
                "system:serviceaccount:kube-system:generic-garbage-collector",
                [crate::identity::MASTERS.to_owned()],
            ),
            warnings: Warnings::default(),
            conversions: Conversions::default(),
            clock: self.clock.clone(),
            admitted: false,
        }
    }

    fn nodes(&self) -> Vec<Node> {
        let served = self.served();
        let mut seen = HashSet::new();
        let mut nodes = Vec::new();
        for info in served.table.rows() {
            if info.storage_key.is_empty() || !seen.insert(info.storage_key.clone()) {
                continue;
            }
            let mut collect = |kept: &crate::store::Kept| {
                let head = kept.object.head();
                nodes.push(node(self.own_call_about(info, &head), &head));
                false
            };
            let range = crate::store::Range::default();
            if let Err(error) = self.store.list(&info.storage_key, range, 0, &mut collect) {
                tracing::warn!(%error, resource = info.plural, "cannot be listed for collection");
            }
        }
        nodes
    }
}

fn node(call: Call, object: &Value) -> Node {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = |reference: &Value| {
        let uid = reference["uid"].as_str().unwrap_or_default().to_owned();
        (uid, reference["blockOwnerDeletion"] == true)
    };
    let mut blocked_by: BTreeMap<String, bool> = BTreeMap::new();
    for (uid, blocks) in owners.into_iter().flatten().map(owner) {
        *blocked_by.entry(uid).or_default() |= blocks;
    }
    let finalizers = object::finalizers(object);
    Node {
        call,
        name: object::name(object).to_owned(),
        uid: object::uid(object).to_owned(),
        owners: blocked_by,
        orphans: finalizers.contains(&"orphan"),
        waits: finalizers.contains(&"foregroundDeletion"),
        terminating: object::is_terminating(object),
    }
}

fn of_uid(uid: &str) -> DeleteOptions {
    DeleteOptions { uid: Some(uid.to_owned()), ..DeleteOptions::default() }
}

/// Somebody else changed or removed the object meanwhile; that change wakes the collector itself.
fn ignore_races<T>(outcome: Result<T, Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(refusal) if !matches!(refusal.code(), 404 | 409) => Err(refusal),
        _ => Ok(()),
    }
}
