//! Counts events of pipelines in metrics, by application, under upstream's names.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::plan::Refresh;
use super::verdict::Verdict;

type Share = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, Default)]
pub struct Counts {
    hosts: Family<App, Gauge>,
    ratio: Family<App, Share>,
    total: Family<App, Gauge>,
    threshold: Family<App, Share>,
    failed: Family<App, Counter>,
    refreshed: Family<Reason, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct App {
    app: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Reason {
    app: String,
    reason: &'static str,
}

impl Counts {
    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "cyndi_hosts_total",
            "Hosts of the table at the last validation",
            self.hosts.clone(),
        );
        let help = "Share of hosts that did not match at the last validation";
        registry.register("cyndi_inconsistency_ratio", help, self.ratio.clone());
        registry.register(
            "cyndi_inconsistency_total",
            "Hosts that did not match at the last validation",
            self.total.clone(),
        );
        let help = "Share of hosts that may fail to match";
        registry.register("cyndi_inconsistency_threshold", help, self.threshold.clone());
        registry.register("cyndi_validation_failed", "Validations that failed", self.failed.clone());
        registry.register("cyndi_refresh", "Pipelines built anew, by why", self.refreshed.clone());
    }

    /// Creates the counters of an application with 0: a counter that appears with its first event would hide that event.
    pub fn begin(&self, app: &str) {
        drop(self.failed.get_or_create(&App { app: app.to_owned() }));
        for reason in ["deviation", "invalid"] {
            drop(self.refreshed.get_or_create(&Reason { app: app.to_owned(), reason }));
        }
    }

    /// Counts a validation of an application's table.
    pub fn validated(&self, app: &str, verdict: &Verdict) {
        let of = App { app: app.to_owned() };
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.hosts.get_or_create(&of).set(whole(verdict.table));
        self.total.get_or_create(&of).set(whole(verdict.mismatches));
        self.ratio.get_or_create(&of).set(verdict.percent / 100.0);
        let threshold = i32::try_from(verdict.threshold).map_or(f64::INFINITY, f64::from);
        self.threshold.get_or_create(&of).set(threshold / 100.0);
        if !verdict.valid {
            self.failed.get_or_create(&of).inc();
        }
    }

    pub(super) fn refreshed(&self, app: &str, why: &Refresh) {
        self.refreshed.get_or_create(&Reason { app: app.to_owned(), reason: why.reason() }).inc();
    }
}
