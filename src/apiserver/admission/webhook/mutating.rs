//! Mutating webhooks: asked one after the other, each about what those before it made of the object.

use admit_policy::patch::{Replacing, patched};
use admit_policy::webhook::Kind;
use serde_json::Value;

use super::answer::Role;
use super::hook::Hook;
use super::{Outcome, ask, concerns, settle, stored_hooks};
use crate::admission::Review;
use crate::admission::host::StoreHost;
use crate::registry::Registry;
use crate::status::Refusal;

/// The object as the webhooks leave it; None when they leave it as it is.
pub(in crate::admission) async fn mutate(
    registry: &Registry,
    review: &Review<'_>,
) -> Result<Option<Value>, Refusal> {
    let hooks = stored_hooks(registry, Kind::Mutating);
    if hooks.is_empty() {
        return Ok(None);
    }
    let asking = Asking { registry, review };
    let mut object = review.object.cloned();
    // Changes are counted, so that no state of the object is kept for each webhook.
    let mut changes = 0_usize;
    let mut seen = Vec::with_capacity(hooks.len());
    for hook in &hooks {
        let asked = asking.ask(hook, &mut object, &mut changes).await?;
        seen.push((hook, asked.then_some(changes)));
    }
    // Who wants to be asked again about later changes is, once.
    for (hook, left) in seen {
        if hook.is_reinvoked() && left.is_some_and(|left| left != changes) {
            asking.ask(hook, &mut object, &mut changes).await?;
        }
    }
    Ok(object.filter(|object| Some(object) != review.object))
}

struct Asking<'r> {
    registry: &'r Registry,
    review: &'r Review<'r>,
}

impl Asking<'_> {
    /// Lets one webhook change the object, and counts the change; answers whether it was asked.
    async fn ask(
        &self,
        hook: &Hook,
        object: &mut Option<Value>,
        changes: &mut usize,
    ) -> Result<bool, Refusal> {
        let patch = {
            let current = object.as_ref().map(|object| self.review.with_object(object));
            let review = current.as_ref().unwrap_or(self.review);
            let host = StoreHost(self.registry);
            let request = review.request()?;
            let Some(matched) = concerns(hook, &request, &host, review)? else { return Ok(false) };
            let outcome = ask(self.registry, review, (hook, &matched), Role::Mutating).await;
            if let Some(refusal) = settle(hook, &outcome, review) {
                return Err(refusal);
            }
            match outcome {
                Outcome::Answered(verdict) => verdict.patch,
                Outcome::Failed(_) | Outcome::Refused(_) => None,
            }
        };
        match (patch, object) {
            (None, _) => {}
            (Some(patch), _) if patch.0.is_empty() => {}
            (Some(_), None) => {
                return Err(Refusal::internal(format!(
                    "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                    hook.name()
                )));
            }
            (Some(patch), Some(object)) => {
                let made = patched(object.clone(), &patch, Replacing::Existing);
                let made = made.map_err(|error| Refusal::internal(error.to_string()))?;
                *changes += usize::from(made != *object);
                *object = made;
            }
        }
        Ok(true)
    }
}
