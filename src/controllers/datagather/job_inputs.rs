//! Prepares the inputs of a gathering Job: the cluster's configuration as flags; the upload token and the proxies, which may
//! contain a login, in a Secret; and the trusted authorities in a ConfigMap. So the Job's account needs neither
//! permissions for the original objects nor a network to find them.
//!
//! Secret and ConfigMap are named after the uid of the DataGather, which owns them, and are deleted with it.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::config::{Config, ConfigError};
use super::crd::DataGather;
use super::settings::INTERVAL;
use super::{Context, Error};
use crate::gather::tunnel::Proxies;
use crate::gather::upload::TokenError;
use crate::outside::{self, MAX_PEM, Unreadable};
use crate::telemetry::with_causes;

const TOKEN: (&str, &str) = ("upload-token", "/var/run/secrets/upload");
const CA: (&str, &str) = ("upload-ca", "/var/run/configmaps/upload-ca");
const TOKEN_KEY: &str = "token";
const CA_KEY: &str = "ca-bundle.crt";
/// The key of the authorities for TLS proxies.
const PROXY_CA_KEY: &str = "proxy-ca.crt";
/// Environment variables of a Job's container, and the keys of the Secret with their values: all exist, and unset ones are empty.
const PROXIES: [(&str, &str); 3] =
    [("HTTP_PROXY", "httpProxy"), ("HTTPS_PROXY", "httpsProxy"), ("NO_PROXY", "noProxy")];
/// ConfigMaps in the controller's namespace with authorities that a Job trusts if they exist, and their keys.
const TRUSTED: [(&str, &str); 2] = [("service-ca-bundle", "service-ca.crt"), ("trusted-ca-bundle", CA_KEY)];

/// The inputs of one Job.
#[derive(Debug)]
pub struct JobInputs {
    pub(super) args: Vec<String>,
    /// The interval of gatherings.
    pub(super) interval: Duration,
    token: Option<String>,
    ca: Option<String>,
}

impl Default for JobInputs {
    fn default() -> Self {
        Self { args: Vec::new(), interval: INTERVAL, token: None, ca: None }
    }
}

/// Why no Job can be created for a DataGather.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unready {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("cannot read the authorities in {what}: {why}")]
    Ca { what: String, why: String },
}

impl JobInputs {
    /// Returns the environment variables with values from the Secret.
    pub(super) fn variables(&self) -> Vec<Value> {
        let of = |secret: &String| {
            PROXIES.map(|(name, key)| {
                json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
            })
        };
        self.token.iter().flat_map(of).collect()
    }

    pub(super) fn volumes(&self, archives: Value) -> Vec<Value> {
        let items = json!([{"key": TOKEN_KEY, "path": TOKEN_KEY}]);
        let token = self
            .token
            .as_ref()
            .map(|name| json!({"name": TOKEN.0, "secret": {"secretName": name, "items": items}}));
        let ca = self.ca.as_ref().map(|name| json!({"name": CA.0, "configMap": {"name": name}}));
        [Some(archives), token, ca].into_iter().flatten().collect()
    }

    pub(super) fn mounts(&self, archives: Value) -> Vec<Value> {
        let mount = |(name, path): (&str, &str)| json!({"name": name, "mountPath": path, "readOnly": true});
        let (token, ca) = (self.token.as_ref().map(|_| mount(TOKEN)), self.ca.as_ref().map(|_| mount(CA)));
        [Some(archives), token, ca].into_iter().flatten().collect()
    }
}

