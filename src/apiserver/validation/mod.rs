//! Validates built-in objects beyond their types: runs the checks of the kind, and validates finalizers.
//!
//! Input: a decoded object with its defaults. Output: the errors, in the order in which Kubernetes finds them.
//! Metadata, changes of immutable fields and the expressions of policies are checked elsewhere.

pub(crate) mod metadata;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use serde_json::Value;

use crate::interrupt;
use crate::kinds::shared::texts::{NOT_QUALIFIED, is_bare};
use crate::kinds::{Habit, has, strategy};
use crate::resources::ResourceInfo;
use crate::status::{Cause, Causes};

/// Validates the content of `object`, which replaces `old` if there is one.
#[must_use]
pub(crate) fn content(info: &ResourceInfo, object: &Value, old: Option<&Value>) -> Causes {
    if !info.builtin {
        return Causes::default();
    }
    let mut causes = bare_finalizers(info, object, if old.is_some() { times_of_change(info) } else { 1 });
    if let Some(strategy) = strategy(info) {
        causes.extend(strategy.errors(object, old).into_iter().map(|error| error.cause()));
    }
    causes
}

/// Returns how often the kind's own validation of a change checks the finalizers.
#[must_use]
pub(crate) fn times_of_change(info: &ResourceInfo) -> usize {
    usize::from(!has(info, Habit::ChangeOnce)).saturating_add(validated_again(info)).max(1)
}

/// Returns errors for finalizers that lack a required domain, each so many times.
#[must_use]
pub(crate) fn bare_finalizers(info: &ResourceInfo, object: &Value, times: usize) -> Causes {
    let mut causes = Causes::default();
    if info.builtin && checks_finalizers(info) {
        (0..times).for_each(|_| causes.extend(finalizers(object)));
    }
    causes
}

/// Returns how often a kind's validation repeats that of the metadata of a changed object: an update is validated as an
/// object and as a change, and both list their errors.
pub(crate) fn validated_again(info: &ResourceInfo) -> usize {
    if has(info, Habit::ObjectTwice) { 2 } else { usize::from(has(info, Habit::ObjectAgain)) }
}

/// Runs the checks that upstream makes before those of the metadata, and repeats after them.
#[must_use]
pub(crate) fn before_change(info: &ResourceInfo, object: &Value, old: &Value) -> Causes {
    let mut errors = FieldErrors::default();
    if let Some(judge) = strategy(info).and_then(|strategy| strategy.judged_as_new) {
        judge(object, old, &mut errors);
    }
    errors.into_iter().map(|error| error.cause()).collect()
}

/// Returns whether the group requires a domain in the names of finalizers, as most do.
fn checks_finalizers(info: &ResourceInfo) -> bool {
    const ANY: [&str; 6] = [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    ];
    !ANY.contains(&info.group.as_str()) && !has(info, Habit::JudgedApart)
}

fn finalizers(object: &Value) -> Causes {
    let names = object.get("metadata").map(|metadata| items(metadata, "finalizers")).unwrap_or_default();
    let bare = names.iter().enumerate().filter(|(_, name)| name.as_str().is_some_and(is_bare));
    bare.map(|(at, name)| Cause::invalid(format!("metadata.finalizers[{at}]"), name, NOT_QUALIFIED)).collect()
}

/// Validates labels, or the pairs of a selector, at `field`.
pub(crate) fn label_pairs<'o>(pairs: impl IntoIterator<Item = (&'o str, &'o str)>, field: &str) -> Causes {
    let mut causes = Causes::default();
    for (key, value) in pairs {
        causes.extend(labels::key(key).iter().map(|why| Cause::invalid(field, &key.into(), why)));
        causes.extend(labels::value(value).iter().map(|why| Cause::invalid(field, &value.into(), why)));
    }
    causes
}

fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    interrupt::checkpoint();
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
