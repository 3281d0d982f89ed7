//! Validates `spec.conversion` at registration.

use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{go, names};

use super::certificates;
use super::demands::Demands;
use crate::crd::definition::Conversion;
use crate::read::path::Path;
use crate::read::webhook_client;

pub(super) fn validate(
    conversion: &Conversion,
    demands: &Demands,
    path: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let strategy = conversion.strategy.as_str();
    let strategy_at = path.child("strategy");
    let client_at = path.child("webhookClientConfig");
    let reviews_at = path.child("conversionReviewVersions");
    let declared = conversion.webhook.clone().unwrap_or_default();
    match strategy {
        "" => errors.push(FieldError::required(strategy_at, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(strategy_at, other, ["None", "Webhook"])),
    }
    if strategy != "Webhook" {
        const DETAIL: &str = "should not be set when strategy is not set to Webhook";
        if declared.client.is_some() {
            errors.push(FieldError::forbidden(client_at, DETAIL));
        }
        if !declared.review_versions.is_empty() {
            errors.push(FieldError::forbidden(reviews_at, DETAIL));
        }
        return;
    }
    match declared.client {
        None => errors.push(FieldError::required(client_at, "required when strategy is set to Webhook")),
        Some(client) => {
            webhook_client::check(client.url.as_deref(), client.service.as_ref(), &client_at, errors);
            if let Some(bundle) = client.ca_bundle.as_deref().filter(|_| demands.ca_bundle)
                && let Some(problem) = certificates::problem(bundle)
            {
                let detail = format!("unable to load root certificates: {problem}");
                errors.push(FieldError::invalid(client_at.child("caBundle"), bundle, detail));
            }
        }
    }
    review_versions(&declared.review_versions, demands.review_versions, &reviews_at, errors);
}

/// Whether the server can send a ConversionReview of this version.
pub(super) fn is_spoken(review_version: &str) -> bool {
    matches!(review_version, "v1" | "v1beta1")
}

fn review_versions(versions: &[String], must_speak: bool, path: &Path<'_>, errors: &mut FieldErrors) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut earlier = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let at = path.index(i);
        if !earlier.insert(version) {
            errors.push(FieldError::invalid(at, version.as_str(), "duplicate version"));
            continue;
        }
        let problems = names::dns1035_label(version);
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, version.as_str(), problem)));
    }
    if must_speak && !versions.iter().any(|version| is_spoken(version)) {
        let shown = BadValue::Verbatim(go::json::text(&serde_json::json!(versions)));
        errors.push(FieldError::invalid(path, shown, "must include at least one of v1, v1beta1"));
    }
}
