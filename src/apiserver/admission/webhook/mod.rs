//! Calls the webhooks of stored configurations: selects those that a write concerns, and applies their answers.

mod annotations;
mod answer;
mod error;
mod hook;
mod mutating;

pub(super) use mutating::{Reinvocation, mutate};

use std::borrow::Cow;

use admit_apimachinery::go;
use admit_policy::matching::{MatchError, Matched};
use admit_policy::webhook::Kind;
use admit_policy::{FailurePolicy, Host as _, HostError, Request};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::host::StoreHost;
use super::plugins::WebhookUsers;
use super::{Cluster, Review};
use crate::callout;
use crate::conversion::version_of;
use crate::metrics::{AdmissionMetrics, Ended, WebhookCall};
use crate::object;
use crate::objects::Objects;
use crate::status::Refusal;

use self::annotations::Place;
use self::answer::{Role, Verdict};
use self::error::CallError;
use self::hook::Hook;

const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// The number of bytes of a webhook's error that are logged; a client gets the whole, as from kube-apiserver.
const LOGGED: usize = 1_024;

/// What calls of webhooks need besides the request.
pub(super) struct Caller<'c> {
    pub(super) cluster: &'c dyn Cluster,
    pub(super) users: &'c WebhookUsers,
    pub(super) metrics: &'c AdmissionMetrics,
}

/// Calls all validating webhooks that the write concerns, concurrently.
pub(super) async fn admit(caller: &Caller<'_>, review: &Review<'_>) -> Result<(), Refusal> {
    let Caller { cluster, users, .. } = *caller;
    let hooks = stored_hooks(cluster, Kind::Validating, users)?;
    if hooks.is_empty() {
        return Ok(());
    }
    let request = review.request()?;
    let concerned = || -> Result<Vec<_>, Refusal> {
        let host = review.host(cluster);
        let concerned = hooks.iter().enumerate();
        let concerned = concerned.map(|(at, hook)| Ok((at, hook, concerns(hook, &request, &host, review)?)));
        let concerned: Result<Vec<_>, Refusal> = concerned.collect();
        Ok(concerned?.into_iter().filter_map(|(at, hook, matched)| Some((at, hook, matched?))).collect())
    };
    let concerned = review.call.conversions.provide(cluster, concerned).await?;
    let asked = concerned.iter().map(|(_, hook, matched)| async move {
        let began = Instant::now();
        let outcome = ask(cluster, review, (hook, matched), Role::Validating).await;
        caller.called((hook, Kind::Validating), review, ended(hook, &outcome), began);
        outcome
    });
    let outcomes = join_all(asked).await;
    let mut refusal = None;
    for ((at, hook, _), outcome) in concerned.iter().zip(outcomes) {
        let place = Place { of: Kind::Validating, round: 0, at: *at };
        refusal = refusal.or(settle((hook, place), &outcome, review));
    }
    refusal.map_or(Ok(()), Err)
}

impl Caller<'_> {
    /// Counts a call that began at `began`.
    fn called(&self, (hook, kind): (&Hook, Kind), review: &Review<'_>, ended: Ended, began: Instant) {
        let kind = match kind {
            Kind::Validating => "validating",
            Kind::Mutating => "admit",
        };
        let operation = review.operation.as_str();
        let took = began.elapsed();
        self.metrics.called(&WebhookCall { name: hook.name(), kind, operation, ended, took });
    }
}

/// Returns how the call of a webhook ended, for its metrics.
fn ended(hook: &Hook, outcome: &Outcome) -> Ended {
    match outcome {
        Outcome::Answered(verdict) if verdict.allowed => Ended::Admitted,
        Outcome::Answered(verdict) => {
            Ended::Denied(Refusal::denied_by_webhook(hook.name(), verdict.status.as_ref()).code())
        }
        Outcome::Failed(error) => {
            Ended::Failed { code: error.code(), rejected: hook.failure_policy() == FailurePolicy::Fail }
        }
        Outcome::Refused(_) => Ended::Internal,
    }
}

/// Returns how `hook` matches the request, or None if it is not to be called.
fn concerns<'r>(
    hook: &Hook,
    request: &'r Request<'_>,
    host: &StoreHost<'_>,
    review: &Review<'_>,
) -> Result<Option<Matched<'r>>, Refusal> {
    let Some(matched) = hook.matches(request, host).map_err(|error| unmatched(&error))? else {
        return Ok(None);
    };
    match hook.conditions_hold(request, &matched, host) {
        Ok(true) => Ok(Some(matched)),
        Ok(false) => Ok(None),
        Err(why) => Err(Refusal::forbidden(&review.call.info, review.name, &why.to_string())),
    }
}

