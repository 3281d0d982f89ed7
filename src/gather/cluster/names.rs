//! Reads the DNS names of a cluster: the base domain in its `DNS`, and the host of the API server in its `Infrastructure`, both
//! `cluster` of config.openshift.io/v1. A plain Kubernetes cluster has neither.

use http::Uri;
use kube::Client;
use serde_json::Value;

use super::configuration;
use crate::telemetry::with_causes;

/// The names by which a cluster is reached, if it has such objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    pub base_domain: Option<String>,
    pub api_host: Option<String>,
}

/// Why names are unknown although they may exist.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what} of config.openshift.io/v1: {}", with_causes(source))]
pub struct NamesError {
    what: &'static str,
    #[source]
    source: Box<kube::Error>,
}

/// Reads the names of the cluster. Objects that do not exist have none.
///
/// # Errors
/// [`NamesError`] when an object may exist and cannot be read.
pub async fn names(client: &Client) -> Result<Names, NamesError> {
    let read = async |what, kind, plural| {
        let read = configuration(client, kind, plural).await;
        read.map_err(|source| NamesError { what, source: Box::new(source) })
    };
    let dns = read("the DNS `cluster`", "DNS", "dnses").await?;
    let infrastructure = read("the Infrastructure `cluster`", "Infrastructure", "infrastructures").await?;
    Ok(Names {
        base_domain: text(dns.as_ref(), "/spec/baseDomain").map(|domain| domain.trim_matches('.').to_owned()),
        api_host: text(infrastructure.as_ref(), "/status/apiServerURL").and_then(host),
    })
}

fn text<'v>(object: Option<&'v Value>, pointer: &str) -> Option<&'v str> {
    object?.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

fn host(url: &str) -> Option<String> {
    url.parse::<Uri>().ok()?.host().map(str::to_owned)
}
