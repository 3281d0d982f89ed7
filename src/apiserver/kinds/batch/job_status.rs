//! Validates the status of Jobs, which other controllers may write as well: terminal conditions are final, and counts agree.
//! Most rules apply only to what a write changes, so that an inconsistent status can still be updated.

use std::collections::HashSet;

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::{indexes, job_spec};
use crate::kinds::field::Field;
use crate::kinds::shared::{internal, replicas};

/// The new status of a Job, and the old one.
struct Change<'o> {
    spec: Field<'o>,
    status: Field<'o>,
    old: Field<'o>,
}

impl Change<'_> {
    /// Whether a condition is true in the new status.
    fn is(&self, condition: &str) -> bool {
        holds(&self.status, condition)
    }

    fn was(&self, condition: &str) -> bool {
        holds(&self.old, condition)
    }

    fn turned(&self, condition: &str) -> bool {
        self.is(condition) != self.was(condition)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finish_turned(&self) -> bool {
        self.is_finished() != (self.was("Complete") || self.was("Failed"))
    }

    /// Whether a field has another value; absence differs from any value.
    fn changed(&self, field: &'static str) -> bool {
        self.status.get(field).value() != self.old.get(field).value()
    }

    /// Whether a count differs; absence counts as 0.
    fn count_changed(&self, field: &'static str) -> bool {
        count(&self.status, field) != count(&self.old, field)
    }

    fn refuse_conditions(&self, why: &str, errors: &mut FieldErrors) {
        errors.add(|| self.status.get("conditions").invalid_as(BadValue::Omitted, why));
    }
}

/// Whether the condition of that type is true.
pub(super) fn holds(status: &Field<'_>, kind: &str) -> bool {
    is_told(status, kind, "True")
}

fn is_told(status: &Field<'_>, kind: &str, told: &str) -> bool {
    let mut conditions = status.get("conditions").items();
    conditions.any(|condition| condition.get("type").text() == kind && condition.get("status").text() == told)
}

fn count(status: &Field<'_>, field: &'static str) -> i64 {
    status.get(field).integer().unwrap_or_default()
}

/// Validates a new status.
pub(super) fn validate(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let job = Field::root(object);
    let change =
        Change { spec: job.get("spec"), status: job.get("status"), old: Field::root(old).get("status") };
    let counts = ["active", "succeeded", "failed", "ready", "terminating"];
    replicas::not_negative(&change.status, &counts, errors);
    uncounted(&change.status.get("uncountedTerminatedPods"), errors);
    ends(&change, errors);
    finished(&change, errors);
    listed(&change, errors);
    pods(&change, errors);
    successes(&change, errors);
    back(&change, errors);
}

/// UIDs of uncounted pods must be unique and not empty.
fn uncounted(pods: &Field<'_>, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for list in ["succeeded", "failed"] {
        for uid in pods.get(list).items() {
            if uid.is_empty() {
                errors.add(|| uid.invalid("must not be empty"));
            } else if !seen.insert(uid.text()) {
                errors.add(|| uid.duplicate());
            }
        }
    }
}

/// Validates the terminal conditions, and start and completion time.
fn ends(change: &Change<'_>, errors: &mut FieldErrors) {
    let complete_turned = change.turned("Complete");
    let (start, end) = (change.status.get("startTime"), change.status.get("completionTime"));
    let end_changed = change.changed("completionTime");
    if (complete_turned || change.turned("Failed")) && change.is("Complete") && change.is("Failed") {
        change.refuse_conditions("cannot set Complete=True and Failed=true conditions", errors);
    }
    let target_turned = change.turned("FailureTarget");
    if (complete_turned || target_turned) && change.is("Complete") && change.is("FailureTarget") {
        change.refuse_conditions("cannot set Complete=True and FailureTarget=true conditions", errors);
    }
    if (complete_turned || end_changed) && end.is_set() && !change.is("Complete") {
        let why = "cannot set completionTime when there is no Complete=True condition";
        errors.add(|| end.invalid(why));
    }
    if (complete_turned || end_changed) && !end.is_set() && change.is("Complete") {
        errors.add(|| end.required("completionTime is required for Complete jobs"));
    }
    // Times are stored in one format, which sorts like strings.
    let both = start.is_set() && end.is_set();
    if (change.changed("startTime") || end_changed) && both && end.text() < start.text() {
        errors.add(|| end.invalid("must be equal to or after `startTime`"));
    }
    let failed_turned = change.turned("Failed") || change.changed("failedIndexes");
    if failed_turned && change.is("Failed") && !change.is("FailureTarget") {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        change.refuse_conditions(why, errors);
    }
    let met = "SuccessCriteriaMet";
    if (complete_turned || change.turned(met)) && change.is("Complete") && !change.is(met) {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        change.refuse_conditions(why, errors);
    }
}

