//! Implements the garbage collector: deletes dependents of deleted owners, releases orphans, and empties deleted namespaces.
//!
//! It is notified of every removal and of every object that waits for it, and processes them in batches, each with
//! one walk over the stored objects. At start it processes everything once, so that nothing is missed over a
//! restart.

mod graph;
mod namespaces;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;

use self::graph::{Graph, Node, Owners};
use super::{Registry, kinds};
use crate::call::{Call, DeleteOptions, Propagation};
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::housekeeping;
use crate::identity::Identity;
use crate::object;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::warning::Warnings;

/// The number of concurrent deletions: enough for a durable commit, which lasts as long as hundreds of changes, and few
/// enough that each batch completes soon.
pub(super) const AT_ONCE: usize = 64;

/// The pause after a walk, in multiples of its time: a fifth of the time is spent walking at most.
const REST: u32 = 4;

/// Records whether there is something to collect.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pending: Mutex<bool>,
    /// How long the walks since the last pause took.
    walked: Mutex<Duration>,
    wake: Notify,
}

impl Collector {
    pub(super) fn poke(&self) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_one();
    }

    fn walked_for(&self, time: Duration) {
        *self.walked.lock().unwrap_or_else(PoisonError::into_inner) += time;
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

impl Registry {
    /// Collects until the future is dropped, if one of its controllers is enabled.
    pub(crate) async fn collect(&self) {
        if ![housekeeping::GARBAGE, housekeeping::NAMESPACES].iter().any(|name| self.controllers.runs(name)) {
            return;
        }
        self.collector.poke();
        loop {
            self.collector.wait().await;
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "garbage collection will try again with the next change");
            }
            // While objects are removed one by one, a walk for each of them is not worth it. Deletions need no pause: what
            // waits behind those of a large namespace has waited long enough.
            let walked =
                std::mem::take(&mut *self.collector.walked.lock().unwrap_or_else(PoisonError::into_inner));
            sleep(walked * REST).await;
        }
    }

    /// Processes all stored objects once.
    ///
    /// # Errors
    /// The first refusal that is not caused by a concurrent change.
    pub(crate) async fn sweep(&self) -> Result<(), Refusal> {
        if self.controllers.runs(housekeeping::GARBAGE) {
            match self.graph() {
                Ok(graph) => self.collect_garbage(&graph).await?,
                Err(error) => {
                    tracing::warn!(%error, "the stored objects cannot be listed for collection; it is tried again");
                    self.collector.poke();
                }
            }
        }
        self.settle_definitions().await;
        if self.controllers.runs(housekeeping::NAMESPACES) {
            self.empty_namespaces().await?;
        }
        Ok(())
    }

    async fn collect_garbage(&self, graph: &Graph) -> Result<(), Refusal> {
        let dependents = graph.dependents();
        let of = |node: &Node| dependents.get(node.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        let mut deleted = Vec::new();
        for node in graph.nodes.iter().filter(|node| node.is_owned()) {
            // One change for all owners that orphan it, as each change rewrites the object.
            let orphaning = graph.orphaning(node);
            if !orphaning.is_empty() {
                self.ignore_races(self.disown(node, &orphaning).await)?;
            } else if !node.terminating {
                deleted.extend(self.judge(node, graph.owners(node), of(node)).await?);
            }
        }
        self.delete_all(&deleted).await?;
        for node in graph.nodes.iter().filter(|node| node.terminating) {
            self.end(node, of(node)).await?;
        }
        Ok(())
    }

    /// Decides whether and how `node` is deleted; if an owner stays, only the references to the others are removed.
    async fn judge<'g>(
        &self,
        node: &'g Node,
        owners: Owners<'g>,
        dependents: &[(&Node, bool)],
    ) -> Result<Option<(&'g Node, Propagation)>, Refusal> {
        let Owners { solid, waiting, mut gone, unknown } = owners;
        if unknown {
            return Ok(None);
        }
        if solid > 0 {
            gone.extend(waiting);
            if !gone.is_empty() {
                self.ignore_races(self.disown(node, &gone).await)?;
            }
            return Ok(None);
        }
        if waiting.is_empty() || dependents.is_empty() {
            return Ok(Some((node, node.propagation())));
        }
        // Owners in a cycle would wait for each other.
        if dependents.iter().any(|(one, _)| one.terminating && one.waits) && node.blocks() {
            self.ignore_races(self.unblock(node).await)?;
            self.collector.poke();
            return Ok(None);
        }
        Ok(Some((node, Propagation::Foreground)))
    }

    /// Carries out what the finalizers of a terminating owner ask for.
    async fn end(&self, owner: &Node, dependents: &[(&Node, bool)]) -> Result<(), Refusal> {
        if owner.orphans {
            return self.ignore_races(self.release(owner, "orphan").await);
        }
        // The removal of a dependent wakes the collector again.
        if owner.waits && !dependents.iter().any(|(_, blocks)| *blocks) {
            return self.ignore_races(self.release(owner, "foregroundDeletion").await);
        }
        Ok(())
    }

    /// Deletes `nodes` unless they changed since they were read, and may have another owner.
    async fn delete_all(&self, nodes: &[(&Node, Propagation)]) -> Result<(), Refusal> {
        let options = |node: &Node, propagation| DeleteOptions {
            uid: Some(node.uid.clone()),
            resource_version: Some(node.resource_version.clone()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let nodes = nodes.iter().map(|(node, propagation)| (*node, options(node, *propagation)));
        self.delete_together(&nodes.collect::<Vec<_>>()).await
    }

    /// Deletes `nodes`, several concurrently, so that a durable store commits them together.
    async fn delete_together(&self, nodes: &[(&Node, DeleteOptions)]) -> Result<(), Refusal> {
        for together in nodes.chunks(AT_ONCE) {
            let deleted = together.iter().map(|(node, options)| self.delete(&node.call, &node.name, options));
            for outcome in join_all(deleted).await {
                self.ignore_races(outcome)?;
            }
        }
        Ok(())
    }

    async fn disown(&self, dependent: &Node, owners: &[&str]) -> Result<(), Refusal> {
        // The number of owners is limited by the size of the object only.
        let owners: HashSet<&str> = owners.iter().copied().collect();
        let gone = |reference: &Value| reference["uid"].as_str().is_some_and(|uid| owners.contains(uid));
        self.amend(&dependent.call, &dependent.name, |object| {
            if let Some(Value::Array(owners)) = object::known_meta_mut(object, "ownerReferences") {
                owners.retain(|reference| !gone(reference));
                if owners.is_empty() {
                    object::set_meta(object, "ownerReferences", None);
                }
            }
        })
        .await
    }

    /// Stops it from blocking the deletion of its owners.
    async fn unblock(&self, dependent: &Node) -> Result<(), Refusal> {
        self.amend(&dependent.call, &dependent.name, |object| {
            let owners = object::known_meta_mut(object, "ownerReferences").and_then(Value::as_array_mut);
            for reference in owners.into_iter().flatten() {
                object::set_field(reference, "blockOwnerDeletion", Some(json!(false)));
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

    /// Ignores a concurrent change or removal; a changed object is processed again.
    fn ignore_races<T>(&self, outcome: Result<T, Refusal>) -> Result<(), Refusal> {
        match outcome {
            Err(refusal) if refusal.code() == 409 => {
                self.collector.poke();
                Ok(())
            }
            Err(refusal) if refusal.code() != 404 => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Changes an object as the server itself: without admission and validation.
    async fn amend(&self, call: &Call, name: &str, change: impl Fn(&mut Value)) -> Result<(), Refusal> {
        let key = call.key(name);
        let live = self.store.latest(&key).ok_or_else(|| Refusal::not_found(&call.info, name))?;
        let mut next = (*live.object).clone();
        change(&mut next);
        if next == *live.object {
            return Ok(());
        }
        if kinds::is_finished(&call.info, &next) {
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

    /// Returns the server's own call for an object of the resource: for a custom resource in the stored version, served or
    /// not, which needs no conversion.
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
            emptied: Emptied::default(),
            conversions: Conversions::default(),
            clock: self.clock.clone(),
            admitted: false,
        }
    }
}
