//! Runs the lifecycle hooks of a container: after its start and before its end, with the consequences that a kubelet draws from their
//! results. The output of a hook is in no Event: it may contain data that belongs only in the container's own log.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::events::Note;
use super::error::ProbeError;
use super::instance::{Errands, Stop, either};
use super::network_probe;
use super::run::Run;

/// The User-Agent of a kubelet's HTTP hooks.
const AGENT: &str = "kube-lifecycle/1.36";
/// The time that a container gets to end after a hook has used up the grace period.
const LEAST: Duration = Duration::from_secs(2);
/// Hooks have no timeout of their own: they end with the container.
const LONG: Duration = Duration::from_hours(24);

/// Returns the hooks of the container that are not supported.
pub(super) fn unknown(container: &Container) -> Vec<String> {
    let Some(lifecycle) = &container.lifecycle else { return Vec::new() };
    let handlers = [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)];
    let tls = |handler: &LifecycleHandler| handler.http_get.as_ref().is_some_and(network_probe::is_tls);
    let mut unknown: Vec<String> = handlers
        .into_iter()
        .filter(|(_, handler)| handler.as_ref().is_some_and(tls))
        .map(|(name, _)| format!("lifecycle.{name}.httpGet.scheme"))
        .collect();
    unknown.extend(lifecycle.stop_signal.is_some().then(|| "lifecycle.stopSignal".to_owned()));
    unknown
}

impl Run<'_> {
    pub(super) fn post_start(&self) -> Option<&LifecycleHandler> {
        self.container.lifecycle.as_ref()?.post_start.as_ref()
    }

    fn pre_stop(&self) -> Option<&LifecycleHandler> {
        self.container.lifecycle.as_ref()?.pre_stop.as_ref()
    }

    /// Runs the postStart hook. If it fails, the container is stopped, and this never returns: the caller notices the end.
    pub(super) async fn after_start(
        &self,
        handler: &LifecycleHandler,
        errands: &Errands,
        doom: &watch::Sender<Option<Instant>>,
    ) {
        if self.handle(errands, handler).await.is_ok() {
            return;
        }
        self.tell(Note::warning("FailedPostStartHook", "PostStartHook failed")).await;
        self.tell(Note::normal("Killing", "FailedPostStartHook")).await;
        doom.send_replace(Some(Instant::now() + self.worker.grace()));
        pending().await
    }

    /// Waits until the container has to end, because of `doom` or of its Pod; runs the preStop hook within the same time; and
    /// then reports in `end` when the container has to be over. Never returns.
    pub(super) async fn before_end(
        &self,
        errands: &Errands,
        doom: Stop,
        end: &watch::Sender<Option<Instant>>,
    ) {
        let (mut stop, mut doom) = (self.stop.clone(), doom);
        either(stop.asked(), doom.asked()).await;
        let mut least = None;
        let has_time = earliest(&stop, &doom).is_some_and(|by| by > Instant::now());
        if let Some(handler) = self.pre_stop().filter(|_| has_time) {
            let (mut over, mut over_too) = (stop.clone(), doom.clone());
            let done = tokio::select! {
                done = self.handle(errands, handler) => done,
                () = either(over.over(), over_too.over()) => Ok(()),
            };
            if done.is_err() {
                self.tell(Note::warning("FailedPreStopHook", "PreStopHook failed")).await;
            }
            least = Some(Instant::now() + LEAST);
        }
        loop {
            end.send_replace(earliest(&stop, &doom).max(least));
            either(stop.changed(), doom.changed()).await;
        }
    }

    async fn handle(&self, errands: &Errands, handler: &LifecycleHandler) -> Result<(), ProbeError> {
        if let Some(exec) = &handler.exec {
            return self.exec(errands, exec.command.as_deref().unwrap_or_default(), LONG).await;
        }
        if let Some(sleep) = &handler.sleep {
            tokio::time::sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0))).await;
            return Ok(());
        }
        match &handler.http_get {
            Some(get) if network_probe::is_tls(get) => Ok(()),
            // Any HTTP status counts as success.
            Some(get) => network_probe::get(get, self.container, AGENT).await.map(drop),
            None => Err(ProbeError::InvalidHandler),
        }
    }
}

/// Returns the earlier of both deadlines.
fn earliest(stop: &Stop, doom: &Stop) -> Option<Instant> {
    [stop.by(), doom.by()].into_iter().flatten().min()
}
