//! Issues the webhook's own certificates, shares them between replicas in a Secret, and keeps the `caBundle` of the
//! webhook configuration up to date.
//!
//! Replicas are equal: each reads the Secret, renews what is due, and updates it with the resourceVersion that it read. If two
//! renew at once, one gets a conflict and reads what the other wrote.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use admit_apimachinery::go;
use k8s_openapi::ByteString;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource};
use rustls::ServerConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::conversion::DEFINITIONS;
use super::super::process::Fault;
use super::certificates::{Callers, Told, same};
use crate::admission::tls::{Lives, Managed, Renewal, WebhookTls, write_private};
use crate::cli::sources::changes::Changes;
use crate::outside;
use crate::telemetry::with_causes;

/// The most renewals and conflicts in one round; more would be a bug.
const ROUNDS: usize = 8;

/// The names that certificates are issued for, and where they are stored.
#[derive(Clone)]
pub(super) struct SelfSigned {
    pub(super) service: String,
    pub(super) namespace: String,
    /// The name of the Secret, in the same namespace.
    pub(super) secret: String,
    /// The name of the webhook configurations whose `caBundle` is updated.
    pub(super) webhook: String,
    /// A file for the bundle, for callers that are configured by hand.
    pub(super) bundle_file: Option<PathBuf>,
    /// The client of the cluster; without one, certificates live only as long as the process.
    pub(super) client: Option<Client>,
    pub(super) callers: Callers,
}

/// The contents of the Secret, with its resourceVersion.
struct Kept {
    managed: Managed,
    /// None if there is no Secret.
    version: Option<String>,
}

impl SelfSigned {
    /// Returns the current certificates, which are created if there are none.
    ///
    /// # Errors
    /// When the cluster refuses, no certificate can be created, or the client authority cannot be used.
    pub(super) async fn load(&self, known: Managed) -> Result<(Managed, WebhookTls, ServerConfig), Fault> {
        let managed = self.renewed(known).await?;
        if let Some(path) = self.bundle_file.clone() {
            let bundle = managed.bundle.clone();
            // An unchanged file is not rewritten: that would look like a change of the client authority in the same folder.
            let writing = outside::in_time(move || match outside::text(&path, outside::MAX_PEM) {
                Ok(there) if there == bundle => Ok(()),
                _ => write_private(&path, &bundle).map_err(Fault::usage),
            });
            writing.await.map_err(Fault::usage)??;
        }
        let identity = managed.identity().ok_or_else(|| Fault::internal("no certificate was made"))?;
        let tls = self.callers.tls(identity).await?;
        let config = tls
            .config()
            .map_err(|error| self.callers.unusable(&error).unwrap_or_else(|| Fault::internal(error)))?;
        Ok((managed, tls, config))
    }

    async fn renewed(&self, known: Managed) -> Result<Managed, Fault> {
        let mut kept = match &self.client {
            None => Kept { managed: known, version: None },
            Some(client) => self.read(client).await?,
        };
        for _ in 0..ROUNDS {
            let distributed = self.distribute(&kept.managed).await?;
            let now = OffsetDateTime::now_utc();
            let names = self.names();
            match kept.managed.renew(&names, Lives::default(), distributed, now).map_err(Fault::internal)? {
                Renewal::Nothing => return Ok(kept.managed),
                Renewal::Bundle => tracing::info!("a new authority was made"),
                Renewal::Leaf => tracing::info!("a new serving certificate was made"),
            }
            if let Some(client) = &self.client {
                kept = self.write(client, kept).await?;
            }
        }
        Err(Fault::internal("the certificates are renewed again and again"))
    }

