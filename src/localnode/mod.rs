//! Runs Jobs and Pods on this machine, for an API server without a cluster: does the work of Job controller, scheduler, kubelet
//! and volume binder.
//!
//! ```text
//! Job ──jobs──► Pod ──pods──► `admit supervise` (one for each container) ──► the container's program
//!                              environment, volumes, mounts, token, log       and whatever that starts
//! ```
//!
//! It uses only kube clients, and handles no other kinds. Programs run as this process' user, with the
//! files of this machine: an image is the name of a program here, see [`Images`]. Fields of a Pod that are not supported are
//! reported in an Event. May use: telemetry, private, a kube client handed in.

mod actors;
mod cgroups;
mod claims;
mod events;
mod images;
mod jobs;
mod log;
mod node;
mod pods;
pub mod supervise;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::claims::Claims;
pub use self::images::{Images, RunImage, RunImageError};
use self::jobs::Jobs;
pub use self::log::{Logs, NoLog, Wanted as LogWanted};
use self::pods::{Change, Kind, Pods};
use crate::telemetry::with_causes;

/// The name of the only node.
pub const NODE: &str = "admit-local";

/// The environment variable with the folders of a container's volumes, if they cannot be mounted at their paths: a
/// JSON object from path to folder.
pub const MOUNTS: &str = "ADMIT_MOUNTS";

/// Translates a path in a container: to the folder of a volume that could not be mounted, or to itself.
#[must_use]
pub fn mounted(path: &Path) -> PathBuf {
    let volumes = std::env::var(MOUNTS).ok().and_then(|text| serde_json::from_str(&text).ok());
    below(&volumes.unwrap_or_default(), path)
}

fn below(volumes: &BTreeMap<PathBuf, PathBuf>, path: &Path) -> PathBuf {
    let inside = volumes.iter().rev().find_map(|(at, folder)| Some((folder, path.strip_prefix(at).ok()?)));
    match inside {
        Some((folder, rest)) if rest.as_os_str().is_empty() => folder.clone(),
        Some((folder, rest)) => folder.join(rest),
        None => path.to_owned(),
    }
}

/// Clients of the API server, each in the name of the component that it acts for. They may do everything.
#[derive(Clone)]
pub struct Clients {
    /// The Job controller.
    pub jobs: Client,
    /// Scheduler, volume binder and kubelet.
    pub node: Client,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

/// The settings for running Pods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder for data of Pods, their logs and the volumes of claims.
    pub folder: PathBuf,
    /// The path of this program, which replaces its own image and supervises each container.
    pub program: PathBuf,
    pub images: Images,
    /// The logs of the Pods, shared with the API server.
    pub logs: Logs,
    /// The address of the API server for containers, and the authority of its certificate.
    pub api: ApiServer,
    pub pace: Pace,
    /// The most Pods that run at a time.
    pub pods: usize,
}

/// How a container reaches the API server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub host: String,
    pub port: u16,
    pub ca: String,
}

/// The waits after failures.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Before a Job's first failed Pod is replaced; doubled after each failure.
    pub job_backoff: Duration,
    /// Before a container is restarted; doubled after each failure.
    pub crash_backoff: Duration,
    /// The time that Pods get when this process has to end, whatever grace period they have.
    pub farewell: Duration,
}

impl Default for Pace {
    /// Returns the values of a cluster.
    fn default() -> Self {
        Self {
            job_backoff: Duration::from_secs(10),
            crash_backoff: Duration::from_secs(10),
            farewell: Duration::from_secs(10),
        }
    }
}

/// The default number of Pods that run at a time, that of a kubelet.
pub const MAX_PODS: usize = 110;

/// Why this part of the process stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot use `{}` for Pods: {source}; make it writable, or choose another state folder", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the API server does not take node `{NODE}`: {}", with_causes(.0))]
    Node(#[source] Box<kube::Error>),
}

