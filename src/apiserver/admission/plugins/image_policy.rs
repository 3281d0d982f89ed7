//! Implements `ImagePolicyWebhook`: asks a backend for each pod whether its images may run. Off by default; the
//! [settings](super::settings) name the backend and how long its answers are cached.
//!
//! The request is an `imagepolicy.k8s.io/v1alpha1` `ImageReview`, with the pod's annotations whose names contain
//! `.image-policy.k8s.io/`. Transient failures are retried, five attempts in all. Two things differ from upstream: the pauses
//! between attempts have no random jitter, and a pod that is admitted although the backend did not answer is recorded in the
//! audit log only, without the pod annotation `alpha.image-policy.k8s.io/failed-open`.
//!
//! Read from plugin/pkg/admission/imagepolicy of releases before 1.36; no recorded answers of 1.36 are at hand.

use std::collections::BTreeMap;

use admit_apimachinery::pointer::{items, text};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::live::Verdict;
use super::settings::ImagePolicy;
use super::{Request, Waiting};
use crate::admission::review::Operation;
use crate::callout::{self, CalloutError};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Waiting = Waiting { name: "ImagePolicyWebhook", ask };

const API: &str = "imagepolicy.k8s.io/v1alpha1";
const KIND: &str = "ImageReview";
const CONCERNED: &str = ".image-policy.k8s.io/";
const AUDITED: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// The number of attempts, and the factor by which each pause is longer than the one before.
const ATTEMPTS: u32 = 5;
const LONGER: f64 = 1.5;

fn ask<'r>(request: &'r Request<'_>) -> BoxFuture<'r, Result<(), Refusal>> {
    Box::pin(async move {
        let Some(policy) = &request.live.settings.images else { return Ok(()) };
        let Some(spec) = question(request) else { return Ok(()) };
        let asked = spec.to_string();
        let now = Instant::now();
        let verdict = match request.live.images.get(&asked, now) {
            Some(verdict) => verdict,
            None => match answer(request, policy, spec).await {
                Ok(verdict) => {
                    let holds = if verdict.allowed { policy.allowed_for } else { policy.denied_for };
                    request.live.images.keep(&asked, &verdict, (Instant::now(), holds));
                    verdict
                }
                Err(why) if policy.default_allow => {
                    tracing::warn!(%why, "images are let in although their backend was not reached");
                    annotate(request, [("failed-open".to_owned(), "true".to_owned())]);
                    return Ok(());
                }
                Err(why) => return Err(request.forbidden(&why.to_string())),
            },
        };
        annotate(request, verdict.annotations);
        match verdict.reason.as_str() {
            _ if verdict.allowed => Ok(()),
            "" => Err(request.forbidden("one or more images rejected by webhook backend")),
            reason => {
                let why = format!("image policy webhook backend denied one or more images: {reason}");
                Err(request.forbidden(&why))
            }
        }
    })
}

/// Builds the ImageReview for a pod that is created or updated; None for other requests.
fn question(request: &Request<'_>) -> Option<Value> {
    let is = |subresource: &str| {
        [Operation::Create, Operation::Update]
            .into_iter()
            .any(|operation| request.is(operation, ("", "pods", subresource)))
    };
    let lists = if is("") {
        &["/spec/containers", "/spec/initContainers"][..]
    } else if is("ephemeralcontainers") {
        &["/spec/ephemeralContainers"]
    } else {
        return None;
    };
    let pod = request.object();
    let containers = lists.iter().flat_map(|list| items(pod, list));
    let containers: Vec<Value> =
        containers.map(|container| json!({"image": text(container, "/image")})).collect();
    let annotations: BTreeMap<&str, &str> =
        object::meta_map(pod, "annotations").filter(|(key, _)| key.contains(CONCERNED)).collect();
    let mut spec = json!({});
    if !containers.is_empty() {
        spec["containers"] = json!(containers);
    }
    if !annotations.is_empty() {
        spec["annotations"] = json!(annotations);
    }
    spec["namespace"] = request.namespace().into();
    Some(spec)
}

/// Says why the backend gave no answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("{0}")]
    Call(#[from] CalloutError),
    #[error("{0} (Client.Timeout exceeded while awaiting headers)")]
    TimedOut(CalloutError),
    #[error("the answer of the webhook backend cannot be read: {0}")]
    Text(#[from] serde_json::Error),
    #[error("the webhook backend answered with a {0:?} where an {KIND} is wanted")]
    Kind(String),
}

async fn answer(request: &Request<'_>, policy: &ImagePolicy, spec: Value) -> Result<Verdict, Unanswered> {
    let review = json!({"kind": KIND, "apiVersion": API, "metadata": {}, "spec": spec,
        "status": {"allowed": false}});
    let body = bytes::Bytes::from(review.to_string());
    let mut pause = policy.pause;
    for attempt in 1..=ATTEMPTS {
        let call = callout::post(request.cluster, &policy.callee, body.clone());
        match timeout(policy.callee.timeout, call).await {
            Err(_) => return Err(Unanswered::TimedOut(policy.callee.timed_out())),
            Ok(Ok(answer)) => return read(&answer),
            Ok(Err(error)) if attempt < ATTEMPTS && error.is_passing() => {
                sleep(pause).await;
                pause = pause.mul_f64(LONGER);
            }
            Ok(Err(error)) => return Err(error.into()),
        }
    }
    Err(Unanswered::TimedOut(policy.callee.timed_out()))
}

fn read(answer: &[u8]) -> Result<Verdict, Unanswered> {
    let review: Value = serde_json::from_slice(answer)?;
    let kind = text(&review, "/kind");
    if !["", KIND].contains(&kind) || !["", API].contains(&text(&review, "/apiVersion")) {
        return Err(Unanswered::Kind(kind.to_owned()));
    }
    let annotations = review.pointer("/status/auditAnnotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten();
    Ok(Verdict {
        allowed: review.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default(),
        reason: text(&review, "/status/reason").to_owned(),
        annotations: annotations
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    })
}

/// Adds annotations to the audit event.
fn annotate(request: &Request<'_>, annotations: impl IntoIterator<Item = (String, String)>) {
    let named = annotations.into_iter().map(|(key, value)| (format!("{AUDITED}{key}"), value));
    request.review.call.warnings.annotate(named);
}
