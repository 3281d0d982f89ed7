//! Validates counts of replicas in the status of workloads.

use admit_apimachinery::findings::FieldErrors;

use crate::kinds::field::Field;

/// Each count must be at least 0.
pub(crate) fn not_negative(parent: &Field<'_>, counts: &[&'static str], errors: &mut FieldErrors) {
    for &count in counts {
        parent.get(count).not_negative(errors);
    }
}

/// No count may exceed that of `of`; errors call it `name`.
pub(crate) fn at_most(
    status: &Field<'_>,
    counts: &[&'static str],
    of: &'static str,
    name: &str,
    errors: &mut FieldErrors,
) {
    let most = status.get(of).integer().unwrap_or_default();
    for &count in counts {
        let count = status.get(count);
        let own = count.integer().unwrap_or_default();
        if own > most {
            errors.add(|| count.invalid_as(own, format!("cannot be greater than {name}")));
        }
    }
}

/// Validates the status of a ReplicaSet or ReplicationController.
pub(crate) fn kept(status: &Field<'_>, errors: &mut FieldErrors) {
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    not_negative(status, &["replicas"], errors);
    not_negative(status, &parts, errors);
    not_negative(status, &["terminatingReplicas", "observedGeneration"], errors);
    at_most(status, &parts, "replicas", "status.replicas", errors);
    at_most(status, &["availableReplicas"], "readyReplicas", "readyReplicas", errors);
}

/// The count of hash collisions may not decrease.
pub(crate) fn not_decremented(status: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let (count, before) = (status.get("collisionCount"), old.get("collisionCount"));
    let own = count.integer().unwrap_or_default();
    if before.integer().is_some_and(|before| own < before) {
        errors.add(|| count.invalid_as(own, "cannot be decremented"));
    }
}
