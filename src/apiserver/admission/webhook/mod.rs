//! Stored webhook configurations: who is asked about a write, and what comes of the answers.

mod answer;
mod client;
mod failure;
mod hook;
mod mutating;
mod service;
mod trust;

pub(super) use mutating::mutate;

use admit_policy::Request;
use admit_policy::matching::{MatchError, Matched};
use admit_policy::vap::FailurePolicy;
use admit_policy::webhook::Kind;
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Review;
use super::host::StoreHost;
use crate::object;
use crate::registry::Registry;
use crate::status::Refusal;
use crate::store::Range;

use self::answer::{Role, Verdict};
use self::hook::Hook;

const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// Bytes of what a webhook said that are logged; a client is told the whole, as kube-apiserver does.
const LOGGED: usize = 1_024;

/// Why a webhook did not answer; the failure policy says what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallFailed(pub(super) String);

/// Asks all webhooks that the write concerns, at once.
pub(super) async fn admit(registry: &Registry, review: &Review<'_>) -> Result<(), Refusal> {
    let hooks = stored_hooks(registry, Kind::Validating);
    if hooks.is_empty() {
        return Ok(());
    }
    let host = StoreHost(registry);
    let request = review.request()?;
    let mut concerned = Vec::new();
    for hook in &hooks {
        if let Some(matched) = concerns(hook, &request, &host, review)? {
            concerned.push((hook, matched));
        }
    }
    let outcomes = join_all(
        concerned.iter().map(|(hook, matched)| ask(registry, review, (hook, matched), Role::Validating)),
    )
    .await;
    let mut refusal = None;
    for ((hook, _), outcome) in concerned.iter().zip(outcomes) {
        refusal = refusal.or(settle(hook, &outcome, review));
    }
    refusal.map_or(Ok(()), Err)
}

/// How `hook` sees the request, when it is to be asked about it.
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
        Err(why) => Err(Refusal::forbidden(&review.call.info, review.name, &why)),
    }
}

/// What a webhook's outcome means for the write.
fn settle(hook: &Hook, outcome: &Outcome, review: &Review<'_>) -> Option<Refusal> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.clone()),
        Outcome::Answered(verdict) => {
            for warning in &verdict.warnings {
                review.call.warnings.add(warning.as_str());
            }
            (!verdict.allowed).then(|| Refusal::denied_by_webhook(hook.name(), verdict.status.as_ref()))
        }
        Outcome::Failed(CallFailed(why)) => {
            let message = format!("failed calling webhook {:?}: {why}", hook.name());
            match hook.failure_policy() {
                FailurePolicy::Fail => Some(Refusal::internal(message)),
                FailurePolicy::Ignore => {
                    let why = why.get(..why.floor_char_boundary(LOGGED)).unwrap_or_default();
                    tracing::warn!(webhook = hook.name(), why, "a webhook that may fail failed");
                    None
                }
            }
        }
    }
}

enum Outcome {
    Answered(Verdict),
    Failed(CallFailed),
    /// Decided without a call.
    Refused(Refusal),
}

async fn ask(
    registry: &Registry,
    review: &Review<'_>,
    (hook, matched): (&Hook, &Matched<'_>),
    role: Role,
) -> Outcome {
    if review.dry_run && hook.has_side_effects() {
        let why = format!("admission webhook {:?} does not support dry run", hook.name());
        return Outcome::Refused(Refusal::bad_request(why));
    }
    if !hook.speaks_v1() {
        let why =
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1)";
        return Outcome::Failed(CallFailed(why.to_owned()));
    }
    let uid = Uuid::new_v4().to_string();
    let question = question(review, matched, &uid);
    let exchange = async {
        let body = client::post(registry, hook, question.to_string().into()).await?;
        answer::verify(&body, &uid, role)
    };
    match tokio::time::timeout(hook.timeout, exchange).await {
        Ok(Ok(verdict)) => Outcome::Answered(verdict),
        Ok(Err(failed)) => Outcome::Failed(failed),
        Err(_) => {
            let url = hook.url();
            Outcome::Failed(CallFailed(format!(
                "failed to call webhook: Post \"{url}\": context deadline exceeded"
            )))
        }
    }
}

/// The AdmissionReview in the version that the webhook's rule names.
fn question(review: &Review<'_>, matched: &Matched<'_>, uid: &str) -> Value {
    let mut request = review.to_value(uid);
    let Matched { resource, kind } = matched;
    request["kind"] = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    request["resource"] =
        json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
    for field in ["object", "oldObject"] {
        if request[field].is_object() {
            object::set_field(&mut request[field], "apiVersion", Some(kind.api_version().into()));
        }
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}

fn stored_hooks(registry: &Registry, kind: Kind) -> Vec<Hook> {
    let configurations = match kind {
        Kind::Validating => VALIDATING,
        Kind::Mutating => MUTATING,
    };
    let mut hooks = Vec::new();
    let mut collect = |kept: &crate::store::Kept| {
        // Every write looks at all of them.
        let object = kept.object.pinned();
        let webhooks = object.get("webhooks").and_then(Value::as_array);
        hooks.extend(webhooks.into_iter().flatten().filter_map(|hook| Hook::read(kind, hook)));
        false
    };
    if let Err(error) = registry.store.list(configurations, Range::default(), 0, &mut collect) {
        tracing::error!(%error, "webhook configurations cannot be listed");
    }
    hooks
}

fn unmatched(error: &MatchError) -> Refusal {
    Refusal::internal(error.to_string())
}
