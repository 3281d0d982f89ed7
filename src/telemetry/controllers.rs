//! Counts the work of controllers in Prometheus metrics, under the names of controller-runtime, so that dashboards and alerts for
//! other operators can be used. Labels are names of controllers and constants. Metrics of a single system are defined in its
//! own folder, and are [included](ControllerMetrics::include).

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde::Serialize;

use super::Readiness;

/// The results of reconciling; each controller has all of them from its start, so that rates begin at zero.
const RESULTS: [&str; 4] = ["success", "requeue", "requeue_after", "error"];

/// The metrics of the controllers of a process.
pub struct ControllerMetrics {
    registry: Registry,
    /// The metrics of single systems.
    included: Mutex<Vec<Registry>>,
    reconciled: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram, Seconds>,
    workers: Family<ControllerLabels, Gauge>,
    most_workers: Family<ControllerLabels, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    added: Family<QueueLabels, Counter>,
    retried: Family<QueueLabels, Counter>,
    waited: Family<QueueLabels, Histogram, Seconds>,
    worked: Family<QueueLabels, Histogram, Seconds>,
    leading: Family<LeaseLabels, Gauge>,
    ready: Family<ControllerLabels, Gauge>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ResultLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct QueueLabels {
    controller: &'static str,
    name: &'static str,
}

impl QueueLabels {
    fn of(controller: &'static str) -> Self {
        Self { controller, name: controller }
    }
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LeaseLabels {
    name: String,
}

/// The counts of one controller.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// How often objects were reconciled.
    pub reconciled: u64,
    /// How many of these failed.
    pub errors: u64,
    /// The number of objects in the queue.
    pub waiting: i64,
}

type Seconds = fn() -> Histogram;

/// Creates a histogram from reconciling without changes, to one that waits for slow servers.
fn seconds() -> Histogram {
    const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];
    Histogram::new(SECONDS)
}

impl Default for ControllerMetrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            included: Mutex::default(),
            reconciled: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            workers: Family::default(),
            most_workers: Family::default(),
            depth: Family::default(),
            added: Family::default(),
            retried: Family::default(),
            waited: Family::new_with_constructor(seconds),
            worked: Family::new_with_constructor(seconds),
            leading: Family::default(),
            ready: Family::default(),
        };
        let mut registry = Registry::default();
        metrics.register_looks(&mut registry);
        metrics.register_queues(&mut registry);
        let leading = metrics.leading.clone();
        registry.register(
            "leader_election_master_status",
            "1 while this process holds the Lease of the name",
            leading,
        );
        let ready = metrics.ready.clone();
        registry.register("admit_controller_ready", "1 for each controller that works or stands by", ready);
        metrics.registry = registry;
        metrics
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerMetrics").finish_non_exhaustive()
    }
}

impl ControllerMetrics {
    fn register_looks(&self, registry: &mut Registry) {
        let mut add = Adding { registry, prefix: "controller_runtime" };
        add.one("reconcile", "Looks at objects, by controller and result", &self.reconciled);
        add.one("reconcile_errors", "Looks at objects that failed", &self.errors);
        add.one("reconcile_panics", "Looks at objects that panicked", &self.panics);
        add.one("reconcile_time_seconds", "Seconds of a look at an object", &self.seconds);
        add.one("active_workers", "Objects that are being looked at", &self.workers);
        add.one("max_concurrent_reconciles", "Objects that are looked at, at a time", &self.most_workers);
    }

    fn register_queues(&self, registry: &mut Registry) {
        let mut add = Adding { registry, prefix: "workqueue" };
        add.one("depth", "Objects that wait to be looked at", &self.depth);
        add.one("adds", "Objects that were due to be looked at", &self.added);
        add.one("retries", "Objects to be looked at again after a failure", &self.retried);
        add.one("queue_duration_seconds", "Seconds that an object waited for its turn", &self.waited);
        add.one("work_duration_seconds", "Seconds of a look at an object of the queue", &self.worked);
    }

    /// Adds the metrics of a registry to the output.
    pub fn include(&self, counts: Registry) {
        self.included.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
    }

    /// Returns all metrics as text of [`super::MEDIA_TYPE`]; `readiness` has a part for each controller.
    #[must_use]
    pub fn text(&self, readiness: &Readiness) -> String {
        for (controller, ready) in readiness.parts() {
            self.ready.get_or_create(&ControllerLabels { controller }).set(i64::from(ready));
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        for counts in self.included.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = encode_registry(&mut text, counts);
        }
        let _ = encode_eof(&mut text);
        text
    }

