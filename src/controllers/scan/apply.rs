//! Writes reports by server-side apply: those whose CRDs the cluster has. Outdated reports of this program are deleted; those of
//! others stay.

use std::collections::BTreeSet;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

/// The field manager of reports.
const MANAGER: &str = "admit-scan";
/// The label selector of this program's reports.
const OURS: &str = "app.kubernetes.io/managed-by=admit";

/// Why reports were not written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(
        "the cluster has no reports: neither openreports.io/v1alpha1 nor wgpolicyk8s.io/v1alpha2 is served; \
         `kubectl apply -k deploy/reports` defines both"
    )]
    NotServed,
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Client(#[source] Box<kube::Error>),
    #[error("a report is no object: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl From<kube::Error> for ApplyError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status.message.clone()),
            other => Self::Client(Box::new(other)),
        }
    }
}

/// The numbers of written and deleted reports.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Written {
    pub written: usize,
    pub removed: usize,
}

/// Writes `reports`, objects with their `apiVersion` and `kind`.
///
/// # Errors
/// When the cluster serves none of their kinds, or rejects one.
pub async fn write(client: &Client, reports: &[Value]) -> Result<Written, ApplyError> {
    let mut written = Written::default();
    let mut served_any = false;
    for (group, version, kinds) in [
        ("openreports.io", "v1alpha1", ["Report", "ClusterReport"]),
        ("wgpolicyk8s.io", "v1alpha2", ["PolicyReport", "ClusterPolicyReport"]),
    ] {
        for kind in kinds {
            let kind = GroupVersionKind::gvk(group, version, kind);
            let plural = format!("{}s", kind.kind.to_lowercase());
            let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
            if !is_served(client, &resource).await? {
                continue;
            }
            served_any = true;
            let of_kind = reports.iter().filter(|report| {
                report.get("kind").and_then(Value::as_str) == Some(&*kind.kind)
                    && report.get("apiVersion").and_then(Value::as_str) == Some(&*resource.api_version)
            });
            let of_kind = of_kind.map(|report| serde_json::from_value(report.clone()));
            let of_kind: Vec<DynamicObject> = of_kind.collect::<Result<_, _>>()?;
            let added = write_kind(client, &resource, &of_kind).await?;
            written.written += added.written;
            written.removed += added.removed;
        }
    }
    if served_any { Ok(written) } else { Err(ApplyError::NotServed) }
}

async fn is_served(client: &Client, resource: &ApiResource) -> Result<bool, ApplyError> {
    match client.list_api_group_resources(&resource.api_version).await {
        Ok(listed) => Ok(listed.resources.iter().any(|listed| listed.name == resource.plural)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn write_kind(
    client: &Client,
    resource: &ApiResource,
    reports: &[DynamicObject],
) -> Result<Written, ApplyError> {
    let mut written = Written::default();
    let mut kept: BTreeSet<(String, String)> = BTreeSet::new();
    for report in reports {
        let (namespace, name) = (report.namespace().unwrap_or_default(), report.name_any());
        let params = PatchParams::apply(MANAGER).force();
        match api(client, resource, &namespace).patch(&name, &params, &Patch::Apply(report)).await {
            Ok(_) => written.written += 1,
            // The namespace was deleted meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
        kept.insert((namespace, name));
    }
    let all: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    for there in all.list_metadata(&ListParams::default().labels(OURS)).await?.items {
        let (namespace, name) = (there.namespace().unwrap_or_default(), there.name_any());
        if kept.contains(&(namespace.clone(), name.clone())) {
            continue;
        }
        match api(client, resource, &namespace).delete(&name, &DeleteParams::default()).await {
            Ok(_) => written.removed += 1,
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

fn api(client: &Client, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
    match namespace {
        "" => Api::all_with(client.clone(), resource),
        namespace => Api::namespaced_with(client.clone(), namespace, resource),
    }
}
