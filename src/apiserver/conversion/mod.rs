//! Converts custom resources between versions by webhook (`spec.conversion.strategy: Webhook`): builds requests in
//! batches of bounded size, validates the responses, and counts calls.
//!
//! ```text
//! registry ──objects in other versions──► Webhook ──question──► callout ──► the webhook
//!    ▲                                      └──answer: uid, count, version, kind, names, metadata──► converted
//!    └── Conversions: what plain functions (policies, matching, field managers) need converted, and get with their next run
//! ```
//!
//! INVARIANT: a call holds no lock, and only a permit of its own CRD: a webhook that does not answer delays only requests
//! for objects that it converts, each for the time limit of a call.

mod answer;
mod counts;
mod needed;
mod restore;

use std::sync::Arc;
use std::time::Duration;

use admit_policy::crd::CompiledCrd;
use admit_policy::patch::text_len;
use admit_policy::webhook::Client;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use uuid::Uuid;

pub(crate) use counts::Counts;
pub(crate) use needed::Conversions;

use self::answer::Expected;
use self::counts::Failure;
use crate::callout::{self, Callee};
use crate::object;
use crate::objects::Objects;
use crate::status::Refusal;

/// The time limit of one call, as upstream, including the wait for its turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// The number of objects in one request: a page of a list as kubectl requests it.
pub(crate) const MOST_OBJECTS: usize = 500;
/// The bytes of the objects in one request, unless a single object is larger: half of what our own webhook reads, which
/// leaves room for the envelope; an object of the largest size is always sent alone.
pub(crate) const MOST_BYTES: usize = 4 << 20;
/// The KiB of concurrent requests of one definition: eight of the largest. With their responses they take as much memory
/// as a few of the largest client requests.
const LANE: usize = 32 << 10;

/// Says why objects cannot be converted, in the words of kube-apiserver.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub(crate) struct Failed(pub(crate) String);

impl From<Failed> for Refusal {
    fn from(failed: Failed) -> Self {
        Self::unclassified(failed.0)
    }
}

/// The versions of ConversionReview. Responses of v1 are validated more strictly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "apiextensions.k8s.io/v1",
            Self::V1beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

/// The conversion webhook of one definition.
#[derive(Debug)]
pub(crate) struct Webhook {
    compiled: Arc<CompiledCrd>,
    callee: Callee,
    /// The version to use; None if the webhook supports none of them.
    speaks: Option<ReviewVersion>,
    /// Limits concurrent requests.
    lane: Semaphore,
    /// Limits the unpacked objects of watches and lists.
    values: Semaphore,
    /// The metrics, shared by the webhooks of a server.
    counts: Arc<Counts>,
}

