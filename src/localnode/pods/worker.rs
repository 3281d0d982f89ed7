//! Holds the state of one running Pod, publishes it, and terminates the Pod.

use std::path::PathBuf;
use std::sync::{Arc, Mutex as Held, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ObjectReference, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tracing::warn;

use super::super::events::Note;
use super::pod_status::{End, PodState};
use super::service_account::Account;
use super::volumes::Volumes;
use super::{Context, News, remove};
use crate::telemetry::with_causes;

/// The default grace period in seconds.
const GRACE: i64 = 30;
/// How often writing a status is tried.
const ATTEMPTS: u32 = 5;

/// Why a Pod is terminated before its containers have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cut {
    Deleted,
    /// The object does not exist any more.
    Gone,
    Deadline,
    Shutdown,
}

pub(super) struct Worker<'a> {
    pub(super) context: &'a Context,
    pub(super) pod: Pod,
    pub(super) about: ObjectReference,
    pub(super) folder: PathBuf,
    pub(super) account: Account,
    pub(super) volumes: Held<Volumes>,
    /// The Pod that its volumes are filled from.
    pub(super) shown: watch::Sender<Arc<Pod>>,
    pods: Api<Pod>,
    /// The current state, and the status that was stored last.
    board: Mutex<(PodState, Option<PodStatus>)>,
    cut: Held<Option<Cut>>,
    /// The deadlines for the main containers and for sidecars.
    pub(super) main: watch::Sender<Option<Instant>>,
    pub(super) beside: watch::Sender<Option<Instant>>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(context: &'a Context, pod: Pod, board: PodState) -> Self {
        let folder = context.folder(&pod.uid().unwrap_or_default());
        Self {
            about: pod.object_ref(&()),
            pods: Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default()),
            account: Account::below(&folder),
            folder,
            context,
            shown: watch::Sender::new(Arc::new(pod.clone())),
            pod,
            board: Mutex::new((board, None)),
            cut: Held::new(None),
            volumes: Held::default(),
            main: watch::Sender::new(None),
            beside: watch::Sender::new(None),
        }
    }

    /// Changes the state, and stores the status.
    pub(super) async fn step(&self, change: impl FnOnce(&mut PodState, Timestamp)) {
        let mut board = self.board.lock().await;
        let now = Timestamp::now();
        let (state, stored) = &mut *board;
        change(state, now);
        match self.cut() {
            Some(Cut::Gone) => return,
            Some(_) => {}
            None => state.find_end(),
        }
        let status = state.status(now);
        if stored.as_ref() == Some(&status) {
            return;
        }
        *stored = Some(status.clone());
        let status = json!({"metadata": {"uid": self.pod.uid()}, "status": status});
        let mut wait = Duration::from_millis(100);
        for _ in 0..ATTEMPTS {
            let patch = Patch::Merge(&status);
            match self.pods.patch_status(&self.pod.name_any(), &PatchParams::default(), &patch).await {
                Ok(_) => return,
                // The Pod was deleted, or there is another one with its name.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => return,
                Err(error) => {
                    let pod = self.pod.name_any();
                    warn!(pod, error = with_causes(&error), "a Pod's status was not written");
                }
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }

    pub(super) async fn tell(&self, note: Note) {
        self.context.events.tell(&self.about, note).await;
    }

    fn cut(&self) -> Option<Cut> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Terminates the containers, by `at` at the latest. An earlier deadline stays.
    fn end_by(&self, cut: Cut, at: Instant) {
        let mut why = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        if why.is_none() || cut == Cut::Gone {
            *why = Some(cut);
        }
        drop(why);
        hasten(&self.main, at);
    }

    /// Waits for reasons to terminate the Pod. Never returns.
    pub(super) async fn mind(&self, news: &mut News) {
        let spec = self.pod.spec.as_ref();
        let grace = spec.and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(GRACE);
        let deadline = spec.and_then(|spec| spec.active_deadline_seconds);
        let begun = Instant::now();
        let deadline = async {
            match deadline {
                Some(seconds) => tokio::time::sleep_until(begun + seconds_of(seconds)).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(deadline);
        let (mut late, mut leaving) = (false, false);
        loop {
            tokio::select! {
                changed = news.changed() => {
                    let pod = news.borrow_and_update().clone();
                    match pod {
                        Some(pod) => {
                            self.relabel(&pod);
                            self.hear(&pod, grace);
                        }
                        None => self.end_by(Cut::Gone, Instant::now()),
                    }
                    if changed.is_err() {
                        self.end_by(Cut::Gone, Instant::now());
                        return std::future::pending().await;
                    }
                }
                () = &mut deadline, if !late => {
                    late = true;
                    self.end_by(Cut::Deadline, Instant::now() + seconds_of(grace));
                }
                () = self.context.shutdown.cancelled(), if !leaving => {
                    leaving = true;
                    let left = seconds_of(grace).min(self.context.settings.pace.farewell);
                    self.end_by(Cut::Shutdown, Instant::now() + left);
                }
            }
        }
    }

    fn hear(&self, pod: &Pod, grace: i64) {
        if pod.metadata.deletion_timestamp.is_some() {
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(grace);
            self.end_by(Cut::Deleted, Instant::now() + seconds_of(grace));
        }
    }

    /// Returns the grace period of the Pod.
    pub(super) fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        seconds_of(spec.and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(GRACE))
    }

    /// Reports how the Pod ended, and completes its deletion.
    pub(super) async fn conclude(&self, done: Option<bool>) {
        let cut = self.cut();
        if cut == Some(Cut::Gone) {
            return remove(self.folder.clone());
        }
        let (reason, message) = match cut {
            Some(Cut::Deadline) => (
                Some("DeadlineExceeded"),
                Some("Pod was active on the node longer than the specified deadline"),
            ),
            Some(Cut::Shutdown) => {
                (Some("Terminated"), Some("Pod was terminated in response to imminent node shutdown."))
            }
            _ => (None, None),
        };
        let end = End {
            succeeded: done == Some(true) && reason.is_none(),
            reason: reason.map(str::to_owned),
            message: message.map(str::to_owned),
        };
        self.step(|board, now| {
            if let (Some(Cut::Shutdown), Some(message)) = (&cut, message) {
                let why = Some(("TerminationByKubelet", message.to_owned()));
                board.set("DisruptionTarget", true, why, now);
            }
            board.end = Some(end);
        })
        .await;
        // Logs stay as long as the Pod exists.
        for part in ["volumes", "account", "kubeconfig.d", "roots", "words"] {
            remove(self.folder.join(part));
        }
        if cut == Some(Cut::Deleted) {
            self.let_go().await;
        }
    }

    async fn let_go(&self) {
        let preconditions = Preconditions { uid: self.pod.uid(), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
        match self.pods.delete(&self.pod.name_any(), &params).await {
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => {
                warn!(pod = self.pod.name_any(), error = with_causes(&error), "a Pod was not let go")
            }
            Ok(_) => {}
        }
    }

    /// Marks the Pod as failed, as on a lost node: it is unknown how its containers ended.
    pub(super) async fn fail_lost(&self) {
        let now = Timestamp::now();
        let how = ContainerStateTerminated {
            exit_code: 137,
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: Some("The container could not be located when the pod was terminated".to_owned()),
            finished_at: Some(Time(now)),
            ..ContainerStateTerminated::default()
        };
        let message = "The process that ran the Pod has ended";
        self.step(|board, now| {
            board.lose(&how);
            board.set("DisruptionTarget", true, Some(("DeletionByPodGC", message.to_owned())), now);
            board.end = Some(End {
                succeeded: false,
                reason: Some("NodeLost".to_owned()),
                message: Some(message.to_owned()),
            });
        })
        .await;
        for part in ["volumes", "account", "kubeconfig.d", "roots", "words"] {
            remove(self.folder.join(part));
        }
        if self.pod.metadata.deletion_timestamp.is_some() {
            self.let_go().await;
        }
    }
}

/// Sets a deadline, unless an earlier one is set.
pub(super) fn hasten(stop: &watch::Sender<Option<Instant>>, at: Instant) {
    stop.send_if_modified(|by| {
        let sooner = by.is_none_or(|by| at < by);
        if sooner {
            *by = Some(at);
        }
        sooner
    });
}

fn seconds_of(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
