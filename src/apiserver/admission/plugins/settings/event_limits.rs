//! Reads the settings of `EventRateLimit`: `eventratelimit.admission.k8s.io/v1alpha1` `Configuration`.

use admit_apimachinery::findings::FieldErrors;
use serde::Deserialize;
use serde_json::Value;

use super::sections::{SettingsError, of_kind, typed};
use crate::kinds::field::Field;

/// The default number of buckets of a limit.
const CACHED: usize = 4096;

/// Says by what a limit groups events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admission::plugins) enum LimitKind {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

impl LimitKind {
    const ALL: [Self; 4] = [Self::Server, Self::Namespace, Self::User, Self::SourceAndObject];

    pub(in crate::admission::plugins) const fn name(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Namespace => "Namespace",
            Self::User => "User",
            Self::SourceAndObject => "SourceAndObject",
        }
    }
}

/// A rate limit: events per second, and the burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admission::plugins) struct Limit {
    pub(in crate::admission::plugins) kind: LimitKind,
    pub(in crate::admission::plugins) per_second: u32,
    pub(in crate::admission::plugins) burst: u32,
    /// The number of buckets that are kept.
    pub(in crate::admission::plugins) cached: usize,
}

/// Reads the limits, in their order.
pub(super) struct EventLimits;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    qps: i32,
    #[serde(default)]
    burst: i32,
    #[serde(default)]
    cache_size: i32,
}

impl EventLimits {
    /// # Errors
    /// If the section is of another kind, or a limit is invalid.
    pub(super) fn read(section: &Value) -> Result<Vec<Limit>, SettingsError> {
        if !section.is_null() {
            of_kind(section, "Configuration", &["eventratelimit.admission.k8s.io/v1alpha1"])?;
        }
        let mut errors = FieldErrors::default();
        let root = Field::root(section);
        let limits = root.get("limits");
        if limits.items().next().is_none() {
            errors.add(|| limits.invalid("must not be empty"));
        }
        let mut read = Vec::new();
        for field in limits.items() {
            let given: Given = typed(field.value().clone())?;
            let kind = LimitKind::ALL.into_iter().find(|kind| kind.name() == given.kind);
            let named = field.get("type");
            if kind.is_none() {
                // Sorted; Go's map gives a random order.
                let supported = ["Namespace", "Server", "SourceAndObject", "User"];
                errors.add(|| named.with(&Value::String(given.kind.clone())).not_supported(&supported));
            }
            let positive = |name: &'static str, number: i32, errors: &mut FieldErrors| {
                if number <= 0 {
                    errors.add(|| field.get(name).invalid_as(i64::from(number), "must be positive"));
                }
                u32::try_from(number).unwrap_or_default()
            };
            let burst = positive("burst", given.burst, &mut errors);
            let per_second = positive("qps", given.qps, &mut errors);
            if kind != Some(LimitKind::Server) && given.cache_size < 0 {
                let why = "must not be negative";
                errors.add(|| field.get("cacheSize").invalid_as(i64::from(given.cache_size), why));
            }
            let cached = usize::try_from(given.cache_size).ok().filter(|size| *size > 0).unwrap_or(CACHED);
            read.extend(kind.map(|kind| Limit { kind, per_second, burst, cached }));
        }
        let errors = errors.into_vec();
        if errors.is_empty() { Ok(read) } else { Err(SettingsError::invalid(&errors)) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_positive_and_of_a_known_kind() {
        let read = |limits: Value| {
            let section = json!({"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                "limits": limits});
            EventLimits::read(&section).map_err(|error| error.to_string())
        };
        let limit = Limit { kind: LimitKind::Server, per_second: 5, burst: 10, cached: CACHED };
        assert_eq!(
            read(json!([{"type": "Server", "qps": 5, "burst": 10, "cacheSize": -1}])),
            Ok(vec![limit])
        );
        for (limits, told) in [
            (json!([]), "limits: Invalid value: "),
            (json!([{"type": "Server", "qps": 5}]), "limits[0].burst: Invalid value: 0: must be positive"),
            (json!([{"type": "User", "burst": 5}]), "limits[0].qps: Invalid value: 0: must be positive"),
            (
                json!([{"type": "User", "qps": 1, "burst": 5, "cacheSize": -1}]),
                "limits[0].cacheSize: Invalid value: -1: must not be negative",
            ),
            (
                json!([{"type": "Host", "qps": 1, "burst": 5}]),
                "limits[0].type: Unsupported value: \"Host\": supported values: ",
            ),
        ] {
            let error = read(limits).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let other = json!({"apiVersion": "v1", "kind": "Configuration"});
        assert!(EventLimits::read(&other).unwrap_err().to_string().starts_with("no kind \"Configuration\""));
    }
}
