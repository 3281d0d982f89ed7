//! Runs the controller's main loop: receives events from watches, starts reconciliations that are due, and handles their
//! results.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::queue::Queue;
use super::roots::{Roots, Told};
use super::{Controller, Failure, Next, Reconcile, Root};
use crate::controllers::kit::events::{Events, Notice};
use crate::controllers::kit::key::Key;
use crate::controllers::kit::manager::Term;
use crate::controllers::kit::operator::Says;
use crate::controllers::kit::retry::{Backoff, Remedy};
use crate::telemetry::{ControllerMetrics, Outside, Readiness, Secrets, panic_text, with_causes};

/// How long a stop waits for running reconciliations; well below the termination grace period of a Pod.
const LAST_LOOKS: Duration = Duration::from_secs(5);
/// How long a failed reconciliation waits for its event to be written, which must not block further work.
const TELLING: Duration = Duration::from_secs(5);

/// Where a controller reports its state: metrics, readiness, events and ClusterOperator.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub events: Events,
    pub metrics: Arc<ControllerMetrics>,
    /// The part with the controller's name becomes ready when all objects are known.
    pub readiness: Readiness,
    /// Collects the controller's state for its ClusterOperator.
    pub says: Says,
}

impl Surroundings {
    /// Takes those of a term; `events` publishes in the name of its creator.
    #[must_use]
    pub fn of(term: &Term, events: Events) -> Self {
        let Term { stop: _, metrics, readiness, says } = term.clone();
        Self { events, metrics, readiness, says }
    }
}

impl<K: Root> Controller<K> {
    /// Runs until `stop`. Running reconciliations may then end within five seconds.
    pub async fn run<R: Reconcile<Object = K>>(
        self,
        reconciler: Arc<R>,
        around: Surroundings,
        stop: CancellationToken,
    ) {
        let Self { name, mut events, roots, mut triggers, concurrency, debounce, resync } = self;
        let mut work = Work {
            name,
            reconciler,
            around,
            stop: stop.clone(),
            roots,
            queue: Queue::default(),
            running: FuturesUnordered::new(),
            backoff: Backoff::default(),
            told: BTreeMap::new(),
            failing: BTreeMap::new(),
            leaving: BTreeSet::new(),
            concurrency,
            debounce,
        };
        work.around.metrics.begins(name, concurrency.get());
        // The initial list triggers everything; the first periodic round is due after that.
        let mut rounds = resync.map(|every| interval_at(Instant::now() + every, every));
        if let Some(rounds) = &mut rounds {
            rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            work.start_due();
            let next = work.queue.next();
            tokio::select! {
                () = stop.cancelled() => break,
                event = events.next() => match event {
                    Some(event) => work.hear(&event),
                    None => break,
                },
                Some(key) = triggers.next() => work.wants(key, debounce),
                Some(ended) = work.running.next() => work.ended(ended),
                () = async { sleep_until(next.unwrap_or_else(Instant::now)).await }, if next.is_some() => {}
                () = round(&mut rounds), if rounds.is_some() => work.wants_all(),
            }
        }
        if timeout(LAST_LOOKS, work.running.by_ref().for_each(|_| std::future::ready(()))).await.is_err() {
            warn!(controller = name, "looks at objects did not end in time and were dropped");
        }
        work.around.metrics.depth(name, 0, 0);
    }
}

async fn round(rounds: &mut Option<tokio::time::Interval>) {
    match rounds {
        Some(rounds) => drop(rounds.tick().await),
        None => std::future::pending().await,
    }
}

struct Work<R: Reconcile> {
    name: &'static str,
    reconciler: Arc<R>,
    around: Surroundings,
    stop: CancellationToken,
    roots: Roots<R::Object>,
    queue: Queue,
    running: FuturesUnordered<BoxFuture<'static, Ended>>,
    backoff: Backoff,
    /// The last error of objects whose last reconciliation failed, so that a persisting one is reported once.
    told: BTreeMap<Key, String>,
    /// Errors that cannot be resolved by a change of the object itself.
    failing: BTreeMap<Key, String>,
    /// Objects that were deleted and are still being reconciled.
    leaving: BTreeSet<Key>,
    concurrency: NonZeroUsize,
    debounce: Duration,
}

/// A completed reconciliation.
struct Ended {
    key: Key,
    took: Duration,
    panicked: bool,
    outcome: Result<Next, (Remedy, String)>,
}

impl<R: Reconcile> Work<R> {
    fn hear(&mut self, event: &Event<DeserializeGuard<R::Object>>) {
        let was_ready = self.roots.ready();
        let Told { changed, gone } = self.roots.hear(event);
        for key in gone {
            self.queue.forget(&key);
            if self.queue.is_running(&key) {
                self.leaving.insert(key);
            } else {
                self.gone(&key);
            }
        }
        let at = Instant::now() + self.debounce;
        changed.into_iter().for_each(|key| self.queue.add(key, at));
        if !was_ready && self.roots.ready() {
            self.around.readiness.set(self.name, true);
            self.around.says.works();
        }
    }

    /// Schedules an object. Unknown ones are scheduled when the watch reports them, deleted ones never.
    fn wants(&mut self, key: Key, wait: Duration) {
        if self.roots.get(&key).is_some() {
            self.queue.add(key, Instant::now() + wait);
        }
    }

