//! Reads the settings of `ImagePolicyWebhook`: the section `imagePolicy`, which has no kind.

use std::time::Duration;

use admit_apimachinery::go::duration;
use serde::Deserialize;
use serde_json::Value;

use super::kubeconfig::backend;
use super::sections::{AdmissionConfiguration, SettingsError, typed};
use crate::callout::Callee;

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;

/// The backend that decides about images, and how long its answers are cached.
#[derive(Clone, Debug)]
pub(in crate::admission::plugins) struct ImagePolicy {
    pub(in crate::admission::plugins) callee: Callee,
    pub(in crate::admission::plugins) allowed_for: Duration,
    pub(in crate::admission::plugins) denied_for: Duration,
    /// The pause before the second attempt.
    pub(in crate::admission::plugins) pause: Duration,
    /// Whether pods are admitted if the backend does not answer.
    pub(in crate::admission::plugins) default_allow: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Section {
    #[serde(rename = "imagePolicy")]
    image_policy: Given,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Given {
    #[serde(rename = "kubeConfigFile")]
    kubeconfig: String,
    #[serde(rename = "allowTTL")]
    allow: i64,
    #[serde(rename = "denyTTL")]
    deny: i64,
    #[serde(rename = "retryBackoff")]
    backoff: i64,
    #[serde(rename = "defaultAllow")]
    default_allow: bool,
}

impl ImagePolicy {
    /// # Errors
    /// If the section is missing or invalid.
    pub(super) fn read(
        section: Option<Value>,
        configuration: &AdmissionConfiguration,
    ) -> Result<Self, SettingsError> {
        let given = typed::<Section>(section.ok_or(SettingsError::Missing)?)?.image_policy;
        let pause = Span { unit: MILLISECOND, least: 1, most: 5 * MINUTE, otherwise: 500 * MILLISECOND };
        let ttl = |otherwise| Span { unit: SECOND, least: SECOND, most: 30 * MINUTE, otherwise };
        Ok(Self {
            pause: pause.of(given.backoff)?,
            allowed_for: ttl(5 * MINUTE).of(given.allow)?,
            denied_for: ttl(30 * SECOND).of(given.deny)?,
            default_allow: given.default_allow,
            callee: backend(configuration, &given.kubeconfig)?,
        })
    }
}

/// The bounds and default of a duration in nanoseconds, and the unit in which it is given.
struct Span {
    unit: i64,
    /// The exclusive lower bound.
    least: i64,
    most: i64,
    otherwise: i64,
}

impl Span {
    fn of(&self, given: i64) -> Result<Duration, SettingsError> {
        let nanoseconds = match given {
            -1 => 0,
            0 => self.otherwise,
            given => {
                // Go's multiplication wraps around; here it saturates, so that such values are refused.
                let nanoseconds = given.saturating_mul(self.unit);
                if nanoseconds <= self.least || nanoseconds > self.most {
                    let shown = [self.least, self.most, nanoseconds].map(duration::format);
                    let [least, most, nanoseconds] = shown;
                    let why = format!("valid value is between {least} and {most}, got {nanoseconds}");
                    return Err(SettingsError::Invalid(why));
                }
                nanoseconds
            }
        };
        Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default()))
    }
}

impl PartialEq for ImagePolicy {
    fn eq(&self, other: &Self) -> bool {
        let of = |policy: &Self| (policy.allowed_for, policy.denied_for, policy.pause, policy.default_allow);
        of(self) == of(other)
            && self.callee.url() == other.callee.url()
            && self.callee.ca_bundle == other.callee.ca_bundle
            && self.callee.credentials == other.callee.credentials
    }
}

impl Eq for ImagePolicy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_within_bounds() {
        let ttl = Span { unit: SECOND, least: SECOND, most: 30 * MINUTE, otherwise: 30 * SECOND };
        let told = |given: i64| ttl.of(given).map_err(|error| error.to_string());
        assert_eq!(told(0), Ok(Duration::from_secs(30)));
        assert_eq!(told(-1), Ok(Duration::ZERO));
        assert_eq!(told(1800), Ok(Duration::from_mins(30)));
        assert_eq!(told(1), Err("valid value is between 1s and 30m0s, got 1s".to_owned()));
        assert_eq!(told(-2), Err("valid value is between 1s and 30m0s, got -2s".to_owned()));
        assert_eq!(told(1801), Err("valid value is between 1s and 30m0s, got 30m1s".to_owned()));
    }
}
