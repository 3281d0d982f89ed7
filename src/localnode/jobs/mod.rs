//! Runs Jobs as a cluster's Job controller does: Pods are created, counted once each, replaced or deleted, and the
//! status reports that with the steps and messages of Kubernetes 1.36.
//!
//! A sync reads a Job with its Pods, plans, acts, and writes the status before and after the Pods' finalizers are removed, so
//! that each Pod is counted exactly once, whenever the process ends.

mod backoff;
mod conditions;
mod counts;
mod indexed;
mod indexes;
mod plan;
mod pods;
mod policies;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt as _};
use tokio::sync::watch;
use tracing::warn;

use self::sync::{Context, Next};
use super::Settings;
use super::actors::Actors;
use super::events::Events;
use crate::telemetry::with_causes;

/// Namespace and name of a Job.
type Key = (String, String);

/// All Jobs with work to do.
pub(super) struct Jobs {
    context: Arc<Context>,
    /// The task of each Job, which receives the number of sync requests.
    actors: Actors<Key, u64>,
    /// For each ended task, the number of requests at its last sync.
    looked: watch::Sender<Vec<(Key, u64)>>,
}

impl Jobs {
    pub(super) fn new(client: &Client, settings: &Settings) -> Self {
        let context = Context {
            client: client.clone(),
            events: Events::new(client, "job-controller"),
            backoff: settings.pace.job_backoff,
        };
        Self { context: Arc::new(context), actors: Actors::new(), looked: watch::Sender::default() }
    }

    /// Requests a sync of a Job.
    pub(super) fn look(&mut self, namespace: String, name: String) {
        let key = (namespace, name);
        match self.actors.get(&key) {
            Some(task) => task.send_modify(|asked| *asked += 1),
            None => self.begin(key),
        }
    }

    /// Requests a sync of the Job of a changed or deleted Pod.
    pub(super) fn look_at_owner(&mut self, pod: &Pod) {
        if let Some(owner) = pods::controller_of(&pod.metadata) {
            self.look(pod.namespace().unwrap_or_default(), owner.name.clone());
        }
    }

    pub(super) fn look_at_all(&mut self) {
        self.actors.all().for_each(|(_, task)| task.send_modify(|asked| *asked += 1));
    }

    fn begin(&mut self, key: Key) {
        let (context, looked) = (Arc::clone(&self.context), self.looked.clone());
        self.actors.start(key.clone(), 0, |asked| follow(context, key, asked, looked));
    }

    /// Waits until a Job has no more work to do.
    pub(super) async fn ended(&mut self) {
        let key = self.actors.ended().await;
        let mut seen = None;
        self.looked.send_modify(|ended| {
            if let Some(at) = ended.iter().position(|(of, _)| *of == key) {
                seen = Some(ended.swap_remove(at).1);
            }
        });
        let asked = self.actors.get(&key).map(|task| *task.borrow());
        self.actors.forget(&key);
        // Another request came after its last sync.
        if asked != seen {
            self.begin(key);
        }
    }

    pub(super) async fn stop(&mut self) {
        self.actors.abort().await;
    }
}

/// The first and the longest wait after a failed request.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// The first and the longest wait after Pods were rejected, those of the Job controller.
const REFUSED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Syncs one Job on request, until it has no more work to do.
async fn follow(
    context: Arc<Context>,
    key: Key,
    mut asked: watch::Receiver<u64>,
    looked: watch::Sender<Vec<(Key, u64)>>,
) {
    let (mut wait, mut refused) = (RETRY.0, REFUSED.0);
    loop {
        let now = *asked.borrow_and_update();
        let looked_at = sync::look(&context, &key).await;
        if !matches!(looked_at, Ok(Next::Refused)) {
            refused = REFUSED.0;
        }
        let again = match looked_at {
            Ok(Next::Nothing) => {
                looked.send_modify(|ended| ended.push((key, now)));
                return;
            }
            Ok(Next::Change) => None,
            Ok(Next::After(pause)) => Some(pause),
            // The cause, quota or admission, may be resolved without a change of the Job.
            Ok(Next::Refused) => {
                let pause = refused;
                refused = (refused * 2).min(REFUSED.1);
                Some(pause)
            }
            Err(error) => {
                // After a conflict, the watch reports the other writer's change.
                if !matches!(&error, kube::Error::Api(status) if status.code == 409) {
                    let (namespace, job) = &key;
                    warn!(namespace, job, error = with_causes(&error), "the Job is looked at again");
                }
                wait = (wait * 2).min(RETRY.1);
                Some(wait / 2)
            }
        };
        let pause = async {
            match again {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = asked.changed() => match changed {
                Ok(()) => wait = RETRY.0,
                Err(_) => return,
            },
            () = pause => {}
        }
    }
}
