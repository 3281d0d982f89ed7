//! What is counted of priming.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    primed: Family<Labels, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Labels {
    result: &'static str,
}

impl Counts {
    /// Shows the numbers with those of `registry`.
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "ClusterOperators of the payload that were written, or could not be";
        registry.register("cluster_operator_primed", help, self.primed.clone());
    }

    /// What came of a ClusterOperator of the payload: `primed`, `conflict`, `error` or `bad_manifest`.
    pub(super) fn primed(&self, result: &'static str) {
        self.primed.get_or_create(&Labels { result }).inc();
    }
}