    fn wants_all(&mut self) {
        self.roots.keys().into_iter().for_each(|key| self.wants(key, Duration::ZERO));
    }

    fn start_due(&mut self) {
        self.queue.ripen(Instant::now());
        while self.running.len() < self.concurrency.get() {
            let Some((key, since)) = self.queue.take() else { break };
            match self.roots.get(&key) {
                Some(object) => {
                    self.around.metrics.taken(self.name, since.elapsed());
                    let reconciler = Arc::clone(&self.reconciler);
                    let (events, stop) = (self.around.events.clone(), self.stop.clone());
                    self.running.push(look(reconciler, events, stop, key, object).boxed());
                }
                None => self.queue.ended(&key),
            }
        }
        self.around.metrics.depth(self.name, self.queue.depth(), self.running.len());
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { key, took, panicked, outcome } = ended;
        self.queue.ended(&key);
        let result = match &outcome {
            Ok(Next::Settled) => "success",
            Ok(Next::After(_)) => "requeue_after",
            Err(_) => "error",
        };
        self.around.metrics.reconciled(self.name, result, took);
        if panicked {
            self.around.metrics.panicked(self.name);
        }
        if self.leaving.remove(&key) {
            return self.gone(&key);
        }
        match outcome {
            Ok(next) => {
                self.backoff.reset(&key);
                self.told.remove(&key);
                self.fails(&key, None);
                if let Next::After(wait) = next {
                    self.queue.add(key, Instant::now() + wait);
                }
            }
            Err((remedy, error)) => self.failed(key, remedy, error),
        }
    }

    fn failed(&mut self, key: Key, remedy: Remedy, error: String) {
        let wait = self.backoff.after(&key, remedy);
        let again = self.told.get(&key) == Some(&error);
        match remedy {
            // A conflict says nothing about the controller's health.
            Remedy::Reread => {}
            Remedy::Change => self.fails(&key, None),
            Remedy::Wait | Remedy::After(_) | Remedy::Refused => self.fails(&key, Some(&error)),
        }
        if remedy == Remedy::Reread {
            debug!(controller = self.name, object = %key, error, "written by another, looking again");
        } else if again {
            debug!(controller = self.name, object = %key, error, ?wait, "reconciliation failed again");
        } else {
            warn!(controller = self.name, object = %key, error, ?remedy, ?wait, "reconciliation failed");
            self.told.insert(key.clone(), error);
        }
        if let Some(wait) = wait {
            self.around.metrics.retried(self.name);
            self.queue.add(key, Instant::now() + wait);
        }
    }

    /// Records whether reconciliations of an object fail, and reports changes of that.
    fn fails(&mut self, key: &Key, error: Option<&str>) {
        let before = self.failing.len();
        match error {
            Some(error) => drop(self.failing.insert(key.clone(), error.to_owned())),
            None => drop(self.failing.remove(key)),
        }
        match self.failing.first_key_value() {
            Some((first, error)) => {
                self.around.says.fails(self.failing.len(), &format!("{first}: {error}"));
            }
            None if before > 0 => self.around.says.recovers(),
            None => {}
        }
    }

    fn gone(&mut self, key: &Key) {
        self.fails(key, None);
        self.queue.forget(key);
        self.backoff.reset(key);
        self.told.remove(key);
        self.reconciler.gone(key);
    }
}

async fn look<R: Reconcile>(
    reconciler: Arc<R>,
    events: Events,
    stop: CancellationToken,
    key: Key,
    object: Arc<DeserializeGuard<R::Object>>,
) -> Ended {
    let started = Instant::now();
    let mut panicked = false;
    let outcome = match &object.0 {
        Ok(decoded) => {
            let looked = AssertUnwindSafe(reconciler.reconcile(decoded)).catch_unwind().await;
            panicked = looked.is_err();
            outcome(looked)
        }
        Err(invalid) => {
            // The error quotes the object.
            let error = Outside::of(&invalid.error, &Secrets::default());
            Err((Remedy::Change, format!("the object cannot be understood: {error}")))
        }
    };
    let took = started.elapsed();
    if let Err((remedy, note)) = &outcome
        && *remedy != Remedy::Reread
        && !stop.is_cancelled()
    {
        let notice =
            Notice { warning: true, reason: "ReconcileFailed", action: "Reconcile", note: note.clone() };
        if timeout(TELLING, events.publish(object.as_ref(), notice)).await.is_err() {
            debug!(object = %key, "the event of a failure was not written in time");
        }
    }
    Ended { key, took, panicked, outcome }
}

fn outcome<E: Failure>(looked: std::thread::Result<Result<Next, E>>) -> Result<Next, (Remedy, String)> {
    match looked {
        Ok(Ok(next)) => Ok(next),
        Ok(Err(failure)) => {
            let text = with_causes(&failure);
            Err((failure.remedy(), text))
        }
        Err(panic) => {
            let text = Outside::of(panic_text(panic.as_ref()), &Secrets::default());
            error!(panic = %text, "a reconciliation panicked");
            Err((Remedy::Wait, format!("the controller panicked: {text}")))
        }
    }
}
