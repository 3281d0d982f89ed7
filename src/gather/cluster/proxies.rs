//! Reads the proxies of the cluster: its `Proxy` `cluster` of config.openshift.io/v1. A plain Kubernetes cluster has none.

use kube::Client;
use serde_json::Value;

use super::configuration;
use crate::gather::tunnel::Proxies;

/// Returns the cluster's proxy settings; those of the status take precedence over the spec, since they include the cluster's
/// networks. Empty if there is no such object, or this process may not read it.
///
/// # Errors
/// When the object may exist and cannot be read.
pub async fn proxies(client: &Client) -> Result<Proxies, kube::Error> {
    let proxy = match configuration(client, "Proxy", "proxies").await {
        Ok(Some(proxy)) => proxy,
        Ok(None) => return Ok(Proxies::default()),
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Proxies::default()),
        Err(error) => return Err(error),
    };
    let of = |part: &str| {
        let text = |field: &str| {
            let value = proxy.get(part).and_then(|part| part.get(field)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        Proxies { http: text("httpProxy"), https: text("httpsProxy"), none: text("noProxy") }
    };
    Ok(Proxies::layered(&[of("status"), of("spec")]))
}
