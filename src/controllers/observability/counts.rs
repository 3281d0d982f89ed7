//! Exports the states of add-ons as metrics. Labels are only words of the vocabulary and constants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::crd::ObservabilityAddon;
use super::vocabulary::Vocabulary;

/// The metrics; clones share them.
#[derive(Clone, Debug)]
pub struct Counts {
    vocabulary: &'static Vocabulary,
    condition: Family<Said, Gauge>,
    invalid: Family<Edge, Counter>,
    replicated: Family<Outcome, Counter>,
    /// The last reasons of the components, by the object's uid.
    last: Arc<Mutex<HashMap<String, Words>>>,
}

/// The reasons of the platform's collector, and of that of user workloads.
type Words = [Option<&'static str>; 2];

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Said {
    component: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Edge {
    component: &'static str,
    from: &'static str,
    to: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Outcome {
    result: &'static str,
}

impl Counts {
    #[must_use]
    pub fn new(vocabulary: &'static Vocabulary) -> Self {
        let (condition, invalid, replicated) = (Family::default(), Family::default(), Family::default());
        Self { vocabulary, condition, invalid, replicated, last: Arc::default() }
    }

    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "1 for what each component says of itself, 0 for what else it could say";
        registry.register("observability_addon_condition", help, self.condition.clone());
        let help = "Reasons of components that may not follow one another and did; after a watch that broke, two may be told as one";
        registry.register("observability_addon_invalid_transitions", help, self.invalid.clone());
        let help = "Looks at the hub's object, and connections to it, by what they came to";
        registry.register("observability_addon_hub_replication", help, self.replicated.clone());
    }

    /// Counts a reconciliation of the hub's object by its result.
    pub fn replicated(&self, result: &'static str) {
        self.replicated.get_or_create(&Outcome { result }).inc();
    }

    /// Updates the metrics with the conditions of the components of `object`.
    pub fn hear(&self, object: &ObservabilityAddon) {
        let components = [self.vocabulary.collector, self.vocabulary.workloads_collector];
        let reason = |component: &str| {
            let condition = object.conditions().iter().find(|condition| condition.type_ == component)?;
            self.vocabulary.reason(&condition.reason)
        };
        let now = components.map(reason);
        let words: Words = now.map(|reason| reason.map(|reason| reason.name));
        let Some(uid) = object.uid() else { return };
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, words);
        for ((component, new), from) in components.into_iter().zip(now).zip(before.unwrap_or_default()) {
            if let (Some(new), Some(from)) = (new, from)
                && !self.vocabulary.allows(Some(from), new)
            {
                self.invalid.get_or_create(&Edge { component, from, to: new.name }).inc();
            }
            for known in new.map(|_| self.vocabulary.reasons).unwrap_or_default() {
                let said = Said { component, reason: known.name };
                let holds = new.is_some_and(|new| new.name == known.name);
                self.condition.get_or_create(&said).set(holds.into());
            }
        }
    }

    /// Removes the metrics of a deleted object.
    pub fn forget(&self, uid: &str) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}
