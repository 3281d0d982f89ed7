//! What controllers count, under the names that controller-runtime gave these numbers: dashboards and alerts that were made for
//! others' operators work for ours. Labels are names of controllers and words of this source.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The counters of the controllers of a process.
pub struct ControllerMetrics {
    registry: Registry,
    reconciled: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    depth: Family<QueueLabels, Gauge>,
    leading: Family<LeaseLabels, Gauge>,
    primed: Family<PrimedLabels, Counter>,
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

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LeaseLabels {
    name: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PrimedLabels {
    result: &'static str,
}

/// From a look that finds nothing to do, to one that waits for slow servers.
fn seconds() -> Histogram {
    const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];
    Histogram::new(SECONDS)
}

impl Default for ControllerMetrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let metrics = Self {
            registry: Registry::default(),
            reconciled: Family::default(),
            errors: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            depth: Family::default(),
            leading: Family::default(),
            primed: Family::default(),
        };
        registry.register(
            "controller_runtime_reconcile",
            "Looks at objects, by controller and result",
            metrics.reconciled.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Looks at objects that failed",
            metrics.errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Seconds of a look at an object",
            metrics.seconds.clone(),
        );
        registry.register("workqueue_depth", "Objects that wait to be looked at", metrics.depth.clone());
        registry.register(
            "leader_election_master_status",
            "1 while this process holds the Lease of the name",
            metrics.leading.clone(),
        );
        registry.register(
            "cluster_operator_primed",
            "ClusterOperators of the payload that were written, or could not be",
            metrics.primed.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerMetrics").finish_non_exhaustive()
    }
}

impl ControllerMetrics {
    /// All of it, as text of [`super::MEDIA_TYPE`].
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// One look at an object.
    pub fn reconciled(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.reconciled.get_or_create(&ResultLabels { controller, result }).inc();
        let labels = ControllerLabels { controller };
        if result == "error" {
            self.errors.get_or_create(&labels).inc();
        }
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// How many objects wait for `controller`.
    pub fn depth(&self, controller: &'static str, waiting: usize) {
        let depth = i64::try_from(waiting).unwrap_or(i64::MAX);
        self.depth.get_or_create(&QueueLabels { controller, name: controller }).set(depth);
    }

    /// What came of a ClusterOperator of the payload: `primed`, `conflict`, `error` or `bad_manifest`.
    pub fn primed(&self, result: &'static str) {
        self.primed.get_or_create(&PrimedLabels { result }).inc();
    }

    /// Whether this process holds the Lease `name`.
    pub fn leading(&self, name: &str, leads: bool) {
        self.leading.get_or_create(&LeaseLabels { name: name.to_owned() }).set(i64::from(leads));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_controller_runtime() {
        let metrics = ControllerMetrics::default();
        metrics.reconciled("a", "success", Duration::from_millis(2));
        metrics.reconciled("a", "error", Duration::from_millis(2));
        metrics.depth("a", 3);
        metrics.leading("lease", true);
        metrics.primed("primed");
        let text = metrics.text();
        for line in [
            "controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 1",
            "controller_runtime_reconcile_errors_total{controller=\"a\"} 1",
            "controller_runtime_reconcile_time_seconds_count{controller=\"a\"} 2",
            "workqueue_depth{controller=\"a\",name=\"a\"} 3",
            "leader_election_master_status{name=\"lease\"} 1",
            "cluster_operator_primed_total{result=\"primed\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
        }
    }
}
