//! Discovers which kinds a server serves, in its preferred versions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;

use super::{CollectError, Run};

/// Kinds that are never collected: their names are credentials.
const NAMED_BY_SECRETS: [(&str, &str); 3] = [
    ("oauth.openshift.io", "oauthaccesstokens"),
    ("oauth.openshift.io", "oauthauthorizetokens"),
    ("oauth.openshift.io", "useroauthaccesstokens"),
];

/// A kind that can be listed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
}

impl Kind {
    /// Returns the path of its list.
    pub(super) fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}/{}", self.version, self.plural),
            group => format!("/apis/{group}/{}/{}", self.version, self.plural),
        }
    }

    pub(super) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the folder of its group.
    pub(super) fn folder(&self) -> &str {
        if self.group.is_empty() { "core" } else { &self.group }
    }

    pub(super) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}

/// The kinds, and how many groups did not answer: an aggregated API server that is down must not prevent the rest.
pub(super) struct Discovered {
    pub(super) kinds: Vec<Kind>,
    pub(super) missed: u64,
}

pub(super) async fn kinds(run: &Run<'_>) -> Result<Discovered, CollectError> {
    let failed = |error| CollectError::Discovery(Box::new(error));
    let core = run.client.list_core_api_resources("v1").await.map_err(failed)?;
    let mut found = Discovered { kinds: listed("", "v1", core.resources), missed: 0 };
    for group in run.client.list_api_groups().await.map_err(failed)?.groups {
        let preferred = group.preferred_version.or_else(|| group.versions.into_iter().next());
        let Some(preferred) = preferred else { continue };
        match run.client.list_api_group_resources(&preferred.group_version).await {
            Ok(served) => found.kinds.extend(listed(&group.name, &preferred.version, served.resources)),
            Err(error) => {
                run.missed(&preferred.group_version, &error);
                found.missed += 1;
            }
        }
    }
    Ok(found)
}

fn listed(group: &str, version: &str, served: Vec<APIResource>) -> Vec<Kind> {
    let wanted = |resource: &APIResource| {
        resource.verbs.iter().any(|verb| verb == "list")
            && !resource.name.contains('/')
            && !NAMED_BY_SECRETS.contains(&(group, resource.name.as_str()))
            // The same events are served in two groups.
            && (group, resource.name.as_str()) != ("events.k8s.io", "events")
    };
    let kind = |resource: APIResource| Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: resource.name,
        kind: resource.kind,
        namespaced: resource.namespaced,
    };
    served.into_iter().filter(wanted).map(kind).collect()
}
