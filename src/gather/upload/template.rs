//! Parses URL templates of the Insights operator's configuration: with placeholders for the cluster's id and the
//! request's (`https://host/cluster/%s/request/%s/report`), or for the version of the platform.

use std::fmt;
use std::str::FromStr;

use super::{EndpointError, endpoint, percent_encode};

const PLACE: &str = "%s";

#[derive(Clone, Debug, PartialEq)]
pub struct Template(String);

impl FromStr for Template {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.matches(PLACE).count() != 2 {
            return Err(EndpointError::Places(text.to_owned()));
        }
        let template = Self(text.to_owned());
        if !behind_the_host(&template.of("a", "b"), &template.of("c", "d"))? {
            return Err(EndpointError::Places(text.to_owned()));
        }
        Ok(template)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Template {
    /// Returns the URL for one request of a cluster.
    #[must_use]
    pub fn of(&self, cluster: &str, request: &str) -> String {
        let mut parts = self.0.splitn(3, PLACE);
        let mut part = || parts.next().unwrap_or_default();
        let (front, between, behind) = (part(), part(), part());
        format!("{front}{}{between}{}{behind}", percent_encode(cluster), percent_encode(request))
    }
}

/// Whether placeholders are after the host: they must not change the receiver of a token.
fn behind_the_host(filled: &str, otherwise: &str) -> Result<bool, EndpointError> {
    let host = |filled: &str| endpoint(filled).map(|uri| uri.authority().cloned());
    Ok(host(filled)? == host(otherwise)?)
}

/// A URL with a placeholder for the version of the platform, or without one.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionTemplate(String);

impl FromStr for VersionTemplate {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let template = Self(text.to_owned());
        if text.matches(PLACE).count() > 1 || !behind_the_host(&template.of("a"), &template.of("b"))? {
            return Err(EndpointError::Place(text.to_owned()));
        }
        Ok(template)
    }
}

impl fmt::Display for VersionTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl VersionTemplate {
    /// Whether there is a placeholder, so that the version must be known.
    #[must_use]
    pub fn names_version(&self) -> bool {
        self.0.contains(PLACE)
    }

    /// Returns the URL for one version.
    #[must_use]
    pub fn of(&self, version: &str) -> String {
        self.0.replacen(PLACE, &percent_encode(version), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stand_behind_the_host() {
        let template: Template = "https://a.example/x/%s/y/%s?z".parse().unwrap();
        assert_eq!(template.of("c/1", "r"), "https://a.example/x/c%2F1/y/r?z");
        for text in [
            "https://a.example/%s",
            "https://a.example/%s/%s/%s",
            "https://%s/%s",
            "http://a.example/%s/%s",
            "%s%s",
        ] {
            assert!(text.parse::<Template>().is_err(), "{text}");
        }
    }
    #[test]
    fn a_version_has_one_place_at_most() {
        let template: VersionTemplate = "https://a.example/v2/%s/rules".parse().unwrap();
        assert_eq!(template.of("4.18.0+x/1"), "https://a.example/v2/4.18.0%2Bx%2F1/rules");
        let plain: VersionTemplate = "https://a.example/rules".parse().unwrap();
        assert!(template.names_version() && !plain.names_version());
        for text in ["https://%s/rules", "https://a.example/%s/%s", "http://a.example/%s", "%s"] {
            assert!(text.parse::<VersionTemplate>().is_err(), "{text}");
        }
    }
}