/// Creates the objects that the Job of `object` reads. Existing ones stay unchanged.
///
/// # Errors
/// [`Error::Api`] when an object cannot be created. The inner error says why there can be no Job.
pub(super) async fn hand(
    context: &Context,
    object: &DataGather,
) -> Result<Result<JobInputs, Unready>, Error> {
    let config = match context.run_context.config().await {
        Ok(config) => config,
        Err(error) => return Ok(Err(error.into())),
    };
    let mut handed = JobInputs {
        args: flags(&config),
        interval: config.every.unwrap_or(INTERVAL),
        ..JobInputs::default()
    };
    let Some(url) = &config.upload else { return Ok(Ok(handed)) };
    handed.args.push(format!("--upload-url={url}"));
    let name = format!("gather-{}", object.uid().unwrap_or_default());
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    if let Some(source) = context.run_context.token(&config) {
        let token = match source.read().await {
            Ok(token) => token,
            Err(error) => return Ok(Err(error.into())),
        };
        let Proxies { http, https, none } = &config.proxies;
        let keys = PROXIES.map(|(_, key)| key).into_iter().chain([TOKEN_KEY]);
        let values = [http, https, none]
            .map(|value| value.clone().into_bytes())
            .into_iter()
            .chain([token.into_bytes()]);
        let data = keys.map(str::to_owned).zip(values.map(ByteString)).collect();
        put(context, &Secret { metadata: metadata.clone(), data: Some(data), ..Secret::default() }).await?;
        handed.args.push(format!("--upload-token-file={}/{TOKEN_KEY}", TOKEN.1));
        handed.token = Some(name.clone());
    }
    let bundles = match authorities(context).await {
        Ok(bundles) => bundles,
        Err(error) => return Ok(Err(error)),
    };
    if !bundles.is_empty() {
        handed.args.extend(bundles.iter().map(|(flag, key, _)| format!("{flag}={}/{key}", CA.1)));
        let data = bundles.into_iter().map(|(_, key, text)| (key.to_owned(), text)).collect();
        put(context, &ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }).await?;
        handed.ca = Some(name);
    }
    Ok(Ok(handed))
}

/// Returns the configuration as flags. The Job does not read it again.
fn flags(config: &Config) -> Vec<String> {
    let status = config.status.as_ref().map(|template| format!("--processing-status-url={template}"));
    let remote = config.remote.as_ref().map(|template| format!("--remote-configuration-url={template}"));
    let obfuscate = config.obfuscate.then(|| "--obfuscate-always".to_owned());
    let no_agents = config.no_agents.then(|| "--no-runtime-info".to_owned());
    let configured = ["--configured".to_owned()].into_iter();
    configured.chain(obfuscate).chain(no_agents).chain(status).chain(remote).collect()
}

/// A flag of the Job, its key in the ConfigMap, and the authorities.
type Bundle = (&'static str, &'static str, String);

/// Returns the authorities for the service and for proxies: those of the files that this process trusts, and for both those of the
/// ConfigMaps in the controller's namespace.
async fn authorities(context: &Context) -> Result<Vec<Bundle>, Unready> {
    let settings = context.settings();
    let mut shared = Vec::new();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &settings.namespace);
    for (name, key) in TRUSTED {
        let what = format!("ConfigMap {}/{name}", settings.namespace);
        let map = maps.get_opt(name).await;
        let map = map.map_err(|error| Unready::Ca { what, why: with_causes(&error) })?;
        shared.extend(map.and_then(|map| map.data?.remove(key)).filter(|text| !text.trim().is_empty()));
    }
    let mut bundles = Vec::new();
    let own = settings.upload.as_ref().and_then(|upload| upload.ca.clone());
    for (flag, key, file) in
        [("--upload-ca", CA_KEY, own), ("--proxy-ca", PROXY_CA_KEY, settings.proxy_ca.clone())]
    {
        let file = match file {
            Some(path) => Some(read(path).await?),
            None => None,
        };
        let text = file.iter().chain(&shared).map(String::as_str).collect::<Vec<_>>().join("\n");
        bundles.extend((!text.is_empty()).then_some((flag, key, text)));
    }
    Ok(bundles)
}

async fn read(path: PathBuf) -> Result<String, Unready> {
    let what = path.display().to_string();
    let read = outside::in_time(move || outside::text(&path, MAX_PEM)).await.and_then(|text| text);
    let read = read.map_err(Unreadable::into_io);
    read.map_err(|error| Unready::Ca { what, why: error.to_string() })
}

async fn put<K>(context: &Context, object: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let api: Api<K> = Api::namespaced(context.client.clone(), &context.settings().namespace);
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(error) => Err(error.into()),
    }
}
