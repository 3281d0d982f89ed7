//! Counts the work of the process in the Prometheus text format. Every label has a bounded set of values: constants, and
//! the names of loaded policies up to [`MAX_POLICIES`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use admit_serving::{Names, Process};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// How many policies are counted under their own names; others share [`admit_serving::OTHER`].
const MAX_POLICIES: usize = 500;

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a process; clones share them.
pub struct Metrics {
    registry: Registry,
    /// The figures of the process, whose names have no prefix.
    process: Registry,
    policies: Names,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RequestLabels, Histogram, fn() -> Histogram>,
    rules: Family<RuleLabels, Counter>,
    cost: Histogram,
    let_through: Family<LetThroughLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    panics: Counter,
    handshakes: Family<ResultLabels, Counter>,
    connections: Gauge,
    loaded: Gauge,
    set: Family<SetLabels, Gauge>,
    broken: Family<BrokenLabels, Gauge>,
    excepted: Family<PolicyLabels, Counter>,
    exceptions: Family<StateLabels, Gauge>,
    certificate_days: Gauge<f64, AtomicU64>,
    ready: Family<PartLabels, Gauge<i64, AtomicI64>>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    route: &'static str,
    answer: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RuleLabels {
    policy: Arc<str>,
    action: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LetThroughLabels {
    cause: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ReloadLabels {
    part: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct SetLabels {
    sha256: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct BrokenLabels {
    policy: String,
    in_force: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PolicyLabels {
    policy: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PartLabels {
    part: String,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("admit");
        let metrics = Self {
            policies: Names::up_to(MAX_POLICIES),
            requests: Family::default(),
            seconds: Family::new_with_constructor(latency),
            rules: Family::default(),
            cost: Histogram::new(exponential_buckets(10.0, 10.0, 7)),
            let_through: Family::default(),
            reloads: Family::default(),
            panics: Counter::default(),
            handshakes: Family::default(),
            connections: Gauge::default(),
            loaded: Gauge::default(),
            set: Family::default(),
            broken: Family::default(),
            excepted: Family::default(),
            exceptions: Family::default(),
            certificate_days: Gauge::default(),
            ready: Family::default(),
            registry: Registry::default(),
            process: Registry::default(),
        };
        let mut process = Registry::default();
        process.register_collector(Box::new(Process));
        let mut register = Register(&mut registry);
        register.add("requests", "Requests by route and answer", &metrics.requests);
        register.add("request_seconds", "Seconds from the head of a request to its answer", &metrics.seconds);
        register.add("decisions", "Rules that were asked, by policy, action and outcome", &metrics.rules);
        register.add("evaluation_cost", "CEL cost of all policies of a request", &metrics.cost);
        register.add(
            "let_through",
            "Requests allowed although something was undecided",
            &metrics.let_through,
        );
        register.add("reloads", "Reloads by part and result", &metrics.reloads);
        register.add("panics", "Requests that ended in a panic and were denied", &metrics.panics);
        register.add("handshakes", "TLS handshakes by result", &metrics.handshakes);
        register.add("connections", "Open connections of the webhook", &metrics.connections);
        register.add("policies", "Policies in force", &metrics.loaded);
        register.add("policy_set", "1 for the content hash of the documents in force", &metrics.set);
        register.add(
            "broken_policies",
            "1 for each stored policy or binding that does not compile, by what of it is in force",
            &metrics.broken,
        );
        register.add("excepted", "Denials that an exception took away, by policy", &metrics.excepted);
        register.add(
            "exceptions",
            "Exceptions of the cluster, by whether they are in force, have ended, cannot be read, or are too many",
            &metrics.exceptions,
        );
        register.add(
            "certificate_days_left",
            "Days until the serving certificate expires",
            &metrics.certificate_days,
        );
        register.add("ready", "1 for each part that is ready", &metrics.ready);
        Self { registry, process, ..metrics }
    }
}

struct Register<'r>(&'r mut Registry);

impl Register<'_> {
    fn add(&mut self, name: &str, help: &str, metric: &(impl prometheus_client::registry::Metric + Clone)) {
        self.0.register(name, help, metric.clone());
    }
}

/// Creates a histogram from 100 µs to the timeout of API servers, with the bounds of common objectives.
fn latency() -> Histogram {
    const SECONDS: [f64; 17] = [
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0, 30.0,
    ];
    Histogram::new(SECONDS)
}

impl Metrics {
    /// Returns all metrics as text of [`MEDIA_TYPE`].
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode(&mut text, &self.process);
        text
    }

    /// Counts an answered request.
    pub fn request(&self, route: &'static str, answer: &'static str, took: Duration) {
        let labels = RequestLabels { route, answer };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts the outcome of one rule of a policy, and the action taken.
    pub fn rule(&self, policy: &Arc<str>, action: &'static str, outcome: &'static str) {
        let labels = RuleLabels { policy: Arc::clone(policy), action, outcome };
        // This is called for every rule of every request: existing counters need neither the list of names nor a copy.
        if let Some(counter) = self.rules.get(&labels) {
            counter.inc();
            return;
        }
        let labels = RuleLabels { policy: self.policies.label(policy).into(), ..labels };
        self.rules.get_or_create(&labels).inc();
    }

    /// Records the cost of all expressions of one request.
    pub fn cost(&self, cost: u64) {
        self.cost.observe(cost as f64);
    }

    /// Counts a request that was admitted although something about it was undecided.
    pub fn let_through(&self, cause: &'static str) {
        self.let_through.get_or_create(&LetThroughLabels { cause }).inc();
    }

    pub fn reload(&self, part: &'static str, succeeded: bool) {
        let result = if succeeded { "success" } else { "failure" };
        self.reloads.get_or_create(&ReloadLabels { part, result }).inc();
    }

    pub fn panicked(&self) {
        self.panics.inc();
    }

    pub fn handshake(&self, result: &'static str) {
        self.handshakes.get_or_create(&ResultLabels { result }).inc();
    }

    pub fn connection_opened(&self) {
        self.connections.inc();
    }

    pub fn connection_closed(&self) {
        self.connections.dec();
    }

    /// Sets the hash and the number of the policies in force.
    pub fn set_in_force(&self, hash: &str, policies: usize) {
        self.loaded.set(i64::try_from(policies).unwrap_or(i64::MAX));
        self.set.clear();
        self.set.get_or_create(&SetLabels { sha256: hash.to_owned() }).set(1);
    }

    /// Sets the stored policies and bindings that do not compile, and whether their previous versions are in force.
    pub fn broken<'n>(&self, broken: impl IntoIterator<Item = (&'n str, bool)>) {
        self.broken.clear();
        for (policy, previous) in broken {
            let in_force = if previous { "previous" } else { "none" };
            self.broken
                .get_or_create(&BrokenLabels { policy: self.policies.label(policy).to_owned(), in_force })
                .set(1);
        }
    }

    /// Counts a denial of the policy that an exception removed.
    pub fn excepted(&self, policy: &str) {
        self.excepted.get_or_create(&PolicyLabels { policy: self.policies.label(policy).to_owned() }).inc();
    }

    /// Sets how many exceptions of the cluster are in a state.
    pub fn exceptions(&self, state: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.exceptions.get_or_create(&StateLabels { state }).set(count);
    }

    pub fn certificate_days_left(&self, days: f64) {
        self.certificate_days.set(days);
    }

    pub fn ready(&self, part: &str, ready: bool) {
        self.ready.get_or_create(&PartLabels { part: part.to_owned() }).set(i64::from(ready));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_names_and_labels() {
        let metrics = Metrics::default();
        metrics.request("validate", "denied", Duration::from_millis(2));
        metrics.rule(&"p".into(), "deny", "failed");
        metrics.set_in_force("aa", 1);
        metrics.set_in_force("bb", 2);
        let text = metrics.text();
        for line in [
            "admit_requests_total{route=\"validate\",answer=\"denied\"} 1",
            "admit_decisions_total{policy=\"p\",action=\"deny\",outcome=\"failed\"} 1",
            "admit_request_seconds_count{route=\"validate\",answer=\"denied\"} 1",
            "admit_policy_set{sha256=\"bb\"} 1",
            "admit_policies 2",
            "# TYPE process_open_fds gauge",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
        }
        assert!(!text.contains("aa"), "a set that is gone is not shown");
    }

    #[test]
    fn names_of_policies_are_bounded() {
        let metrics = Metrics::default();
        (0..MAX_POLICIES + 10)
            .for_each(|number| metrics.rule(&format!("p{number}").into(), "deny", "failed"));
        assert_eq!(metrics.text().matches("admit_decisions_total{").count(), MAX_POLICIES + 1);
        assert!(metrics.text().contains("policy=\"(other)\",action=\"deny\",outcome=\"failed\"} 10"));
    }
}