/// A finished Job has no active or uncounted pods.
fn finished(change: &Change<'_>, errors: &mut FieldErrors) {
    if !change.is_finished() {
        return;
    }
    let turned = change.finish_turned();
    let (active, start) = (change.status.get("active"), change.status.get("startTime"));
    if (turned || change.count_changed("active")) && count(&change.status, "active") > 0 {
        errors.add(|| active.invalid("active>0 is invalid for finished job"));
    }
    // A suspended Job without completions may be finished before it starts.
    let is_done = change.spec.get("suspend").flag() && change.spec.get("completions").integer() == Some(0);
    if (turned || change.changed("startTime")) && !is_done && !start.is_set() {
        errors.add(|| start.required("startTime is required for finished job"));
    }
    let pods = change.status.get("uncountedTerminatedPods");
    let some = !pods.get("succeeded").is_empty() || !pods.get("failed").is_empty();
    if (turned || change.changed("uncountedTerminatedPods")) && some {
        errors.add(|| {
            let shown = internal::shown(&pods, "io.k8s.api.batch.v1.UncountedTerminatedPods");
            pods.invalid_as(shown, "must be empty for finished job")
        });
    }
}

/// Validates the lists of completed and failed indexes.
fn listed(change: &Change<'_>, errors: &mut FieldErrors) {
    let (completed, failed) = (change.status.get("completedIndexes"), change.status.get("failedIndexes"));
    let completions = change.spec.get("completions").integer();
    let per_index = change.spec.get("backoffLimitPerIndex").is_set();
    let completed_changed = completed.text() != change.old.get("completedIndexes").text();
    let failed_changed = change.changed("failedIndexes");
    let counted = |field: &Field<'_>| completions.map(|most| indexes::count(field.text(), most));
    if completed_changed && let Some(Err(why)) = counted(&completed) {
        errors.add(|| completed.invalid(format!("error parsing completedIndexes: {why}")));
    }
    if failed_changed
        && per_index
        && failed.is_set()
        && let Some(Err(why)) = counted(&failed)
    {
        errors.add(|| failed.invalid(format!("error parsing failedIndexes: {why}")));
    }
    if completed_changed && !completed.is_empty() && !job_spec::is_indexed(&change.spec) {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.add(|| completed.invalid(why));
    }
    if failed_changed && !per_index && failed.is_set() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.add(|| failed.invalid(why));
    }
    let both = failed.is_set() && (completed_changed || failed_changed);
    if let Some(most) = completions.filter(|_| both)
        && let Some(at) = indexes::overlap(completed.text(), failed.text(), most)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {at}");
        errors.add(|| failed.invalid(why));
    }
}

fn pods(change: &Change<'_>, errors: &mut FieldErrors) {
    let (ready, terminating) = (change.status.get("ready"), change.status.get("terminating"));
    let turned = change.finish_turned() || change.changed("terminating");
    if turned && change.is_finished() && terminating.integer().is_some_and(|pods| pods > 0) {
        errors.add(|| terminating.invalid("terminating>0 is invalid for finished job"));
    }
    let active = count(&change.status, "active");
    let turned = change.changed("ready") || change.count_changed("active");
    if turned && ready.integer().is_some_and(|pods| pods > active) {
        errors.add(|| ready.invalid("cannot set more ready pods than active"));
    }
}

fn successes(change: &Change<'_>, errors: &mut FieldErrors) {
    let met = change.is("SuccessCriteriaMet");
    if met && change.is("Failed") {
        change.refuse_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
    }
    if met && change.is("FailureTarget") {
        let why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        change.refuse_conditions(why, errors);
    }
    if change.spec.get("successPolicy").is_set() && !met && change.is("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        change.refuse_conditions(why, errors);
    }
}

