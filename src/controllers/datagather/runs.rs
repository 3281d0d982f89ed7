//! The runs of this process: what each has found out, and how to stop it.
//!
//! A run is set up in two steps. [`Runs::prepare`] hands out a [`Permit`], kept by the pipeline, and a [`Slot`], kept
//! by the run's task. The task does nothing until the permit is released, which happens once the API server has
//! accepted the write that announces the run; a permit dropped instead leaves no trace of the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::progress::{Activity, Progress, ReportOutcome};

/// Names of DataGathers that want to be looked at.
pub type Wakeups = mpsc::UnboundedReceiver<String>;

#[derive(Clone, Debug)]
pub struct Runs {
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
    wake: mpsc::UnboundedSender<String>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    activity: Activity,
    cancel: CancellationToken,
}

impl Runs {
    /// An empty registry and the stream of names that its runs wake.
    pub fn new() -> (Self, Wakeups) {
        let (wake, wakeups) = mpsc::unbounded_channel();
        (Self { entries: Arc::default(), wake }, wakeups)
    }

    pub fn activity(&self, uid: &str) -> Activity {
        self.lock().get(uid).map_or(Activity::Idle, |entry| entry.activity.clone())
    }

    /// Registers work for the object `uid`, in place of what was registered for it.
    pub fn prepare(&self, uid: &str, name: &str, activity: Activity) -> (Permit, Slot) {
        let (release, released) = oneshot::channel();
        let cancel = CancellationToken::new();
        let entry = Entry { name: name.to_owned(), activity, cancel: cancel.clone() };
        self.lock().insert(uid.to_owned(), entry);
        let permit = Permit { release: Some(release), runs: self.clone(), uid: uid.to_owned() };
        let sink = Sink { runs: self.clone(), uid: uid.to_owned() };
        (permit, Slot { released, cancel, sink })
    }

    pub fn forget(&self, uid: &str) {
        if let Some(entry) = self.lock().remove(uid) {
            entry.cancel.cancel();
        }
    }

    /// Stops and forgets the work for an object that is gone.
    pub fn forget_name(&self, name: &str) {
        self.lock().retain(|_, entry| {
            let gone = entry.name == name;
            if gone {
                entry.cancel.cancel();
            }
            !gone
        });
    }

    /// Declares gatherings that have not ended interrupted: nothing runs them any more. The uid and name of each gathering,
    /// also of those that have ended, whose last status may not be written yet.
    pub fn interrupt(&self) -> Vec<(String, String)> {
        let mut gatherings = Vec::new();
        for (uid, entry) in self.lock().iter_mut() {
            let Activity::Gathering(progress) = &entry.activity else { continue };
            gatherings.push((uid.clone(), entry.name.clone()));
            if progress.ended.is_none() {
                entry.activity = Activity::Interrupted(progress.clone());
            }
        }
        gatherings
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to begin; released by the pipeline, or void.
#[derive(Debug)]
pub struct Permit {
    release: Option<oneshot::Sender<()>>,
    runs: Runs,
    uid: String,
}

impl Permit {
    /// Lets the run begin.
    pub fn release(mut self) {
        if let Some(release) = self.release.take() {
            // A task that is gone already has nothing to begin.
            let _ = release.send(());
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.release.is_some() {
            self.runs.forget(&self.uid);
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
    /// Waits for the permit, then runs `work` until it ends or its object is gone.
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

/// Where a run tells what it found out. Each word wakes the reconciliation of its object.
#[derive(Clone, Debug)]
pub struct Sink {
    runs: Runs,
    uid: String,
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
        let name = {
            let mut entries = self.runs.lock();
            let Some(entry) = entries.get_mut(&self.uid) else { return };
            change(&mut entry.activity);
            entry.name.clone()
        };
        // Nobody listens any more once the controller has stopped.
        let _ = self.runs.wake.send(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_permit_leaves_no_trace() {
        let (runs, mut wakeups) = Runs::new();
        let (permit, slot) = runs.prepare("u", "n", Activity::Gathering(Progress::default()));
        drop(permit);
        assert_eq!(runs.activity("u"), Activity::Idle);
        slot.run(|_| async { panic!("must not begin") }).await;
        assert!(wakeups.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_released_run_tells_and_wakes() {
        let (runs, mut wakeups) = Runs::new();
        let (permit, slot) = runs.prepare("u", "n", Activity::Reporting(None));
        permit.release();
        let outcome = ReportOutcome::Missing("none".to_owned());
        slot.run(|sink| async move { sink.report(outcome) }).await;
        assert_eq!(wakeups.recv().await.as_deref(), Some("n"));
        assert_eq!(runs.activity("u"), Activity::Reporting(Some(ReportOutcome::Missing("none".to_owned()))));
    }

    #[tokio::test]
    async fn a_run_stops_when_its_object_is_gone() {
        let (runs, _wakeups) = Runs::new();
        let (permit, slot) = runs.prepare("u", "n", Activity::Gathering(Progress::default()));
        permit.release();
        runs.forget_name("n");
        slot.run(|_| std::future::pending()).await;
        assert_eq!(runs.activity("u"), Activity::Idle);
    }
}
