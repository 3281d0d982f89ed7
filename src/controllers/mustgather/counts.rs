//! Metrics of must-gathers, under upstream's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Default)]
pub struct Counts {
    jobs: Counter,
    /// A counter that is shown as a gauge: the name of upstream does not end as OpenMetrics has those of counters end.
    errors: Gauge,
}

impl Counts {
    /// Shows the numbers with those of `registry`.
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

    /// Jobs made, and MustGathers that failed.
    pub fn counted(&self) -> (u64, u64) {
        (self.jobs.get(), u64::try_from(self.errors.get()).unwrap_or_default())
    }
}