impl Webhook {
    /// Returns the webhook of a CRD; None if its versions differ in their name only.
    pub(crate) fn of(compiled: &Arc<CompiledCrd>, counts: &Arc<Counts>) -> Option<Arc<Self>> {
        let conversion = compiled.definition().conversion.as_ref()?;
        let declared = conversion.webhook.as_ref().filter(|_| conversion.strategy == "Webhook")?;
        let config = declared.client.as_ref()?;
        let client = match (&config.url, &config.service) {
            (Some(url), _) => Client::Url(url.clone()),
            (None, service) => Client::Service(service.clone()?),
        };
        let spoken = declared.review_versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        });
        Some(Arc::new(Self {
            compiled: Arc::clone(compiled),
            callee: Callee::new(client, config.ca_bundle.as_deref().unwrap_or_default(), PATIENCE),
            speaks: spoken,
            lane: Semaphore::new(LANE),
            values: Semaphore::new(LANE),
            counts: Arc::clone(counts),
        }))
    }

    /// Converts `objects`, each in another version of the definition, to `api_version`; keeps their order.
    ///
    /// # Errors
    /// The first request without a valid response.
    pub(crate) async fn convert(
        &self,
        cluster: &dyn Objects,
        objects: &[Value],
        api_version: &str,
    ) -> Result<Vec<Value>, Failed> {
        self.known(api_version, "to")?;
        for object in objects {
            self.known(version_of(object), "from")?;
        }
        let mut converted = Vec::with_capacity(objects.len());
        let mut rest = objects;
        while !rest.is_empty() {
            let (count, bytes) = batch(rest.iter().map(text_len));
            let (together, later) = rest.split_at(count.min(rest.len()));
            let asked = self.ask(cluster, (together, bytes), api_version).await;
            self.counts.count(asked.as_ref().err().map(|(failure, _)| *failure));
            converted.extend(asked.map_err(|(_, failed)| failed)?);
            rest = later;
        }
        Ok(converted)
    }

    /// Sets the defaults of the object's own version, as when it is read from the store, before it is converted.
    pub(crate) fn default(&self, object: &mut Value) {
        let version = version_of(object).rsplit('/').next().unwrap_or_default();
        if let Some(stored) = self.compiled.version(version) {
            let stored = Arc::clone(stored);
            stored.default(object);
        }
    }

    /// Reserves memory for unpacking objects of so many bytes of text. It is taken before the permit for a request: its
    /// holder waits for that no longer than a call may take.
    pub(crate) async fn turn(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        self.values.acquire_many(permits(bytes)).await.ok()
    }

    fn known(&self, api_version: &str, direction: &str) -> Result<(), Failed> {
        let definition = self.compiled.definition();
        let known = api_version.split_once('/').is_some_and(|(group, version)| {
            group == definition.group && definition.version(version).is_some()
        });
        if known {
            return Ok(());
        }
        Err(Failed(format!("request to convert CR {direction} an invalid group/version: {api_version}")))
    }

    async fn ask(
        &self,
        cluster: &dyn Objects,
        (objects, bytes): (&[Value], usize),
        api_version: &str,
    ) -> Result<Vec<Value>, (Failure, Failed)> {
        let of = objects.first().map(kind_text).unwrap_or_default();
        let because =
            |failure: Failure, why: String| (failure, Failed(format!("conversion webhook for {of} {why}")));
        let Some(version) = self.speaks else {
            return Err((Failure::Call, Failed("no supported conversion review versions".to_owned())));
        };
        let uid = Uuid::new_v4().to_string();
        let exchange = async {
            // The lane is never closed.
            let _turn = self.lane.acquire_many(permits(bytes)).await;
            let body = question(version, &uid, objects, api_version).to_string();
            callout::post(cluster, &self.callee, body.into()).await
        };
        let body = timeout(self.callee.timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(self.callee.timed_out()))
            .map_err(|why| because(Failure::Call, format!("failed: {why}")))?;
        let expected = Expected { version, uid: &uid, objects, api_version };
        expected.read(&body).map_err(|(failure, why)| because(failure, why))
    }
}

/// Converts bytes to permits (KiB), at most as many as a definition has.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024).clamp(1, LANE)).unwrap_or(u32::MAX)
}

/// Returns how many objects of these lengths fit in one request, at least one, and their bytes.
pub(crate) fn batch(lengths: impl Iterator<Item = usize>) -> (usize, usize) {
    let (mut count, mut bytes) = (0_usize, 0_usize);
    for length in lengths.take(MOST_OBJECTS) {
        let together = bytes.saturating_add(length);
        if count > 0 && together > MOST_BYTES {
            break;
        }
        (count, bytes) = (count + 1, together);
    }
    (count, bytes)
}

/// Builds a ConversionReview request, with an empty response, as upstream sends it.
fn question(version: ReviewVersion, uid: &str, objects: &[Value], api_version: &str) -> Value {
    json!({
        "kind": "ConversionReview",
        "apiVersion": version.api_version(),
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    })
}

pub(crate) fn version_of(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

/// Formats the type of an object as `example.com/v1, Kind=Cat`.
fn kind_text(object: &Value) -> String {
    format!("{}, Kind={}", version_of(object), object::kind(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_and_never_empty() {
        assert_eq!(batch(std::iter::repeat_n(10, 2_000)), (MOST_OBJECTS, 10 * MOST_OBJECTS));
        assert_eq!(batch([MOST_BYTES * 2, 1].into_iter()), (1, MOST_BYTES * 2));
        assert_eq!(batch([1, MOST_BYTES].into_iter()), (1, 1));
        assert_eq!(batch([1, MOST_BYTES - 1].into_iter()), (2, MOST_BYTES));
    }
}
