//! Metrics of priming and of the state of ClusterOperators, under the names of the cluster version operator.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use super::crd::ClusterOperator;
use super::plan::{PRIMED, REQUIRED};
use crate::telemetry::{Outside, Secrets};

/// The longest reason in a label, in characters: those of Kubernetes are single words.
const MAX_REASON: usize = 128;

/// The metrics; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    primed: Family<Result, Counter>,
    transitions: Family<Transition, Counter>,
    operators: Arc<Mutex<BTreeMap<String, Seen>>>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Result {
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Transition {
    name: String,
    condition: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Up {
    name: String,
    version: String,
    reason: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Condition {
    name: String,
    condition: String,
    reason: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Name {
    name: String,
}

/// The last known state of a ClusterOperator.
#[derive(Debug, Default)]
struct Seen {
    version: String,
    /// Status and reason by condition type.
    conditions: BTreeMap<String, (String, String)>,
}

impl Seen {
    fn of(object: &ClusterOperator) -> Self {
        let report = object.report();
        let version = report.versions.iter().find(|version| version.name == "operator");
        let conditions = report.conditions.into_iter().map(|condition| {
            let reason = condition.reason.unwrap_or_default();
            (condition.type_, (condition.status, label(reason)))
        });
        Self {
            version: version.map_or_else(String::new, |version| label(version.version.clone())),
            conditions: conditions.collect(),
        }
    }

    fn is(&self, type_: &str, status: &str) -> bool {
        self.conditions.get(type_).is_some_and(|(is, _)| is == status)
    }

    fn status(&self, type_: &str) -> Option<&str> {
        self.conditions.get(type_).map(|(status, _)| status.as_str())
    }

    /// Whether it was primed, and nothing else has been reported yet.
    fn is_unreported(&self) -> bool {
        let primed = |type_: &&str| {
            self.conditions
                .get(*type_)
                .is_some_and(|(status, reason)| status == "Unknown" && reason == PRIMED)
        };
        REQUIRED.iter().all(primed)
    }
}

fn label(text: String) -> String {
    Outside::at_most(MAX_REASON, text, &Secrets::default()).into_string()
}

impl Counts {
    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "ClusterOperators of the payload that were written, or could not be";
        registry.register("cluster_operator_primed", help, self.primed.clone());
        registry.register_collector(Box::new(Shown(self.clone())));
    }

    /// Counts the result of one ClusterOperator of the payload: `created`, `primed`, `conflict`, `error` or
    /// `bad_manifest`.
    pub fn primed(&self, result: &'static str) {
        self.primed.get_or_create(&Result { result }).inc();
    }

    /// Records the state of the ClusterOperator `name`; None if it was deleted.
    pub fn see(&self, name: &str, object: Option<&ClusterOperator>) {
        let seen = object.map(Seen::of);
        let mut operators = self.operators();
        let before = match &seen {
            Some(_) => operators.remove(name),
            None => operators.remove(name).or_else(|| Some(Seen::default())),
        };
        let nothing = Seen::default();
        // For a new one, no transition of conditions is counted.
        if let Some(before) = before {
            let now = seen.as_ref().unwrap_or(&nothing);
            let types = before.conditions.keys().chain(now.conditions.keys());
            let changed: std::collections::BTreeSet<_> =
                types.filter(|type_| before.status(type_) != now.status(type_)).collect();
            for condition in changed {
                let transition = Transition { name: name.to_owned(), condition: condition.clone() };
                self.transitions.get_or_create(&transition).inc();
            }
        }
        if let Some(seen) = seen {
            operators.insert(name.to_owned(), seen);
        }
    }

    /// Forgets all ClusterOperators for which `is_there` is false.
    pub fn keep(&self, is_there: impl Fn(&str) -> bool) {
        let gone: Vec<String> = self.operators().keys().filter(|name| !is_there(name)).cloned().collect();
        gone.iter().for_each(|name| self.see(name, None));
    }

    fn operators(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.operators.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the metrics at each scrape: deleted operators leave no series behind, and no scrape sees half of a change.
#[derive(Debug)]
struct Shown(Counts);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (up, conditions) = (Family::<Up, Gauge>::default(), Family::<Condition, Gauge>::default());
        let unreported = Family::<Name, Gauge>::default();
        for (name, seen) in self.0.operators().iter() {
            let reason = seen.conditions.get("Available").map(|(_, reason)| reason.clone());
            let reason = reason.unwrap_or_else(|| "NoAvailableCondition".to_owned());
            let labels = Up { name: name.clone(), version: seen.version.clone(), reason };
            up.get_or_create(&labels).set(seen.is("Available", "True").into());
            for (condition, (status, reason)) in &seen.conditions {
                let labels =
                    Condition { name: name.clone(), condition: condition.clone(), reason: reason.clone() };
                match status.as_str() {
                    "True" => drop(conditions.get_or_create(&labels).set(1)),
                    "False" => drop(conditions.get_or_create(&labels).set(0)),
                    _ => {}
                }
            }
            unreported.get_or_create(&Name { name: name.clone() }).set(seen.is_unreported().into());
        }
        let mut show = |name: &str, help: &str, metric: &dyn Metric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        show("cluster_operator_up", "1 for ClusterOperators that are Available", &up)?;
        let help = "1 for conditions that are True, 0 for those that are False";
        show("cluster_operator_conditions", help, &conditions)?;
        let help = "1 for ClusterOperators that were primed and have not reported";
        show("cluster_operator_unreported", help, &unreported)?;
        let help = "Changes of conditions that were seen";
        show("cluster_operator_condition_transitions", help, &self.0.transitions)
    }
}
