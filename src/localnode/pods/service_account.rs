//! Provides a Pod with access to the API server: a token of its ServiceAccount that is bound to the Pod, and the server's address.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::super::ApiServer;
use crate::private;

/// The account of a Pod that names none; every namespace of a cluster has it.
const DEFAULT: &str = "default";
/// The lifetime of a token in seconds, that of a kubelet.
const LIFE: i64 = 3_607;

/// Returns the interval for replacing tokens: four fifths of their lifetime; `least` is the shortest requested one in seconds.
pub(super) fn renewed(least: Option<i64>) -> Duration {
    let seconds = least.map_or(LIFE, |least| least.min(LIFE)) * 4 / 5;
    Duration::from_secs(u64::try_from(seconds).unwrap_or(60))
}

/// The paths of an account's files on this machine.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) folder: PathBuf,
    pub(super) kubeconfig: PathBuf,
}

pub(super) fn name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or(DEFAULT)
}

/// Whether the Pod, or else its account, requests a token in every container.
pub(super) async fn is_wanted(client: &Client, pod: &Pod) -> Result<bool, kube::Error> {
    let asked = pod.spec.as_ref().and_then(|spec| spec.automount_service_account_token);
    if let Some(asked) = asked {
        return Ok(asked);
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let account = accounts.get_opt(name(pod)).await?;
    Ok(account.and_then(|account| account.automount_service_account_token) != Some(false))
}

/// Requests a new token of the Pod's account.
///
/// # Errors
/// When there is no such account, or the server does not answer.
pub(super) async fn token(
    client: &Client,
    pod: &Pod,
    audience: Option<&str>,
    life: Option<i64>,
) -> Result<String, kube::Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let named = pod.spec.as_ref().is_some_and(|spec| spec.service_account_name.is_some());
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name_any()),
        uid: pod.uid(),
    };
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: audience.map(|audience| vec![audience.to_owned()]),
            bound_object_ref: named.then_some(bound),
            expiration_seconds: Some(life.unwrap_or(LIFE)),
        }),
        ..TokenRequest::default()
    };
    let (name, params) = (name(pod), PostParams::default());
    let ask = || accounts.create_token_request(name, &params, &request);
    let answer = match ask().await {
        Err(kube::Error::Api(status)) if status.code == 404 && name == DEFAULT => {
            let account = ServiceAccount {
                metadata: ObjectMeta { name: Some(DEFAULT.to_owned()), ..ObjectMeta::default() },
                ..ServiceAccount::default()
            };
            match accounts.create(&PostParams::default(), &account).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(other) => return Err(other),
                Ok(_) => {}
            }
            ask().await
        }
        answer => answer,
    }?;
    Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
}

impl Account {
    /// Returns the paths for a Pod's account, below the Pod's folder.
    pub(super) fn below(folder: &Path) -> Self {
        Self { folder: folder.join("account"), kubeconfig: folder.join("kubeconfig") }
    }

    /// Writes the files that never change.
    pub(super) fn found(&self, api: &ApiServer, namespace: &str) -> std::io::Result<()> {
        private::make_folder(&self.folder)?;
        private::replace(&self.folder.join("ca.crt"), &api.ca)?;
        private::replace(&self.folder.join("namespace"), namespace)?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "pod",
            "contexts": [{"name": "pod", "context": {"cluster": "local", "user": "pod", "namespace": namespace}}],
            "clusters": [{"name": "local", "cluster": {
                "server": format!("https://{}:{}", bracketed(&api.host), api.port),
                "certificate-authority": self.folder.join("ca.crt"),
            }}],
            "users": [{"name": "pod", "user": {"tokenFile": self.folder.join("token")}}],
        });
        private::replace(&self.kubeconfig, &config.to_string())
    }

    pub(super) fn renew(&self, token: &str) -> std::io::Result<()> {
        private::replace(&self.folder.join("token"), token)
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}
