//! Parses exceptions from documents, and reports every error in one.

use std::collections::BTreeSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::{CLUSTER_KIND, KIND, STORED_GROUP};
use crate::read::decode::{DecodeError, Fields};
use crate::request::GroupVersionKind;
use crate::request::exceptions::PolicyException;
use crate::schema::metadata::configuration;

/// The maximum length of a reason in characters, since every report repeats it.
const MAX_REASON: usize = 1_024;

impl PolicyException {
    /// Compiles a document, or returns everything that is wrong with it. [`Exceptions`](crate::Exceptions) has an example.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(document: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        match Self::decode(document, &mut errors) {
            Ok(Some(exception)) if errors.is_empty() => Ok(exception),
            Ok(_) => Err(errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    fn decode(document: &Value, errors: &mut FieldErrors) -> Result<Option<Self>, DecodeError> {
        let document = Fields::of(document, "")?;
        let name = configuration::name(&document, errors)?;
        let home = home(&document, errors)?;
        let spec = document.object("spec")?;
        let policies: BTreeSet<String> = spec.strings("policies")?.into_iter().collect();
        if policies.is_empty() {
            errors.push(FieldError::required(spec.path_of("policies"), "name the policies, one by one"));
        }
        let reason = spec.string("reason")?;
        if reason.trim().is_empty() {
            errors.push(FieldError::required(
                spec.path_of("reason"),
                "every report shows why this is let through",
            ));
        }
        if reason.chars().count() > MAX_REASON {
            errors.push(FieldError::too_long(spec.path_of("reason"), 1_024));
        }
        let text = spec.string("until")?;
        let until = end(&text);
        match &until {
            None if text.is_empty() => {
                errors.push(FieldError::required(spec.path_of("until"), "an exception ends"));
            }
            None => errors.push(FieldError::invalid(
                spec.path_of("until"),
                text.as_str(),
                "must be a date (2026-12-31, which it includes, in UTC) or a time (2026-12-31T12:00:00Z)",
            )),
            Some(_) => {}
        }
        let mut operations = Vec::new();
        for (path, operation) in spec.list("operations")? {
            match operation.as_str().and_then(|word| word.parse().ok()) {
                Some(operation) => operations.push(operation),
                None => errors.push(FieldError::not_supported(
                    path,
                    operation.as_str().unwrap_or_default(),
                    ["CONNECT", "CREATE", "DELETE", "UPDATE"],
                )),
            }
        }
        let is_stored = document.string("apiVersion")?.starts_with(STORED_GROUP);
        if is_stored && document.get("spec").is_some() {
            ["namespaces", "names", "users", "operations"]
                .into_iter()
                .try_for_each(|field| says_something(&spec, field, errors))?;
        }
        let (namespaces, names, users) =
            (spec.strings("namespaces")?, spec.strings("names")?, spec.strings("users")?);
        let shown = home.as_ref().map_or_else(|| name.clone(), |home| format!("{home}/{name}"));
        Ok(until.map(|until| Self {
            name: shown.into(),
            home,
            reason: reason.into(),
            until,
            shown: until.to_string().into(),
            policies,
            namespaces,
            names,
            users,
            operations,
        }))
    }
}

/// Returns the namespace of the exception, whose requests it is about.
fn home(document: &Fields<'_>, errors: &mut FieldErrors) -> Result<Option<String>, DecodeError> {
    let kind = GroupVersionKind::from_api_version(&document.string("apiVersion")?, &document.string("kind")?);
    let metadata = document.object("metadata")?;
    let namespace = metadata.string("namespace")?;
    match (kind.group.as_str(), kind.kind.as_str()) {
        (STORED_GROUP, KIND) if namespace.is_empty() => errors.push(FieldError::required(
            metadata.path_of("namespace"),
            "it is about requests of its own namespace; a ClusterPolicyException is about others",
        )),
        (STORED_GROUP, KIND) => return Ok(Some(namespace)),
        (STORED_GROUP, CLUSTER_KIND) if !namespace.is_empty() => {
            errors.push(FieldError::forbidden(metadata.path_of("namespace"), "it lies in none"));
        }
        _ => {}
    }
    Ok(None)
}

/// Complains of a list that is there and empty: left out, it means any.
fn says_something(spec: &Fields<'_>, field: &str, errors: &mut FieldErrors) -> Result<(), DecodeError> {
    let items = spec.list(field)?;
    if items.is_empty() && spec.get(field).is_some() {
        errors.push(FieldError::invalid(
            spec.path_of(field),
            "[]",
            "must not be empty; left out, it means any",
        ));
    }
    let empty = items.into_iter().filter(|(_, item)| item.as_str() == Some(""));
    errors.extend(empty.map(|(path, _)| FieldError::required(path, "nothing has an empty name")));
    Ok(())
}

/// The end of a day, or a time.
fn end(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    // What has hours and no offset is a time of nowhere.
    if text.len() != "2026-12-31".len() {
        return None;
    }
    let next = text.parse::<Date>().ok()?.tomorrow().and_then(|next| next.to_zoned(TimeZone::UTC));
    // After the last representable day the exception never ends.
    Some(next.map_or(Timestamp::MAX, |day| day.timestamp()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_date_is_included() {
        let end = |text| end(text).map(|time| time.to_string());
        assert_eq!(end("2026-12-31").as_deref(), Some("2027-01-01T00:00:00Z"));
        assert_eq!(end("2026-12-31T10:00:00+02:00").as_deref(), Some("2026-12-31T08:00:00Z"));
        assert_eq!(end("9999-12-31").as_deref(), Some("9999-12-30T22:00:00.999999999Z"));
        for text in ["", "2026-12-32", "2026-12-31T10:00", "tomorrow"] {
            assert_eq!(end(text), None, "{text}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let told = |spec: Value| {
            let document =
                json!({"apiVersion": "admit/v1", "kind": KIND, "metadata": {"name": "a"}, "spec": spec});
            let errors = PolicyException::compile(&document).err().unwrap_or_default();
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(told(json!({"policies": ["p"], "reason": "r", "until": "2026-12-31"})), "");
        let all = told(json!({"reason": " ", "until": "soon", "operations": ["WATCH"]}));
        for field in [
            "spec.policies: Required",
            "spec.reason: Required",
            "spec.until: Invalid",
            "spec.operations[0]: Unsupp",
        ] {
            assert!(all.contains(field), "{field}: {all}");
        }
        assert!(told(json!({"policies": "p"})).contains("spec.policies"));
        assert!(told(json!({"policies": ["p"], "reason": "r"})).contains("an exception ends"));
    }

    #[test]
    fn what_a_cluster_may_store_says_where_and_whom() {
        let told = |kind: &str, metadata: Value, more: Value| {
            let mut spec = json!({"policies": ["p"], "reason": "r", "until": "2026-12-31"});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let document = json!({"apiVersion": "policies.admit.dev/v1", "kind": kind, "metadata": metadata, "spec": spec});
            match PolicyException::compile(&document) {
                Ok(exception) => exception.name().to_owned(),
                Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
            }
        };
        let inside = || json!({"name": "a", "namespace": "shop"});
        assert_eq!(told(KIND, inside(), json!({"names": ["web-*"]})), "shop/a");
        assert_eq!(told(CLUSTER_KIND, json!({"name": "a"}), json!({})), "a");
        assert!(told(KIND, json!({"name": "a"}), json!({})).starts_with("metadata.namespace: Required"));
        assert!(told(CLUSTER_KIND, inside(), json!({})).starts_with("metadata.namespace: Forbidden"));
        // An empty list is an error, not a wildcard: a program that generates it may simply have had nothing to put there.
        for field in ["names", "users", "operations"] {
            assert!(told(KIND, inside(), json!({field: []})).starts_with(&format!("spec.{field}: Invalid")));
        }
        assert!(
            told(CLUSTER_KIND, json!({"name": "a"}), json!({"namespaces": []})).contains("spec.namespaces")
        );
        assert!(told(KIND, inside(), json!({"names": [""]})).starts_with("spec.names[0]: Required"));
    }
}
