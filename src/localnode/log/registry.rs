//! Tracks the logs of containers: those that run, which can be followed, and those of earlier runs.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::ResourceExt as _;

use super::super::node;
use super::read::{self, Wanted};
use super::{Log, aside};

/// The logs of the Pods of this machine. Clones share them.
#[derive(Clone, Debug)]
pub struct Logs {
    folder: PathBuf,
    written: Arc<Mutex<HashMap<PathBuf, Log>>>,
}

/// The log of a running container, which can be followed until this is dropped.
#[derive(Debug)]
pub(in crate::localnode) struct Writing {
    pub(in crate::localnode) log: Log,
    path: PathBuf,
    of: Logs,
}

impl Writing {
    /// Returns the last `bytes` of the last `lines` lines.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(in crate::localnode) async fn end(&self, bytes: usize, lines: u64) -> io::Result<Vec<u8>> {
        let wanted = Wanted { tail: Some(lines), ..Wanted::default() };
        let pieces: Vec<Bytes> = read::read(&self.path, wanted, None)?.try_collect().await?;
        let mut end = pieces.concat();
        end.drain(..end.len().saturating_sub(bytes));
        Ok(end)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.of.written().remove(&self.path);
    }
}

impl Logs {
    /// Creates a registry of the logs below `folder`, which is that of the settings.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), written: Arc::default() }
    }

    fn written(&self) -> MutexGuard<'_, HashMap<PathBuf, Log>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the log of a run of a container, whose logs are in `folder`. That of the previous run stays, older ones are deleted.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(in crate::localnode) fn begin(&self, folder: &Path, number: u32) -> io::Result<Writing> {
        crate::private::make_folder(folder)?;
        if let Some(old) = number.checked_sub(2) {
            let old = folder.join(format!("{old}.log"));
            let _ = std::fs::remove_file(aside(&old));
            let _ = std::fs::remove_file(old);
        }
        let path = folder.join(format!("{number}.log"));
        let log = Log::create(&path)?;
        self.written().insert(path.clone(), log.clone());
        Ok(Writing { log, path, of: self.clone() })
    }

    /// Opens the log of a container of `pod`; the Pod's status says which runs exist.
    ///
    /// # Errors
    /// When there is none, with the messages of a kubelet.
    pub fn open(
        &self,
        pod: &Pod,
        container: &str,
        wanted: Wanted,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, NoLog> {
        let status = status_of(pod, container);
        let back = started(&pod.name_any(), container, status, wanted.previous)?;
        let folder =
            node::pods(&self.folder).join(pod.uid().unwrap_or_default()).join("logs").join(container);
        let none = |_| NoLog::Unreadable { container: container.to_owned(), pod: pod.name_any() };
        let newest = numbers(&folder).map_err(none)?.into_iter().max();
        let number = newest.and_then(|newest| newest.checked_sub(back));
        let number = number.ok_or_else(|| none(io::Error::other("no log")))?;
        let path = folder.join(format!("{number}.log"));
        let news = self.written().get(&path).map(Log::news);
        read::read(&path, wanted, news).map(StreamExt::boxed).map_err(none)
    }
}

/// Why there is no log; the messages are a kubelet's.
#[derive(Debug, thiserror::Error)]
pub enum NoLog {
    #[error("unable to retrieve container logs for {container:?} of pod {pod:?}")]
    Unreadable { container: String, pod: String },
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NotFound { container: String, pod: String },
    #[error("container {container:?} in pod {pod:?} is waiting to start: {why}")]
    Waiting { container: String, pod: String, why: String },
}

fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(folder)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".log")?.parse().ok()).collect())
}

fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    all.into_iter().find(|status| status.name == container)
}

/// Returns how many runs before the newest one the requested log is.
fn started(
    pod: &str,
    container: &str,
    status: Option<&ContainerStatus>,
    previous: bool,
) -> Result<u32, NoLog> {
    let ended = |state: Option<&ContainerState>| state.is_some_and(|state| state.terminated.is_some());
    let (state, last) =
        (status.and_then(|one| one.state.as_ref()), status.and_then(|one| one.last_state.as_ref()));
    let waiting = state.and_then(|state| state.waiting.as_ref());
    if previous {
        return match ended(last) {
            // Between two runs, the one that ended last is the newest.
            true => Ok(u32::from(waiting.is_none())),
            false => Err(NoLog::NotFound { container: container.to_owned(), pod: pod.to_owned() }),
        };
    }
    if ended(state) || ended(last) || state.is_some_and(|state| state.running.is_some()) {
        return Ok(0);
    }
    let why = match waiting.and_then(|waiting| waiting.reason.as_deref()) {
        Some("ErrImagePull") => "image can't be pulled",
        Some("ImagePullBackOff") => "trying and failing to pull image",
        Some(reason) => reason,
        None => "ContainerCreating",
    };
    let (container, pod) = (container.to_owned(), pod.to_owned());
    Err(NoLog::Waiting { container, pod, why: why.to_owned() })
}
