//! Runs Pods as scheduler and kubelet of a cluster do: binds them to the node, prepares what their containers need, starts and
//! probes them, follows them to their end, and terminates them when they are deleted.
//!
//! The end of a Pod that an earlier process ran is unknown: it fails, like the Pods of a lost node.

mod container;
mod env;
mod error;
mod hooks;
mod ignored;
mod instance;
mod life;
mod limits;
mod network_probe;
mod pod_status;
mod probes;
mod projected;
mod restart_policy;
mod run;
mod schedule;
mod service_account;
mod termination_message;
mod volume_refresh;
mod volumes;
mod worker;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;
use kube::{Client, ResourceExt as _};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::actors::Actors;
use super::cgroups::Groups;
use super::events::Events;
use super::{NODE, Settings, node};

pub(super) use self::env::Kind;
pub(super) use self::volume_refresh::Change;

/// The address of all Pods, which is this machine's.
const ADDRESS: &str = "127.0.0.1";

/// The newest state of a Pod; None when it is deleted.
type News = watch::Receiver<Option<Arc<Pod>>>;

/// What every Pod's task needs.
struct Context {
    client: Client,
    settings: Arc<Settings>,
    events: Events,
    scheduler: Events,
    /// The control groups that enforce limits.
    groups: Groups,
    /// A permit for each Pod that may run.
    room: Arc<Semaphore>,
    shutdown: CancellationToken,
    /// Counts changes of claims.
    claims: watch::Receiver<u64>,
    /// Reports changed Secrets and ConfigMaps.
    changes: broadcast::Sender<Change>,
}

/// All Pods of the API server; those of this node by their uid.
pub(super) struct Pods {
    context: Arc<Context>,
    actors: Actors<String, Option<Arc<Pod>>>,
    /// The Pods in a list that is being read.
    listed: BTreeSet<String>,
}

impl Pods {
    pub(super) fn new(client: &Client, settings: Arc<Settings>, claims: watch::Receiver<u64>) -> Self {
        let context = Context {
            client: client.clone(),
            events: Events::new(client, "kubelet"),
            scheduler: Events::new(client, "default-scheduler"),
            room: Arc::new(Semaphore::new(settings.pods)),
            settings,
            groups: Groups::find(),
            shutdown: CancellationToken::new(),
            claims,
            changes: Change::channel(),
        };
        Self { context: Arc::new(context), actors: Actors::new(), listed: BTreeSet::new() }
    }

    /// Handles a watch event about a Pod.
    pub(super) fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Apply(pod) => self.seen(pod),
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.uid());
                self.seen(pod);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<String> = self
                    .actors
                    .all()
                    .map(|(uid, _)| uid.clone())
                    .filter(|uid| !listed.contains(uid))
                    .collect();
                gone.iter().for_each(|uid| self.gone(uid));
                self.sweep(&listed);
            }
            Event::Delete(pod) => self.gone(&pod.uid().unwrap_or_default()),
        }
    }

    /// Notifies the running Pods of a Secret or ConfigMap that may have changed.
    pub(super) fn changed(&self, change: Change) {
        // Without a running Pod there is no receiver.
        let _ = self.context.changes.send(change);
    }

    fn seen(&mut self, pod: Pod) {
        let Some(uid) = pod.uid() else { return };
        let pod = Arc::new(pod);
        match self.actors.get(&uid) {
            Some(task) => drop(task.send(Some(pod))),
            None if is_for_us(&pod) => {
                let context = Arc::clone(&self.context);
                self.actors.start(uid, Some(pod), |news| life::live(context, news));
            }
            None => {}
        }
    }

    fn gone(&mut self, uid: &str) {
        match self.actors.get(&uid.to_owned()) {
            // A task that still runs cleans up by itself.
            Some(task) if task.send(None).is_ok() => {}
            _ => {
                self.actors.forget(&uid.to_owned());
                remove(self.context.folder(uid));
            }
        }
    }

    /// Removes the folders of Pods that were deleted unseen.
    fn sweep(&self, living: &BTreeSet<String>) {
        let entries = std::fs::read_dir(node::pods(&self.context.settings.folder));
        for entry in entries.into_iter().flatten().flatten() {
            let uid = entry.file_name().to_string_lossy().into_owned();
            if !living.contains(&uid) && self.actors.get(&uid).is_none() {
                remove(entry.path());
            }
        }
    }

    /// Waits until one of the tasks ends.
    pub(super) async fn ended(&mut self) {
        let uid = self.actors.ended().await;
        let gone = self.actors.get(&uid).is_some_and(|task| task.borrow().is_none());
        if gone {
            self.gone(&uid);
        }
    }

    /// Terminates all Pods.
    pub(super) async fn stop(&mut self) {
        self.context.shutdown.cancel();
        self.actors.join().await;
    }
}

impl Context {
    fn folder(&self, uid: &str) -> PathBuf {
        node::pods(&self.settings.folder).join(uid)
    }
}

/// Whether a Pod has no node yet, or is one of this node that has not ended.
fn is_for_us(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let over = ["Succeeded", "Failed"].contains(&phase);
    !over && (node == NODE || (node.is_empty() && pod.metadata.deletion_timestamp.is_none()))
}

/// Removes a Pod's folder on a blocking thread: volumes may be large.
fn remove(folder: PathBuf) {
    tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            warn!(folder = %folder.display(), %error, "what a Pod left is not removed");
        }
        _ => {}
    });
}
