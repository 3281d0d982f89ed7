//! Calls mutating webhooks one after the other, each with the object as the previous ones left it.

use std::borrow::Cow;
use std::collections::HashSet;

use admit_apimachinery::go;
use admit_policy::matching::Matched;
use admit_policy::patch::applied_values;
use admit_policy::webhook::Kind;
use admit_policy::{GroupVersionKind, Host as _};
use serde_json::Value;
use tokio::time::Instant;

use super::annotations::Place;
use super::answer::{Change, Role};
use super::error::CallError;
use super::hook::Hook;
use super::{Caller, Outcome, Seen, ask, concerns, ended, settle, stored_hooks};
use crate::admission::Review;
use crate::conversion::version_of;
use crate::metrics::Ended;
use crate::object;
use crate::status::Refusal;

/// Records which webhooks are to be called again because the object changed after them.
#[derive(Debug, Default)]
pub(in crate::admission) struct Reinvocation {
    /// Called, and to be called again if the object changes later.
    invoked: HashSet<Key>,
    again: HashSet<Key>,
    /// The object as the last run left it.
    output: Option<Value>,
    is_second: bool,
    is_wanted: bool,
}

/// The index of a webhook among all, and its name.
type Key = (usize, String);

impl Reinvocation {
    /// Returns whether a webhook changed the object, so that a second run is needed.
    pub(in crate::admission) fn is_wanted(&self) -> bool {
        self.is_wanted && !self.is_second
    }

    pub(in crate::admission) fn begin_second(&mut self) {
        self.is_second = true;
    }

    fn require(&mut self) {
        self.again.extend(self.invoked.drain());
    }
}

/// Returns the object as the webhooks leave it; None if they do not change it.
pub(in crate::admission) async fn mutate(
    caller: &Caller<'_>,
    review: &Review<'_>,
    again: &mut Reinvocation,
) -> Result<Option<Value>, Refusal> {
    let hooks = stored_hooks(caller.cluster, Kind::Mutating, caller.users)?;
    if hooks.is_empty() {
        return Ok(None);
    }
    if again.is_second && again.output.as_ref() != review.object {
        again.require();
    }
    let asking = Asking { caller, review };
    let mut object = review.object.cloned();
    for (at, hook) in hooks.iter().enumerate() {
        let key = (at, hook.name().to_owned());
        if again.is_second && !again.again.contains(&key) {
            continue;
        }
        let mut changes = 0;
        let place = Place { of: Kind::Mutating, round: u8::from(again.is_second), at };
        if !asking.ask((hook, place), &mut object, &mut changes).await? {
            continue;
        }
        if changes > 0 {
            again.require();
            again.is_wanted = true;
        }
        if hook.is_reinvoked() {
            again.invoked.insert(key);
        }
    }
    again.output.clone_from(&object);
    Ok(object.filter(|object| Some(object) != review.object))
}

struct Asking<'r> {
    caller: &'r Caller<'r>,
    review: &'r Review<'r>,
}

impl Asking<'_> {
    /// Calls one webhook, applies its patch and counts a change; returns whether it was called.
    async fn ask(
        &self,
        (hook, place): (&Hook, Place),
        object: &mut Option<Value>,
        changes: &mut usize,
    ) -> Result<bool, Refusal> {
        let current = object.as_ref().map(|object| self.review.with_object(object));
        let review = current.as_ref().unwrap_or(self.review);
        let request = review.request()?;
        let conversions = &review.call.conversions;
        let cluster = self.caller.cluster;
        let look = || concerns(hook, &request, &review.host(cluster), review);
        let Some(matched) = conversions.provide(cluster, look).await? else { return Ok(false) };
        let began = Instant::now();
        let outcome = ask(cluster, review, (hook, &matched), Role::Mutating).await;
        let called = ended(hook, &outcome);
        let count = |ended| self.caller.called((hook, Kind::Mutating), review, ended, began);
        let annotate = |annotation| review.call.warnings.annotate([annotation]);
        // Recorded for every outcome that does not change the object.
        let unchanged = || annotate(place.mutation(hook, false));
        if let Some(refusal) = settle((hook, place), &outcome, review) {
            unchanged();
            count(called);
            return Err(refusal);
        }
        let change = match outcome {
            Outcome::Answered(verdict) => verdict.patch,
            Outcome::Failed(_) | Outcome::Refused(_) => None,
        };
        // An invalid patch is subject to the failure policy, like any other failure.
        let failed = |error: CallError| {
            unchanged();
            let outcome = Outcome::Failed(error);
            count(ended(hook, &outcome));
            settle((hook, place), &outcome, review).map_or(Ok(true), Err)
        };
        let operations = match change.as_ref().map(Change::operations).transpose() {
            Ok(operations) => operations.unwrap_or_default(),
            Err(why) => return failed(why.into()),
        };
        let Some(change) = change.filter(|_| !operations.is_empty()) else {
            unchanged();
            count(called);
            return Ok(true);
        };
        let Some(object_before) = review.object else {
            unchanged();
            count(Ended::Internal);
            return Err(unchangeable(hook));
        };
        if let Err(why) = change.check_type() {
            return failed(why);
        }
        let made = self.changed((review, object_before), &matched, &operations).await;
        let made = made.inspect_err(|_| {
            unchanged();
            count(Ended::Internal);
        })?;
        count(called);
        let changed = Some(&made) != review.object;
        annotate(place.patch(hook, &operations));
        annotate(place.mutation(hook, changed));
        *changes += usize::from(changed);
        *object = Some(made);
        Ok(true)
    }

    /// Applies the patch to the object in the webhook's version, and converts the result back to the request's version.
    async fn changed(
        &self,
        (review, object): (&Review<'_>, &Value),
        matched: &Matched<'_>,
        operations: &[Value],
    ) -> Result<Value, Refusal> {
        let internal = |why: &dyn std::fmt::Display| Refusal::internal(why.to_string());
        let conversions = &review.call.conversions;
        let cluster = self.caller.cluster;
        let seen = || Seen::of(review, matched, &review.host(cluster));
        let seen = conversions.provide(cluster, seen).await.map_err(|why| internal(&why))?;
        let seen = seen.object.map(Cow::into_owned).unwrap_or_default();
        let other = version_of(&seen) != version_of(object);
        let made = applied_values(&seen, operations).map_err(|why| internal(&why))?;
        let kind = GroupVersionKind::from_api_version(version_of(object), object::kind(object));
        if !other || version_of(&made) == version_of(object) {
            return Ok(made);
        }
        let back = || review.host(cluster).convert(&made, &kind);
        conversions.provide(cluster, back).await.map_err(|why| internal(&why))
    }
}

/// Returns the refusal of a patch for a request without an object.
fn unchangeable(hook: &Hook) -> Refusal {
    Refusal::internal(format!(
        "admission webhook {} attempted to modify the object, which is not supported for this operation",
        go::quote(hook.name())
    ))
}
