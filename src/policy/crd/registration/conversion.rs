//! `spec.conversion` at registration.

use admit_cel::library;

use crate::crd::definition::{Conversion, WebhookService};
use crate::error::{BadValue, FieldError};
use crate::go_text;
use crate::names;
use crate::path::Path;

/// `must_speak`: one of the review versions has to be the server's.
pub(super) fn validate(
    conversion: &Conversion,
    must_speak: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let strategy = conversion.strategy.as_str();
    let strategy_at = path.child("strategy");
    let client_at = path.child("webhookClientConfig");
    let reviews_at = path.child("conversionReviewVersions");
    let webhook = conversion.webhook.clone().unwrap_or_default();
    match strategy {
        "" => errors.push(FieldError::required(strategy_at, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(strategy_at, other, ["None", "Webhook"])),
    }
    if strategy != "Webhook" {
        const DETAIL: &str = "should not be set when strategy is not set to Webhook";
        if webhook.client.is_some() {
            errors.push(FieldError::forbidden(client_at, DETAIL));
        }
        if !webhook.review_versions.is_empty() {
            errors.push(FieldError::forbidden(reviews_at, DETAIL));
        }
        return;
    }
    match webhook.client {
        None => errors.push(FieldError::required(client_at, "required when strategy is set to Webhook")),
        Some(client) => match (&client.url, &client.service) {
            (Some(url), None) => validate_url(url, &client_at.child("url"), errors),
            (None, Some(service)) => validate_service(service, &client_at.child("service"), errors),
            _ => errors.push(FieldError::required(client_at, "exactly one of url or service is required")),
        },
    }
    review_versions(&webhook.review_versions, must_speak, &reviews_at, errors);
}

fn validate_url(url: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Err(problem) = library::url::check(url) {
        let detail = format!("url must be a valid URL: {problem}; desired format: https://host[/path]");
        errors.push(FieldError::required(path, detail));
        return;
    }
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let mut refuse = |part: &str, detail: &str| errors.push(FieldError::invalid(path, part, detail));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        refuse(scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]");
    }
    if host.is_empty() {
        refuse(host, "host must be specified; desired format: https://host[/path]");
    }
    if let Some(user) = user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL");
    }
}

fn validate_service(service: &WebhookService, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // The server hands the two over in each other's place.
    if service.namespace.is_empty() {
        errors.push(FieldError::required(path.child("name"), ""));
    }
    if service.name.is_empty() {
        errors.push(FieldError::required(path.child("namespace"), ""));
    }
    if !(1..=65_535).contains(&service.port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.child("port"), service.port, detail));
    }
    let Some(url_path) = service.path.as_deref().filter(|path| !matches!(*path, "" | "/")) else { return };
    let at = path.child("path");
    if url_path == "//" {
        errors.push(FieldError::invalid(at, url_path, "segment[0] may not be empty"));
        return;
    }
    let mut rest = url_path.chars();
    if rest.next() != Some('/') {
        errors.push(FieldError::invalid(at, url_path, "must start with a '/'"));
    }
    // The first character is passed over whatever it is.
    let segments = rest.as_str();
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    for (i, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(FieldError::invalid(at, url_path, format!("segment[{i}] may not be empty")));
            continue;
        }
        let problems = names::dns1123_subdomain(segment);
        errors.extend(
            problems
                .into_iter()
                .map(|problem| FieldError::invalid(at, url_path, format!("segment[{i}]: {problem}"))),
        );
    }
}

/// Whether the server can send a ConversionReview of this version.
pub(super) fn is_spoken(review_version: &str) -> bool {
    matches!(review_version, "v1" | "v1beta1")
}

fn review_versions(versions: &[String], must_speak: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let at = path.index(i);
        if versions.iter().take(i).any(|earlier| earlier == version) {
            errors.push(FieldError::invalid(at, version.as_str(), "duplicate version"));
            continue;
        }
        let problems = names::dns1035_label(version);
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(at, version.as_str(), problem)));
    }
    if must_speak && !versions.iter().any(|version| is_spoken(version)) {
        let shown = BadValue::Verbatim(go_text::json(&serde_json::json!(versions)));
        errors.push(FieldError::invalid(path, shown, "must include at least one of v1, v1beta1"));
    }
}
