//! Defines a kind that a controller needs, and checks whether it is served.

use std::fmt;

use kube::{Client, Resource};

/// A kind that must be served before a controller can start.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    group: String,
    version: String,
    plural: String,
}

impl Definition {
    #[must_use]
    pub fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
    }

    #[must_use]
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self::new(&K::group(&()), &K::version(&()), &K::plural(&()))
    }

    pub(super) async fn is_served(&self, client: &Client) -> Result<bool, kube::Error> {
        let listed = client.list_api_group_resources(&format!("{}/{}", self.group, self.version)).await;
        match listed {
            Ok(listed) => Ok(listed.resources.iter().any(|resource| resource.name == self.plural)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}/{}", self.plural, self.group, self.version)
    }
}
