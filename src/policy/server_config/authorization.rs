//! Validates an AuthorizationConfiguration: the chain of authorizers, and the match conditions of each webhook.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{go, names};

use super::expressions::{About, Yields};
use crate::read::decode::{DecodeError, Fields};

const TYPES: [&str; 5] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC"];
const WEBHOOK: &str = "Webhook";
const MOST_CONDITIONS: usize = 64;
const SECOND: i64 = 1_000_000_000;

pub(super) fn check(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let authorizers = fields.objects("authorizers")?;
    if authorizers.is_empty() {
        errors.push(FieldError::required("authorizers", "at least one authorization mode must be defined"));
    }
    let (mut types, mut named) = (HashSet::new(), HashSet::new());
    for authorizer in authorizers {
        let (path, kind) = (authorizer.path_of("type"), authorizer.string("type")?);
        if kind.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        if kind != WEBHOOK && !TYPES.contains(&kind.as_str()) {
            let known = TYPES.into_iter().chain([WEBHOOK]);
            errors.push(FieldError::not_supported(path, kind.as_str(), known));
            continue;
        }
        if !types.insert(kind.clone()) && kind != WEBHOOK {
            errors.push(FieldError::duplicate(path, kind.as_str()));
            continue;
        }
        name(&authorizer, &mut named, errors)?;
        match (authorizer.optional_object("webhook")?, kind == WEBHOOK) {
            (Some(of_webhook), true) => webhook(&of_webhook, authorizer.path(), errors)?,
            (None, true) => {
                errors
                    .push(FieldError::required(authorizer.path_of("webhook"), "required when type=Webhook"));
            }
            (Some(_), false) => {
                let (at, why) = (authorizer.path_of("webhook"), "may only be specified when type=Webhook");
                errors.push(FieldError::invalid(at, "non-null", why));
            }
            (None, false) => {}
        }
    }
    Ok(())
}

fn name(
    authorizer: &Fields<'_>,
    seen: &mut HashSet<String>,
    errors: &mut FieldErrors,
) -> Result<(), DecodeError> {
    let (path, name) = (authorizer.path_of("name"), authorizer.string("name")?);
    let problems = names::dns1123_subdomain(&name);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if seen.contains(&name) {
        errors.push(FieldError::duplicate(path, name.as_str()));
    } else if !problems.is_empty() {
        let why = format!("authorizer name is invalid: {}", problems.join(", "));
        errors.push(FieldError::invalid(path, name.as_str(), why));
    }
    seen.insert(name);
    Ok(())
}

/// The fields of a webhook, which upstream's messages place beside it: at `path`.
fn webhook(webhook: &Fields<'_>, path: &str, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let at = |field: &str| format!("{path}.{field}");
    // The others have a default.
    match duration(webhook, "timeout", &at("timeout"), errors)? {
        Some(0) => errors.push(FieldError::required(at("timeout"), "")),
        Some(time) if !(0..=SECOND.saturating_mul(30)).contains(&time) => {
            let shown = go::duration::format(time);
            errors.push(FieldError::invalid(at("timeout"), shown.as_str(), "must be > 0s and <= 30s"));
        }
        _ => {}
    }
    for field in ["authorizedTTL", "unauthorizedTTL"] {
        if let Some(time) = duration(webhook, field, &at(field), errors)?.filter(|time| *time < 0) {
            errors.push(FieldError::invalid(at(field), go::duration::format(time).as_str(), "must be > 0s"));
        }
    }
    let conditions = webhook.objects("matchConditions")?;
    let among = |field: &str, missing: Option<&str>, known: &[&str], errors: &mut FieldErrors| {
        let value = webhook.string(field)?;
        match missing {
            Some(why) if value.is_empty() => errors.push(FieldError::required(at(field), why)),
            _ if value.is_empty() || known.contains(&value.as_str()) => {}
            _ => errors.push(FieldError::not_supported(at(field), value.as_str(), known.iter().copied())),
        }
        Ok::<(), DecodeError>(())
    };
    among("subjectAccessReviewVersion", Some(""), &["v1", "v1beta1"], errors)?;
    let needed = (!conditions.is_empty()).then_some("required if match conditions are specified");
    among("matchConditionSubjectAccessReviewVersion", needed, &["v1"], errors)?;
    among("failurePolicy", Some(""), &["NoOpinion", "Deny"], errors)?;
    connection(&webhook.object("connectionInfo")?, &at("connectionInfo"), errors)?;
    match_conditions(&conditions, &at("matchConditions"), errors)
}

/// Parses a duration to nanoseconds; None if it is invalid, which has been reported.
fn duration(
    webhook: &Fields<'_>,
    field: &str,
    at: &str,
    errors: &mut FieldErrors,
) -> Result<Option<i64>, DecodeError> {
    let text = webhook.string(field)?;
    if text.is_empty() {
        return Ok(Some(0));
    }
    match go::duration::parse(&text) {
        Ok(time) => Ok(Some(time)),
        Err(error) => {
            errors.push(FieldError::invalid(at, text.as_str(), error.to_string()));
            Ok(None)
        }
    }
}

/// Checks how a webhook is reached. Whether a file exists can only be known on the server.
fn connection(connection: &Fields<'_>, path: &str, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    const KINDS: [&str; 2] = ["InClusterConfig", "KubeConfigFile"];
    let file = connection.optional_string("kubeConfigFile")?;
    let at = format!("{path}.kubeConfigFile");
    match (connection.string("type")?.as_str(), file.as_deref()) {
        ("", _) => errors.push(FieldError::required(format!("{path}.type"), "")),
        ("InClusterConfig", None) => {}
        ("InClusterConfig", Some(file)) => {
            errors.push(FieldError::invalid(at, file, "can only be set when type=KubeConfigFile"));
        }
        ("KubeConfigFile", None | Some("")) => errors.push(FieldError::required(at, "")),
        ("KubeConfigFile", Some(file)) if !file.starts_with('/') => {
            errors.push(FieldError::invalid(at, file, "must be an absolute path"));
        }
        ("KubeConfigFile", Some(_)) => {}
        (other, _) => errors.push(FieldError::not_supported(format!("{path}.type"), other, KINDS)),
    }
    Ok(())
}

fn match_conditions(
    conditions: &[Fields<'_>],
    path: &str,
    errors: &mut FieldErrors,
) -> Result<(), DecodeError> {
    if conditions.len() > MOST_CONDITIONS {
        let count = i64::try_from(conditions.len()).unwrap_or(i64::MAX);
        errors.push(FieldError::too_many(path, count, 64));
        return Ok(());
    }
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let (at, text) = (format!("{path}[{index}].expression"), condition.string("expression")?);
        if text.trim().is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if seen.contains(&text) {
            errors.push(FieldError::duplicate(at, text.as_str()));
        } else if let Err(error) = About::Request.compile(Yields::Truth, &text, &at) {
            errors.push(*error);
        }
        seen.insert(text);
    }
    Ok(())
}