/// Runs Jobs and Pods until `shutdown` is cancelled; then stops the Pods, and returns when all have ended.
///
/// # Errors
/// When the folder cannot be used, or the API server rejects the node.
pub async fn run(clients: Clients, settings: Settings, shutdown: CancellationToken) -> Result<(), RunError> {
    let settings = Arc::new(settings);
    node::folder(&settings)?;
    node::register(&clients.node).await?;
    let mut jobs = Jobs::new(&clients.jobs, &settings);
    let mut claims = Claims::new(&clients.node, Arc::clone(&settings));
    let mut pods = Pods::new(&clients.node, Arc::clone(&settings), claims.changes());
    follow(&clients, (&mut jobs, &mut pods, &mut claims), &shutdown).await;
    jobs.stop().await;
    claims.stop().await;
    pods.stop().await;
    Ok(())
}

async fn follow(
    clients: &Clients,
    (jobs, pods, claims): (&mut Jobs, &mut Pods, &mut Claims),
    shutdown: &CancellationToken,
) {
    let config = watcher::Config::default();
    let mut of_jobs =
        watcher(Api::<Job>::all(clients.jobs.clone()), config.clone()).default_backoff().boxed();
    let mut of_pods =
        watcher(Api::<Pod>::all(clients.node.clone()), config.clone()).default_backoff().boxed();
    let of_claims: Api<PersistentVolumeClaim> = Api::all(clients.node.clone());
    let mut of_claims = watcher(of_claims, config).default_backoff().boxed();
    let mut of_sources =
        select(changes::<Secret>(clients, Kind::Secret), changes::<ConfigMap>(clients, Kind::ConfigMap));
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(event) = of_jobs.next() => match event {
                Ok(Event::Apply(job) | Event::InitApply(job) | Event::Delete(job)) => {
                    jobs.look(job.namespace().unwrap_or_default(), job.name_any());
                }
                Ok(Event::Init) => {}
                // Jobs that were deleted unseen are found missing in their sync.
                Ok(Event::InitDone) => jobs.look_at_all(),
                Err(error) => warn!(kind = "Job", error = with_causes(&error), "watch interrupted"),
            },
            Some(event) = of_pods.next() => match event {
                Ok(event) => {
                    if let Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod) = &event {
                        jobs.look_at_owner(pod);
                    }
                    pods.take(event);
                }
                Err(error) => warn!(kind = "Pod", error = with_causes(&error), "watch interrupted"),
            },
            Some(event) = of_claims.next() => match event {
                Ok(event) => claims.take(event),
                Err(error) => {
                    warn!(kind = "PersistentVolumeClaim", error = with_causes(&error), "watch interrupted");
                }
            },
            Some(change) = of_sources.next() => match change {
                Ok(change) => pods.changed(change),
                Err((kind, error)) => warn!(kind, error = with_causes(&error), "watch interrupted"),
            },
            () = jobs.ended() => {}
            () = claims.ended() => {}
            () = pods.ended() => {}
        }
    }
}

/// Watches Secrets or ConfigMaps: only their names are needed, and no contents are kept here.
fn changes<K>(
    clients: &Clients,
    kind: Kind,
) -> BoxStream<'static, Result<Change, (&'static str, watcher::Error)>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let objects = Api::<PartialObjectMeta<K>>::all(clients.node.clone());
    let events = watcher(objects, watcher::Config::default()).default_backoff();
    let changes = events.filter_map(move |event| {
        ready(match event {
            Ok(Event::Apply(object) | Event::Delete(object)) => Some(Ok(Change::One {
                kind,
                namespace: object.namespace().unwrap_or_default(),
                name: object.name_any(),
            })),
            Ok(Event::Init | Event::InitApply(_)) => None,
            // Changes between two watches may be missed.
            Ok(Event::InitDone) => Some(Ok(Change::Any)),
            Err(error) => Some(Err((kind.word(), error))),
        })
    });
    changes.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_followed_into_the_innermost_volume() {
        let volumes = [("/data", "/one"), ("/data/inner", "/two")].map(|(at, of)| (at.into(), of.into()));
        let volumes = BTreeMap::from(volumes);
        for (path, expected) in [
            ("/data", "/one"),
            ("/data/a/b", "/one/a/b"),
            ("/data/inner/c", "/two/c"),
            ("/database", "/database"),
            ("here", "here"),
        ] {
            assert_eq!(below(&volumes, Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