    /// Returns the names by which API servers and probes call the Service.
    fn names(&self) -> Vec<String> {
        let Self { service, namespace, .. } = self;
        vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            "localhost".to_owned(),
        ]
    }

    async fn read(&self, client: &Client) -> Result<Kept, Fault> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &self.namespace);
        let found = secrets.get_opt(&self.secret).await.map_err(|error| self.refused("read", &error))?;
        let Some(secret) = found else { return Ok(Kept { managed: Managed::default(), version: None }) };
        let data = secret.data.unwrap_or_default();
        let text = |key: &str| {
            data.get(key).map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
        };
        let managed = Managed {
            bundle: text("ca.crt"),
            authority_key: text("ca.key"),
            certificate: text("tls.crt"),
            key: text("tls.key"),
        };
        Ok(Kept { managed, version: secret.metadata.resource_version })
    }

    /// Writes new certificates, or reads those that another replica wrote in the meantime.
    async fn write(&self, client: &Client, kept: Kept) -> Result<Kept, Fault> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &self.namespace);
        let Managed { bundle, authority_key, certificate, key } = &kept.managed;
        let parts =
            [("ca.crt", bundle), ("ca.key", authority_key), ("tls.crt", certificate), ("tls.key", key)];
        let data: BTreeMap<_, _> =
            parts.map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes()))).into();
        let metadata = ObjectMeta {
            name: Some(self.secret.clone()),
            resource_version: kept.version.clone(),
            ..ObjectMeta::default()
        };
        let secret = Secret {
            metadata,
            data: Some(data),
            // This type requires no keys; types with required keys would reject the Secret before both certificates exist.
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        };
        let params = PostParams::default();
        let written = match kept.version {
            None => secrets.create(&params, &secret).await,
            Some(_) => secrets.replace(&self.secret, &params, &secret).await,
        };
        match written {
            Ok(written) => Ok(Kept { version: written.metadata.resource_version, ..kept }),
            Err(kube::Error::Api(status)) if status.code == 409 => self.read(client).await,
            Err(error) => Err(self.refused("write", &error)),
        }
    }

    /// Writes the bundle to the webhook configurations. True if callers have it: every webhook names it, or there is
    /// no such configuration and so no caller.
    async fn distribute(&self, managed: &Managed) -> Result<bool, Fault> {
        let (Some(client), false) = (&self.client, managed.bundle.is_empty()) else {
            return Ok(!managed.bundle.is_empty());
        };
        self.distribute_to_definitions(client, managed).await?;
        let bundle = ByteString(managed.bundle.clone().into_bytes());
        let refused = |error: kube::Error| {
            let error = with_causes(&error);
            Fault::internal(format!("the webhook configuration `{}` cannot be kept: {error}", self.webhook))
        };
        let mutating = self.keep_bundle(client, |configuration: &mut MutatingWebhookConfiguration| {
            let webhooks = configuration.webhooks.iter_mut().flatten();
            set_bundles(webhooks.map(|webhook| &mut webhook.client_config), &bundle)
        });
        let mutating = match mutating.await {
            // Roles of an earlier installation lack this permission, and it has no such webhook.
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::warn!(
                    why = status.message,
                    "the configuration of mutating webhooks is not looked after"
                );
                true
            }
            kept => kept.map_err(refused)?,
        };
        let validating = self.keep_bundle(client, |configuration: &mut ValidatingWebhookConfiguration| {
            let webhooks = configuration.webhooks.iter_mut().flatten();
            set_bundles(webhooks.map(|webhook| &mut webhook.client_config), &bundle)
        });
        Ok(validating.await.map_err(refused)? && mutating)
    }

    /// Changes a configuration with `set`, which returns whether it changed anything. False after a conflict.
    async fn keep_bundle<C>(&self, client: &Client, set: impl Fn(&mut C) -> bool) -> Result<bool, kube::Error>
    where
        C: Resource<DynamicType = (), Scope = ClusterResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let configurations: Api<C> = Api::all(client.clone());
        let Some(mut configuration) = configurations.get_opt(&self.webhook).await? else { return Ok(true) };
        if !set(&mut configuration) {
            return Ok(true);
        }
        // With the resourceVersion that was read: another writer's change is kept, and the configuration read again.
        match configurations.replace(&self.webhook, &PostParams::default(), &configuration).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes the bundle to the CRDs whose conversion webhook is this Service.
    async fn distribute_to_definitions(&self, client: &Client, managed: &Managed) -> Result<(), Fault> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
        let bundle = go::base64::encode(&managed.bundle);
        for name in DEFINITIONS {
            let kept = async {
                let Some(definition) = definitions.get_opt(name).await? else { return Ok(()) };
                let config = definition.data.pointer("/spec/conversion/webhook/clientConfig");
                let of = |field: &str| config.and_then(|config| config.pointer(field)?.as_str());
                let ours = of("/service/name") == Some(&self.service)
                    && of("/service/namespace") == Some(&self.namespace);
                if ours && of("/caBundle") != Some(&bundle) {
                    let conversion = json!({"webhook": {"clientConfig": {"caBundle": bundle}}});
                    let patch = Patch::Merge(json!({"spec": {"conversion": conversion}}));
                    definitions.patch(name, &PatchParams::default(), &patch).await?;
                }
                Ok(())
            };
            match kept.await {
                Ok(()) => {}
                // Roles of an earlier installation lack this permission; admission continues without it.
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    tracing::warn!(
                        definition = name,
                        why = status.message,
                        "its objects cannot be converted"
                    );
                }
                Err(error) => {
                    let error = with_causes(&error);
                    return Err(Fault::internal(format!("the definition `{name}` cannot be kept: {error}")));
                }
            }
        }
        Ok(())
    }

    fn refused(&self, what: &str, error: &kube::Error) -> Fault {
        let Self { namespace, secret, .. } = self;
        Fault::internal(format!("cannot {what} the Secret `{namespace}/{secret}`: {}", with_causes(error)))
    }
}

/// Sets the bundle in all client configurations; returns whether any had another one.
fn set_bundles<'c>(callers: impl Iterator<Item = &'c mut WebhookClientConfig>, bundle: &ByteString) -> bool {
    let mut changed = false;
    for caller in callers.filter(|caller| caller.ca_bundle.as_ref() != Some(bundle)) {
        caller.ca_bundle = Some(bundle.clone());
        changed = true;
    }
    changed
}

/// Checks again when the client authority changes, and periodically, far more often than certificates are renewed, until
/// `shutdown`. Errors are logged, and the current certificates stay in use. `current` is the initial value of `sender`.
pub(super) async fn keep(
    source: SelfSigned,
    mut managed: Managed,
    mut current: WebhookTls,
    sender: watch::Sender<Arc<ServerConfig>>,
    told: Told,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let Told { metrics, .. } = &told;
    let mut changes = Changes::of(source.callers.authority.as_deref()).await;
    loop {
        told.tell(&current);
        let loading = async {
            changes.next().await;
            source.load(managed.clone()).await
        };
        let Some(loaded) = shutdown.run_until_cancelled(loading).await else { return Ok(()) };
        match loaded {
            Ok((renewed, tls, config)) => {
                if !same(&tls, &current) {
                    sender.send_replace(Arc::new(config));
                    metrics.reload("certificate", true);
                }
                (managed, current) = (renewed, tls);
            }
            Err(fault) => {
                metrics.reload("certificate", false);
                tracing::error!(error = %fault, "certificates cannot be renewed; those in use stay");
            }
        }
    }
}
