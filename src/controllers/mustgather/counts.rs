//! Counts must-gathers in metrics, under upstream's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Default)]
pub struct Counts {
    jobs: Counter,
    /// A counter with the type gauge: its upstream name lacks the suffix that OpenMetrics requires for counters.
    errors: Gauge,
}

impl Counts {
    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("must_gather_operator_must_gather", "Jobs made", self.jobs.clone());
        let errors = self.errors.clone();
        registry.register("must_gather_operator_must_gather_errors", "MustGathers that failed", errors);
    }

    pub(super) fn created(&self) {
        self.jobs.inc();
    }

    pub(super) fn failed(&self) {
        self.errors.inc();
    }

    /// Returns the number of created Jobs, and of failed MustGathers.
    pub fn counted(&self) -> (u64, u64) {
        (self.jobs.get(), u64::try_from(self.errors.get()).unwrap_or_default())
    }
}
