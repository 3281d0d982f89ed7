//! Handlers of a container's lifecycle: what is run right after its start and right before its end, and what a kubelet makes of how
//! that goes. What a handler answers is in no event: it may hold what only the container's own log is to show.

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

/// How a kubelet introduces itself where it calls a handler.
const AGENT: &str = "kube-lifecycle/1.36";
/// What a container has to end after a handler has used up its time.
const LEAST: Duration = Duration::from_secs(2);
/// A handler has no time of its own: the container's end is its end.
const LONG: Duration = Duration::from_hours(24);

/// What of a container's handlers this machine does not know.
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

    /// Runs what is to follow the start. Where that fails, the container is ended: whoever runs it notices, and this never returns.
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

    /// Waits until the container is to end, as `doom` says or its Pod's end; runs what is to come before, within the same time; and
    /// says then in `end` by when it has to be over. Never returns.
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
            // Whatever the answer says, it was heard.
            Some(get) => network_probe::get(get, self.container, AGENT).await.map(drop),
            None => Err(ProbeError::InvalidHandler),
        }
    }
}

/// By when one of the two has it end.
fn earliest(stop: &Stop, doom: &Stop) -> Option<Instant> {
    [stop.by(), doom.by()].into_iter().flatten().min()
}