/// Validates what may not be undone: terminal conditions, and counts that may not decrease.
fn back(change: &Change<'_>, errors: &mut FieldErrors) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if change.was(condition) && !change.is(condition) {
            let why = format!("cannot disable the terminal {condition}=True condition");
            change.refuse_conditions(&why, errors);
        }
    }
    let fewer = |field: &'static str| count(&change.status, field) < count(&change.old, field);
    let (failed, succeeded) = (change.status.get("failed"), change.status.get("succeeded"));
    if fewer("failed") {
        let own = count(&change.status, "failed");
        errors.add(|| failed.invalid_as(own, "cannot decrease the failed counter"));
    }
    let same_size = change.spec.get("completions").value() == change.spec.get("parallelism").value();
    let may_shrink = job_spec::is_indexed(&change.spec) && same_size;
    if !may_shrink && fewer("succeeded") {
        let own = count(&change.status, "succeeded");
        errors.add(|| succeeded.invalid_as(own, "cannot decrease the succeeded counter"));
    }
    let (start, end) = (change.status.get("startTime"), change.status.get("completionTime"));
    if end.is_set() && change.old.get("completionTime").is_set() && change.changed("completionTime") {
        errors.add(|| end.invalid("field is immutable"));
    }
    let started = change.old.get("startTime").is_set() && change.changed("startTime");
    let resumes = change.was("Suspended") && is_told(&change.status, "Suspended", "False");
    if started && !resumes && !change.spec.get("suspend").flag() {
        errors.add(|| start.invalid_as(start.value(), "field is immutable for unsuspended job once set"));
    }
    let met = "SuccessCriteriaMet";
    if change.was(met) && !change.is(met) {
        change.refuse_conditions("cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if change.was("Complete") && !change.was(met) && change.is(met) {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        change.refuse_conditions(why, errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(status: &Value, old: &Value) -> Vec<String> {
        let spec = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 2});
        let job = |status: &Value| json!({"spec": spec, "status": status});
        let mut errors = FieldErrors::default();
        validate(&job(status), &job(old), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    fn conditions(kinds: &[&str]) -> Value {
        kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
    }

    #[test]
    fn a_job_ends_in_one_way() {
        let times = |conditions: Value| {
            json!({"startTime": "2030-01-01T00:00:00Z", "completionTime": "2030-01-01T00:00:01Z",
                "conditions": conditions})
        };
        let complete = times(conditions(&["SuccessCriteriaMet", "Complete"]));
        assert_eq!(told(&complete, &json!({})), Vec::<String>::new());
        assert_eq!(
            told(&times(conditions(&["Complete"])), &json!({})),
            [
                "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true \
              condition"
            ]
        );
        assert_eq!(
            told(&json!({"conditions": conditions(&["Failed"]), "active": 1}), &json!({})),
            [
                "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true \
                 condition",
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.startTime: Required value: startTime is required for finished job",
            ]
        );
        let texts = told(&times(json!([])), &complete);
        assert_eq!(
            texts,
            [
                "status.completionTime: Invalid value: \"2030-01-01T00:00:01Z\": cannot set completionTime when there is \
                 no Complete=True condition",
                "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
                "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
            ]
        );
    }

    #[test]
    fn indexes_end_once() {
        assert_eq!(
            told(&json!({"completedIndexes": "0-2,7", "failedIndexes": "2"}), &json!({})),
            [
                "status.completedIndexes: Invalid value: \"0-2,7\": error parsing completedIndexes: too large index: \
                 \"7\"",
                "status.failedIndexes: Invalid value: \"2\": cannot set non-null failedIndexes when backoffLimitPerIndex \
                 is null",
                "status.failedIndexes: Invalid value: \"2\": failedIndexes and completedIndexes overlap at index: 2",
            ]
        );
        let same = json!({"completedIndexes": "7"});
        assert_eq!(told(&same, &same), Vec::<String>::new());
    }

    #[test]
    fn counts_do_not_go_back() {
        assert_eq!(
            told(&json!({"failed": 1}), &json!({"failed": 2, "succeeded": 1, "startTime": "t"})),
            [
                "status.failed: Invalid value: 1: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
                "status.startTime: Invalid value: null: field is immutable for unsuspended job once set",
            ]
        );
    }
}
