//! Tracks the runs of this process: the progress of each, and how to stop it.
//!
//! A run is set up in two steps. [`Runs::prepare`] returns a [`Permit`], kept by the pipeline, and a [`Slot`], kept
//! by the run's task. The task does nothing until the permit is released, which happens once the API server has
//! accepted the write that announces the run; if the permit is dropped instead, no trace of the run is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::run_state::{Activity, Progress, ReportOutcome};
use crate::controllers::kit::key::Key;

/// DataGathers that need a reconciliation.
pub type Wakeups = mpsc::UnboundedReceiver<Key>;

#[derive(Clone, Debug)]
pub struct Runs {
    entries: Arc<Mutex<BTreeMap<Key, Entry>>>,
    wake: mpsc::UnboundedSender<Key>,
}

#[derive(Debug)]
struct Entry {
    activity: Activity,
    cancel: CancellationToken,
}

impl Runs {
    /// Creates an empty registry, and the stream of DataGathers whose runs need a reconciliation.
    pub fn new() -> (Self, Wakeups) {
        let (wake, wakeups) = mpsc::unbounded_channel();
        (Self { entries: Arc::default(), wake }, wakeups)
    }

    pub fn activity(&self, of: &Key) -> Activity {
        self.lock().get(of).map_or(Activity::Idle, |entry| entry.activity.clone())
    }

    /// Registers work for the object `of`, replacing earlier work for it.
    pub fn prepare(&self, of: &Key, activity: Activity) -> (Permit, Slot) {
        let (release, released) = oneshot::channel();
        let cancel = CancellationToken::new();
        let entry = Entry { activity, cancel: cancel.clone() };
        self.lock().insert(of.clone(), entry);
        let permit = Permit { release: Some(release), runs: self.clone(), of: of.clone() };
        let sink = Sink { runs: self.clone(), of: of.clone() };
        (permit, Slot { released, cancel, sink })
    }

    /// Stops and forgets the work for an object.
    pub fn forget(&self, of: &Key) {
        if let Some(entry) = self.lock().remove(of) {
            entry.cancel.cancel();
        }
    }

    /// Marks gatherings that have not ended as interrupted. Returns the objects of all gatherings, also of those
    /// that have ended, whose last status may not be written yet.
    pub fn interrupt(&self) -> Vec<Key> {
        let mut gatherings = Vec::new();
        for (of, entry) in self.lock().iter_mut() {
            let Activity::Gathering(progress) = &entry.activity else { continue };
            gatherings.push(of.clone());
            if progress.ended.is_none() {
                entry.activity = Activity::Interrupted(progress.clone());
            }
        }
        gatherings
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permission to start; released by the pipeline, or dropped.
#[derive(Debug)]
pub struct Permit {
    release: Option<oneshot::Sender<()>>,
    runs: Runs,
    of: Key,
}

impl Permit {
    /// Starts the run.
    pub fn release(mut self) {
        if let Some(release) = self.release.take() {
            // The task may have ended already.
            let _ = release.send(());
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.release.is_some() {
            self.runs.forget(&self.of);
        }
    }
}

/// A run that waits for its permit.
#[derive(Debug)]
pub struct Slot {
    released: oneshot::Receiver<()>,
    cancel: CancellationToken,
    sink: Sink,
}

impl Slot {
    /// Waits for the permit, then runs `work` until it ends or its object is deleted.
    pub async fn run<F: Future<Output = ()>>(self, work: impl FnOnce(Sink) -> F) {
        if self.released.await.is_err() {
            return;
        }
        let cancelled = self.cancel.clone();
        tokio::select! {
            () = work(self.sink) => {}
            () = cancelled.cancelled() => {}
        }
    }
}

/// The channel by which a run reports its progress. Each report triggers a reconciliation of its object.
#[derive(Clone, Debug)]
pub struct Sink {
    runs: Runs,
    of: Key,
}

impl Sink {
    pub fn progress(&self, tell: impl FnOnce(&mut Progress)) {
        self.update(|activity| match activity {
            Activity::Gathering(progress) => tell(progress),
            Activity::Idle | Activity::Interrupted(_) | Activity::Reporting(_) => {}
        });
    }

    pub fn report(&self, outcome: ReportOutcome) {
        self.update(|activity| *activity = Activity::Reporting(Some(outcome)));
    }

    fn update(&self, change: impl FnOnce(&mut Activity)) {
        if let Some(entry) = self.runs.lock().get_mut(&self.of) {
            change(&mut entry.activity);
        } else {
            return;
        }
        // The receiver is gone after the controller has stopped.
        let _ = self.runs.wake.send(self.of.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key { namespace: String::new(), name: "n".to_owned(), uid: "u".to_owned() }
    }

    #[tokio::test]
    async fn a_dropped_permit_leaves_no_trace() {
        let (runs, mut wakeups) = Runs::new();
        let (permit, slot) = runs.prepare(&key(), Activity::Gathering(Progress::default()));
        drop(permit);
        assert_eq!(runs.activity(&key()), Activity::Idle);
        slot.run(|_| async { panic!("must not begin") }).await;
        assert!(wakeups.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_released_run_tells_and_wakes() {
        let (runs, mut wakeups) = Runs::new();
        let (permit, slot) = runs.prepare(&key(), Activity::Reporting(None));
        permit.release();
        let outcome = ReportOutcome::Missing("none".to_owned());
        slot.run(|sink| async move { sink.report(outcome) }).await;
        assert_eq!(wakeups.recv().await, Some(key()));
        assert_eq!(
            runs.activity(&key()),
            Activity::Reporting(Some(ReportOutcome::Missing("none".to_owned())))
        );
    }

    #[tokio::test]
    async fn a_run_stops_when_its_object_is_gone() {
        let (runs, _wakeups) = Runs::new();
        let (permit, slot) = runs.prepare(&key(), Activity::Gathering(Progress::default()));
        permit.release();
        runs.forget(&key());
        slot.run(|_| std::future::pending()).await;
        assert_eq!(runs.activity(&key()), Activity::Idle);
    }
}
