//! An address with places for the cluster's id and the request's, as configurations of the Insights operator write it:
//! `https://host/cluster/%s/request/%s/report`.

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
        // The places must stand behind the host.
        let host = |filled: &str| endpoint(filled).map(|uri| uri.authority().cloned());
        if host(&template.of("a", "b"))? != host(&template.of("c", "d"))? {
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
    /// The address for one request of a cluster.
    #[must_use]
    pub fn of(&self, cluster: &str, request: &str) -> String {
        let mut parts = self.0.splitn(3, PLACE);
        let mut part = || parts.next().unwrap_or_default();
        let (front, between, behind) = (part(), part(), part());
        format!("{front}{}{between}{}{behind}", percent_encode(cluster), percent_encode(request))
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
}
