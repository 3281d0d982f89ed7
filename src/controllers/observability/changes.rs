//! Which changes of an add-on are looked at: what components say, what is asked for, and that somebody spoilt the aggregate. What the
//! keeper itself writes is not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::aggregate::aggregated;
use super::crd::{ObservabilityAddon, SOURCE};
use super::vocabulary::Vocabulary;

#[derive(Debug)]
pub(super) struct Changes {
    vocabulary: &'static Vocabulary,
    /// What was asked for and said when it was last heard of, by the object's uid.
    said: Mutex<HashMap<String, u64>>,
}

impl Changes {
    pub(super) fn new(vocabulary: &'static Vocabulary) -> Self {
        Self { vocabulary, said: Mutex::default() }
    }

    /// A number that is another one where `object` has to be looked at.
    pub(super) fn number(&self, object: &ObservabilityAddon) -> u64 {
        let said = said(object, self.vocabulary);
        let Some(uid) = object.uid() else { return said };
        let before = self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, said);
        // The same is said, and the aggregate is not that of it: not by the keeper, who has looked at that or is about to.
        let spoilt = before == Some(said)
            && aggregated(object.conditions(), self.vocabulary, Timestamp::UNIX_EPOCH).is_some();
        if !spoilt {
            return said;
        }
        let mut hasher = DefaultHasher::new();
        (said, object.resource_version()).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn forget(&self, uid: &str) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
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
        // The message of the aggregate is not that of the component: spoilt by another.
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
}
