//! Selects the changes of an add-on that trigger a reconciliation: components' conditions, the spec, and changes of
//! the aggregate by other writers: it is corrected if it is wrong, and copied to the hub in any case. The controller's
//! own writes do not count.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::aggregate::aggregated;
use super::crd::{ObservabilityAddon, SOURCE};
use super::vocabulary::Vocabulary;

#[derive(Debug)]
pub(super) struct Changes {
    vocabulary: &'static Vocabulary,
    /// The last state of each add-on, by uid.
    heard: Mutex<HashMap<String, Heard>>,
}

/// The last known state of an add-on.
#[derive(Debug)]
struct Heard {
    /// A hash of the spec and of the components' conditions.
    said: u64,
    conditions: Vec<Condition>,
    /// The number that was returned for it.
    number: u64,
}

impl Changes {
    pub(super) fn new(vocabulary: &'static Vocabulary) -> Self {
        Self { vocabulary, heard: Mutex::default() }
    }

    /// Returns a number that changes if `object` has to be reconciled.
    pub(super) fn number(&self, object: &ObservabilityAddon) -> u64 {
        let said = said(object, self.vocabulary);
        let Some(uid) = object.uid() else { return said };
        let mut all = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match all.get(&uid).filter(|before| before.said == said) {
            None => said,
            Some(before) if self.is_own(&before.conditions, object.conditions()) => before.number,
            // Unique to this version, since the next one may equal an earlier one.
            Some(_) => {
                let mut hasher = DefaultHasher::new();
                (said, object.resource_version()).hash(&mut hasher);
                hasher.finish()
            }
        };
        all.insert(uid, Heard { said, conditions: object.conditions().to_vec(), number });
        number
    }

    /// Whether the conditions `after` equal those `before`, or the result of aggregating them.
    fn is_own(&self, before: &[Condition], after: &[Condition]) -> bool {
        let aggregated = |conditions| aggregated(conditions, self.vocabulary, Timestamp::UNIX_EPOCH);
        let spoilt = aggregated(after).is_some();
        !spoilt
            && (before == after || aggregated(before).is_some_and(|made| is_same_but_for_times(&made, after)))
    }

    pub(super) fn forget(&self, uid: &str) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

fn is_same_but_for_times(one: &[Condition], other: &[Condition]) -> bool {
    let parts = |it: &Condition| (it.type_.clone(), it.status.clone(), it.reason.clone(), it.message.clone());
    one.iter().map(parts).eq(other.iter().map(parts))
}

fn said(object: &ObservabilityAddon, vocabulary: &Vocabulary) -> u64 {
    let mut hasher = DefaultHasher::new();
    for condition in object.conditions().iter().filter(|condition| !vocabulary.is_standard(condition)) {
        (&condition.type_, &condition.status, &condition.reason, &condition.message).hash(&mut hasher);
    }
    let ObjectMeta { generation, deletion_timestamp, .. } = &object.metadata;
    (generation, deletion_timestamp.is_some(), object.annotations().get(SOURCE)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::vocabulary::SEED;
    use super::*;

    fn addon(version: u32, conditions: &[(&str, &str)]) -> ObservabilityAddon {
        let condition = |(type_, reason): &(&str, &str)| {
            json!({"type": type_, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({
            "apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
            "metadata": {"name": "a", "uid": "u", "resourceVersion": version.to_string()},
            "spec": {}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn ob_05_components_are_looked_at_and_what_the_keeper_writes_is_not() {
        let changes = Changes::new(&SEED);
        let mc = ("MetricsCollectorStatus", "ForwardFailure");
        let told = changes.number(&addon(1, &[mc]));
        let own = changes.number(&addon(2, &[mc, ("Degraded", "ForwardFailure")]));
        // Another writer changed the message of the aggregate.
        assert_ne!(own, told);
        let changes = Changes::new(&SEED);
        let mc = ("MetricsCollectorStatus", "ForwardSuccessful");
        let mut right = addon(2, &[mc, ("Available", "ForwardSuccessful")]);
        "observability-controller add-on is available."
            .clone_into(&mut right.status.as_mut().unwrap().conditions[1].message);
        let told = changes.number(&addon(1, &[mc]));
        assert_eq!(changes.number(&right), told);
        let spoilt = changes.number(&addon(3, &[mc]));
        assert_ne!(spoilt, told);
        assert_ne!(changes.number(&addon(4, &[mc])), spoilt, "spoilt again");
        let other = ("MetricsCollectorStatus", "UpdateFailure");
        assert_ne!(changes.number(&addon(5, &[other])), told);
    }

    /// The hub must show the conditions of the spoke, whoever wrote them.
    #[test]
    fn what_others_make_of_the_aggregate_is_looked_at_though_it_is_right() {
        let changes = Changes::new(&SEED);
        let mc = ("MetricsCollectorStatus", "UpdateFailure");
        let mut right = addon(2, &[mc, ("Degraded", "UpdateFailure"), ("Available", "ForwardSuccessful")]);
        let conditions = &mut right.status.as_mut().unwrap().conditions;
        "MetricsCollectorStatus: ".clone_into(&mut conditions[1].message);
        "False".clone_into(&mut conditions[2].status);
        let first = changes.number(&right);
        right.metadata.resource_version = Some("3".to_owned());
        assert_eq!(changes.number(&right), first, "the same conditions");
        right.metadata.resource_version = Some("4".to_owned());
        "of another time".clone_into(&mut right.status.as_mut().unwrap().conditions[2].message);
        let second = changes.number(&right);
        assert_ne!(second, first);
        right.metadata.resource_version = Some("5".to_owned());
        assert_eq!(changes.number(&right), second, "the same again");
        right.metadata.resource_version = Some("6".to_owned());
        right.status.as_mut().unwrap().conditions.pop();
        assert_ne!(changes.number(&right), second, "gone");
    }
}
