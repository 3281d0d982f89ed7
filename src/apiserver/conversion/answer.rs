//! Validates the response of a conversion webhook: it must have the request's uid, and as many objects in the same order,
//! each of the same kind, name, namespace and uid, in the requested version.
//!
//! Error messages are upstream's, without the part that names the webhook.

use admit_apimachinery::go;
use admit_policy::json;
use serde_json::Value;

use super::counts::Failure;
use super::restore::restored;
use super::{ReviewVersion, version_of};
use crate::object;

/// Says why a response is not a successful ConversionReview, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    /// The response is a ConversionReview of the other version.
    #[error("converting ({found}.ConversionReview) to ({expected}.ConversionReview): unknown conversion")]
    OtherVersion { found: String, expected: String },
    #[error(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go::quote(.kind),
        go::quote(.api_version)
    )]
    OtherKind { kind: String, api_version: String },
    /// The response has no apiVersion or kind.
    #[error("expected webhook response of {expected}, Kind=ConversionReview, got {found}, Kind={kind}")]
    Untyped { expected: &'static str, found: String, kind: String },
    #[error("no response provided")]
    NoResponse,
    #[error("expected response.uid={}, got {}", go::quote(.expected), go::quote(.found))]
    OtherUid { expected: String, found: String },
    #[error("response.result.status was '{0}', not 'Success'")]
    Failed(String),
    /// The conversion failed, with the webhook's message.
    #[error("{0}")]
    Refused(String),
    #[error("response.convertedObjects is no list")]
    NoList,
}

/// The request that a response is validated against.
pub(super) struct Expected<'q> {
    pub(super) version: ReviewVersion,
    pub(super) uid: &'q str,
    pub(super) objects: &'q [Value],
    pub(super) api_version: &'q str,
}

impl Expected<'_> {
    /// Returns the converted objects, with their original metadata except labels and annotations.
    ///
    /// # Errors
    /// The kind of failure for metrics, and the message.
    pub(super) fn read(&self, body: &[u8]) -> Result<Vec<Value>, (Failure, String)> {
        let review = json::parse(body)
            .map_err(|error| {
                let why = format!("failed: couldn't get version/kind; json parse error: {error}");
                (Failure::Call, why)
            })?
            .value;
        self.decoded(&review).map_err(|why| (Failure::Call, format!("failed: {why}")))?;
        let objects = self.answered(review).map_err(|why| (Failure::Malformed, format!("failed: {why}")))?;
        let (found, expected) = (objects.len(), self.objects.len());
        if found != expected {
            return Err((Failure::Partial, format!("returned {found} objects, expected {expected}")));
        }
        let places = objects.into_iter().zip(self.objects).enumerate();
        places.map(|(at, (converted, original))| self.accepted(at, converted, original)).collect()
    }

    /// Checks kind and version; missing ones are taken as expected.
    fn decoded(&self, review: &Value) -> Result<(), Unanswered> {
        let (kind, api_version) = (object::kind(review), version_of(review));
        let expected = self.version.api_version();
        let same =
            (api_version == expected || api_version.is_empty()) && matches!(kind, "ConversionReview" | "");
        if same {
            return Ok(());
        }
        let spoken = [ReviewVersion::V1, ReviewVersion::V1beta1].map(ReviewVersion::api_version);
        if kind == "ConversionReview" && spoken.contains(&api_version) {
            let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
            return Err(Unanswered::OtherVersion { found: short(api_version), expected: short(expected) });
        }
        let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.to_owned();
        Err(Unanswered::OtherKind {
            kind: or(kind, "ConversionReview"),
            api_version: or(api_version, expected),
        })
    }

    fn answered(&self, mut review: Value) -> Result<Vec<Value>, Unanswered> {
        let strict = self.version == ReviewVersion::V1;
        let (api_version, kind) = (version_of(&review).to_owned(), object::kind(&review).to_owned());
        if strict && (api_version.is_empty() || kind.is_empty()) {
            let found = if api_version.contains('/') { api_version } else { format!("/{api_version}") };
            return Err(Unanswered::Untyped { expected: self.version.api_version(), found, kind });
        }
        let Some(Value::Object(mut response)) = review.get_mut("response").map(Value::take) else {
            return Err(Unanswered::NoResponse);
        };
        let found = response.get("uid").and_then(Value::as_str).unwrap_or_default();
        if strict && found != self.uid {
            return Err(Unanswered::OtherUid { expected: self.uid.to_owned(), found: found.to_owned() });
        }
        let result = response.get("result").unwrap_or(&Value::Null);
        let text = |field: &str| result.get(field).and_then(Value::as_str).unwrap_or_default();
        match (text("status"), text("message")) {
            ("Success", _) => {}
            (status, "") => return Err(Unanswered::Failed(status.to_owned())),
            (_, message) => return Err(Unanswered::Refused(message.to_owned())),
        }
        match response.remove("convertedObjects") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(objects)) => Ok(objects),
            Some(_) => Err(Unanswered::NoList),
        }
    }

    /// Validates `converted` and restores the metadata of `original`.
    fn accepted(&self, at: usize, converted: Value, original: &Value) -> Result<Value, (Failure, String)> {
        let wrong = |why: String| (Failure::InvalidObject, why);
        let alone = self.objects.len() == 1;
        // The message for a single object differs from that for several.
        let invalid = |why: String| match alone {
            true => wrong(format!("returned invalid object at index {at}: {why}")),
            false => wrong(format!("returned invalid converted object at index {at}: {why}")),
        };
        if object::kind(&converted).is_empty() {
            return Err(invalid(format!("Object 'Kind' is missing in '{}'", shortened(&converted))));
        }
        let (expected, found) = (self.api_version, version_of(&converted));
        if expected != found {
            return Err(invalid(format!("invalid groupVersion (expected {expected}, received {found})")));
        }
        let (expected, found) = (object::kind(original), object::kind(&converted));
        if expected != found {
            return Err(invalid(format!("invalid kind (expected {expected}, received {found})")));
        }
        if let Some(why) = differs(original, &converted) {
            return Err(match alone {
                true => wrong(format!("returned invalid object: {why}")),
                false => invalid(why),
            });
        }
        restored(original, converted).map_err(|why| match alone {
            true => wrong(format!("returned invalid metadata: {why}")),
            false => wrong(format!("returned invalid metadata in object at index {at}: {why}")),
        })
    }
}

/// Returns why `converted` is another object than `original`, if it is.
fn differs(original: &Value, converted: &Value) -> Option<String> {
    let fields = [("name", "name"), ("namespace", "namespace"), ("uid", "UID")];
    fields.into_iter().find_map(|(field, word)| {
        let (expected, found) = (object::meta_str(original, field), object::meta_str(converted, field));
        (expected != found).then(|| format!("must have the same {word}: {expected} != {found}"))
    })
}

/// Returns the beginning of an invalid object for the message.
fn shortened(object: &Value) -> String {
    const SHOWN: usize = 1_024;
    let text = object.to_string();
    text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default().to_owned()
}