/// Applies a webhook's outcome to the write; returns the refusal, if there is one.
fn settle((hook, place): (&Hook, Place), outcome: &Outcome, review: &Review<'_>) -> Option<Refusal> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.clone()),
        Outcome::Answered(verdict) => {
            for warning in &verdict.warnings {
                review.call.warnings.add(warning.as_str());
            }
            review.call.warnings.annotate(annotations::of_answer(hook.name(), &verdict.audit_annotations));
            (!verdict.allowed).then(|| Refusal::denied_by_webhook(hook.name(), verdict.status.as_ref()))
        }
        Outcome::Failed(error) => {
            let why = error.to_string();
            let message = format!("failed calling webhook {}: {why}", go::quote(hook.name()));
            match hook.failure_policy() {
                FailurePolicy::Fail => Some(Refusal::internal(message)),
                FailurePolicy::Ignore => {
                    let why = why.get(..why.floor_char_boundary(LOGGED)).unwrap_or_default();
                    tracing::warn!(webhook = hook.name(), why, "a webhook that may fail failed");
                    review.call.warnings.annotate([place.failed_open(hook.name())]);
                    None
                }
            }
        }
    }
}

enum Outcome {
    Answered(Verdict),
    Failed(CallError),
    /// Refused without a call.
    Refused(Refusal),
}

async fn ask(
    cluster: &dyn Cluster,
    review: &Review<'_>,
    (hook, matched): (&Hook, &Matched<'_>),
    role: Role,
) -> Outcome {
    if review.dry_run && hook.has_side_effects() {
        let why = format!("admission webhook {} does not support dry run", go::quote(hook.name()));
        return Outcome::Refused(Refusal::bad_request(why));
    }
    let Some(version) = hook.review_version() else {
        return Outcome::Failed(CallError::NoVersion);
    };
    let uid = Uuid::new_v4().to_string();
    let seen = || Seen::of(review, matched, &review.host(cluster));
    let seen = match review.call.conversions.provide(cluster, seen).await {
        Ok(seen) => seen,
        Err(why) => return Outcome::Refused(Refusal::internal(why.to_string())),
    };
    let exchange = async {
        let request = asked(review, matched, &seen, &uid);
        let question =
            json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": request});
        let body = callout::post(cluster, &hook.callee, question.to_string().into()).await;
        answer::verify(&body?, version, &uid, role)
    };
    match tokio::time::timeout(hook.callee.timeout, exchange).await {
        Ok(Ok(verdict)) => Outcome::Answered(verdict),
        Ok(Err(failed)) => Outcome::Failed(failed),
        Err(_) => Outcome::Failed(hook.callee.timed_out().into()),
    }
}

/// The objects of a request in the version in which a webhook sees it.
struct Seen<'r> {
    object: Option<Cow<'r, Value>>,
    old_object: Option<Cow<'r, Value>>,
}

impl<'r> Seen<'r> {
    fn of(review: &Review<'r>, matched: &Matched<'_>, host: &StoreHost<'_>) -> Result<Self, HostError> {
        let version = matched.kind.api_version();
        let seen = |object: Option<&'r Value>| match object {
            Some(object) if object.is_object() && version_of(object) != version => {
                host.convert(object, &matched.kind).map(|seen| Some(Cow::Owned(seen)))
            }
            object => Ok(object.map(Cow::Borrowed)),
        };
        // Both are converted even if one fails, so that all missing conversions are requested at once.
        let (object, old_object) = (seen(review.object), seen(review.old_object));
        Ok(Self { object: object?, old_object: old_object? })
    }
}

/// Builds the request in the version that the webhook's rule names. It is the same in all review versions.
fn asked(review: &Review<'_>, matched: &Matched<'_>, seen: &Seen<'_>, uid: &str) -> Value {
    let mut request = review.seen_as(seen.object.as_deref(), seen.old_object.as_deref()).to_value(uid);
    let Matched { resource, kind } = matched;
    request["kind"] = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    request["resource"] =
        json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
    request
}

fn stored_hooks(objects: &dyn Objects, kind: Kind, users: &WebhookUsers) -> Result<Vec<Hook>, Refusal> {
    let configurations = match kind {
        Kind::Validating => VALIDATING,
        Kind::Mutating => MUTATING,
    };
    let mut hooks = Vec::new();
    let mut collect = |kept: &crate::store::Kept| {
        // Every write reads all configurations.
        let object = kept.object.pinned();
        let name = object::name(&object);
        let webhooks = object.get("webhooks").and_then(Value::as_array);
        hooks.extend(webhooks.into_iter().flatten().filter_map(|hook| Hook::read(kind, name, hook, users)));
    };
    // A webhook that is not known would be passed by.
    let listed = objects.each_object(configurations, None, &mut collect);
    listed.map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(hooks)
}

fn unmatched(error: &MatchError) -> Refusal {
    Refusal::internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::policies::tests::Unlisted;
    use super::*;

    #[test]
    fn without_the_list_of_webhooks_no_write_is_admitted() {
        for kind in [Kind::Validating, Kind::Mutating] {
            let refusal = stored_hooks(&Unlisted, kind, &WebhookUsers::default()).unwrap_err();
            assert_eq!(refusal.code(), 500, "{refusal:?}");
        }
    }
}