    /// Returns the counts of `controller`.
    #[must_use]
    pub fn counts(&self, controller: &'static str) -> Counts {
        let of = |result| {
            self.reconciled.get(&ResultLabels { controller, result }).map_or(0, |counter| counter.get())
        };
        Counts {
            reconciled: RESULTS.into_iter().map(of).sum(),
            errors: self.errors.get(&ControllerLabels { controller }).map_or(0, |counter| counter.get()),
            waiting: self.depth.get(&QueueLabels::of(controller)).map_or(0, |gauge| gauge.get()),
        }
    }

    /// Registers `controller`, which reconciles up to `at_a_time` objects at a time; its metrics exist from now on.
    pub fn begins(&self, controller: &'static str, at_a_time: usize) {
        let (labels, queue) = (ControllerLabels { controller }, QueueLabels::of(controller));
        for result in RESULTS {
            drop(self.reconciled.get_or_create(&ResultLabels { controller, result }));
        }
        for counter in [&self.errors, &self.panics] {
            drop(counter.get_or_create(&labels));
        }
        for counter in [&self.added, &self.retried] {
            drop(counter.get_or_create(&queue));
        }
        self.most_workers.get_or_create(&labels).set(number(at_a_time));
    }

    /// Counts a reconciliation of an object.
    pub fn reconciled(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.reconciled.get_or_create(&ResultLabels { controller, result }).inc();
        let labels = ControllerLabels { controller };
        if result == "error" {
            self.errors.get_or_create(&labels).inc();
        }
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        self.worked.get_or_create(&QueueLabels::of(controller)).observe(took.as_secs_f64());
    }

    /// Counts a reconciliation that panicked.
    pub fn panicked(&self, controller: &'static str) {
        self.panics.get_or_create(&ControllerLabels { controller }).inc();
    }

    /// Sets the number of objects in the queue of `controller`, and of those being reconciled.
    pub fn depth(&self, controller: &'static str, waiting: usize, looked_at: usize) {
        self.depth.get_or_create(&QueueLabels::of(controller)).set(number(waiting));
        self.workers.get_or_create(&ControllerLabels { controller }).set(number(looked_at));
    }

    /// Records that an object was taken from the queue after waiting for `waited`.
    pub fn taken(&self, controller: &'static str, waited: Duration) {
        let labels = QueueLabels::of(controller);
        self.added.get_or_create(&labels).inc();
        self.waited.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// Counts a retry after an error.
    pub fn retried(&self, controller: &'static str) {
        self.retried.get_or_create(&QueueLabels::of(controller)).inc();
    }

    /// Sets whether this process holds the Lease `name`.
    pub fn leading(&self, name: &str, leads: bool) {
        self.leading.get_or_create(&LeaseLabels { name: name.to_owned() }).set(i64::from(leads));
    }
}

/// Registers metrics with a common prefix.
struct Adding<'r> {
    registry: &'r mut Registry,
    prefix: &'static str,
}

impl Adding<'_> {
    fn one(&mut self, name: &str, help: &str, metric: &(impl prometheus_client::registry::Metric + Clone)) {
        self.registry.register(format!("{}_{name}", self.prefix), help, metric.clone());
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_controller_runtime() {
        let metrics = ControllerMetrics::default();
        metrics.begins("a", 16);
        metrics.reconciled("a", "success", Duration::from_millis(2));
        metrics.reconciled("a", "error", Duration::from_millis(2));
        metrics.taken("a", Duration::from_millis(7));
        metrics.retried("a");
        metrics.depth("a", 3, 2);
        metrics.leading("lease", true);
        let readiness = Readiness::default();
        readiness.set("a", true);
        let (own, mut counts) = (Counter::<u64>::default(), Registry::default());
        counts.register("widgets", "Of one system", own.clone());
        metrics.include(counts);
        own.inc();
        assert_eq!(metrics.counts("a"), Counts { reconciled: 2, errors: 1, waiting: 3 });
        assert_eq!(metrics.counts("b"), Counts::default());
        let text = metrics.text(&readiness);
        for line in [
            "controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 1",
            "controller_runtime_reconcile_total{controller=\"a\",result=\"requeue_after\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"a\"} 1",
            "controller_runtime_reconcile_panics_total{controller=\"a\"} 0",
            "controller_runtime_reconcile_time_seconds_count{controller=\"a\"} 2",
            "controller_runtime_max_concurrent_reconciles{controller=\"a\"} 16",
            "controller_runtime_active_workers{controller=\"a\"} 2",
            "workqueue_depth{controller=\"a\",name=\"a\"} 3",
            "workqueue_adds_total{controller=\"a\",name=\"a\"} 1",
            "workqueue_retries_total{controller=\"a\",name=\"a\"} 1",
            "workqueue_queue_duration_seconds_count{controller=\"a\",name=\"a\"} 1",
            "workqueue_work_duration_seconds_count{controller=\"a\",name=\"a\"} 2",
            "leader_election_master_status{name=\"lease\"} 1",
            "admit_controller_ready{controller=\"a\"} 1",
            "widgets_total 1",
        ] {
            assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
