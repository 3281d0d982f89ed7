//! Pods, as scheduler and kubelet of a cluster run them: bound to the node, given what their containers ask for, started,
//! probed, followed to their end, ended when they are deleted.
//!
//! A Pod that an earlier process ran has nobody who knows how it ended: it fails, as the Pods of a node that was lost do.

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

/// Every Pod has this machine's own address.
const ADDRESS: &str = "127.0.0.1";

/// A Pod as it is now; none when it has gone.
type News = watch::Receiver<Option<Arc<Pod>>>;

/// What every Pod's task needs.
struct Context {
    client: Client,
    settings: Arc<Settings>,
    events: Events,
    scheduler: Events,
    /// What holds containers to their limits.
    groups: Groups,
    /// A permit for each Pod that may run.
    room: Arc<Semaphore>,
    shutdown: CancellationToken,
    /// Counts changes of claims.
    claims: watch::Receiver<u64>,
    /// Tells of Secrets and ConfigMaps that changed.
    changes: broadcast::Sender<Change>,
}

/// All Pods of the API server; those of this node by their uid.
pub(super) struct Pods {
    context: Arc<Context>,
    actors: Actors<String, Option<Arc<Pod>>>,
    /// Those that a list under way has named.
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

    /// Takes news of a Pod.
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

    /// Tells the Pods that run of a Secret or ConfigMap that may have changed.
    pub(super) fn changed(&self, change: Change) {
        // Nobody hears where nothing runs.
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
            // A task that is still there tidies up itself.
            Some(task) if task.send(None).is_ok() => {}
            _ => {
                self.actors.forget(&uid.to_owned());
                remove(self.context.folder(uid));
            }
        }
    }

    /// Removes what Pods left that have gone while nobody watched.
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

    /// Ends what runs.
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

/// Whether a Pod is one that has no node yet, or one of ours that has not ended.
fn is_for_us(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let over = ["Succeeded", "Failed"].contains(&phase);
    !over && (node == NODE || (node.is_empty() && pod.metadata.deletion_timestamp.is_none()))
}

/// Removes a Pod's folder on a thread of its own: volumes may be large.
fn remove(folder: PathBuf) {
    tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            warn!(folder = %folder.display(), %error, "what a Pod left is not removed");
        }
        _ => {}
    });
}
