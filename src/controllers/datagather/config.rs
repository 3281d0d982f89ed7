//! Reads the cluster's configuration of this controller, which overrides its flags: the Secret `support` of
//! openshift-config, overridden by the ConfigMap `insights-config` of the controller's namespace. It is read whenever it is
//! needed, so that a change needs no restart. Proxies are configured there as well; each missing value comes
//! from the cluster's Proxy object, or else from environment variables.
//!
//! An invalid value is reported and ignored: the layer below it applies.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use admit_apimachinery::yaml;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::Value;

use super::settings::Settings;
use crate::gather::cluster;
use crate::gather::tunnel::{Proxies, Proxy};
use crate::gather::upload::{EndpointError, Endpoints, Template, VersionTemplate};
use crate::telemetry::{Outside, Secrets, with_causes};

pub(super) const SUPPORT: (&str, &str) = ("openshift-config", "support");
pub(super) const OWN: &str = "insights-config";
/// The shortest interval of periodic gatherings: each requests everything from the API server.
pub const SHORTEST: Duration = Duration::from_mins(10);
/// The longest interval, a year: a longer one is probably a wrong unit.
pub const LONGEST: Duration = Duration::from_hours(366 * 24);
/// The largest configuration text, whose keys take some hundred bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The cluster's configuration cannot be read, so it is unknown whether it requires obfuscation.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}: {}", with_causes(source))]
pub struct ConfigError {
    what: String,
    #[source]
    source: Box<kube::Error>,
}

/// The effective configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The interval of periodic gatherings; None if there are none.
    pub every: Option<Duration>,
    /// Whether to obfuscate regardless of a DataGather's policy.
    pub obfuscate: bool,
    /// The URL that archives are uploaded to.
    pub upload: Option<String>,
    pub status: Option<Template>,
    pub report: Option<Template>,
    /// The URL of the remote configuration.
    pub remote: Option<VersionTemplate>,
    /// Whether not to query the agents on nodes about running containers.
    pub no_agents: bool,
    /// The proxies for requests to the service.
    pub proxies: Proxies,
    /// Values that are ignored, with the reasons.
    pub refused: Vec<String>,
}

impl Config {
    /// Reads the current configuration.
    ///
    /// # Errors
    /// [`ConfigError`] when an object may exist and cannot be read.
    pub(super) async fn read(client: &Client, settings: &Settings) -> Result<Self, ConfigError> {
        let mut config = Self::of(settings);
        if !settings.follow_cluster {
            config.take_proxies(&Proxies::default(), &settings.proxies);
            return Ok(config);
        }
        let (namespace, name) = SUPPORT;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = found(secrets.get(name).await, || format!("Secret {namespace}/{name}"))?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
        let map = found(maps.get(OWN).await, || format!("ConfigMap {}/{OWN}", settings.namespace))?;

        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let data = data.into_iter().filter_map(|(key, value)| Some((key, text(value.0)?))).collect();
        config.take_secret(&data);
        if let Some(text) = map.and_then(|map| map.data?.remove("config.yaml")) {
            config.take_map(&text, &settings.namespace);
        }
        // Only uploads need proxies.
        let cluster = match config.upload {
            Some(_) => found(cluster::proxies(client).await, || "the Proxy `cluster`".to_owned())?,
            None => None,
        };
        config.take_proxies(&cluster.unwrap_or_default(), &settings.proxies);
        Ok(config)
    }

    /// Fills missing proxy settings from the cluster's Proxy object, and from this process' environment.
    fn take_proxies(&mut self, cluster: &Proxies, process: &Proxies) {
        let own = std::mem::take(&mut self.proxies);
        let mut below = Layer { config: self, name: "Proxy cluster".to_owned() };
        below.proxies([
            ("httpProxy", &cluster.http),
            ("httpsProxy", &cluster.https),
            ("noProxy", &cluster.none),
        ]);
        self.proxies = Proxies::layered([&own, &self.proxies, process]);
        if self.upload.is_some() && self.proxies.https.is_empty() && !self.proxies.http.is_empty() {
            self.refused.push(
                "httpProxy: uploads go to https://, and it leads to http:// alone: set httpsProxy as well"
                    .to_owned(),
            );
        }
    }

    /// Returns the configuration of the flags.
    fn of(settings: &Settings) -> Self {
        Self {
            every: settings.gather_every,
            obfuscate: settings.obfuscation.always,
            upload: settings.upload.as_ref().map(|upload| upload.url.clone()),
            status: settings.upload.as_ref().and_then(|upload| upload.status.clone()),
            remote: settings.remote.clone(),
            no_agents: settings.agents.is_none(),
            ..Self::default()
        }
    }

    fn take_secret(&mut self, data: &BTreeMap<String, String>) {
        let of = |key: &str| data.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut layer = Layer { config: self, name: format!("Secret {}/{}", SUPPORT.0, SUPPORT.1) };
        layer.interval("interval", of("interval"));
        layer.endpoint("endpoint", of("endpoint"));
        layer.template("processingStatusEndpoint", of("processingStatusEndpoint"), |config| {
            &mut config.status
        });
        layer.template("reportEndpointTechPreview", of("reportEndpointTechPreview"), |config| {
            &mut config.report
        });
        layer.template("conditionalGathererEndpoint", of("conditionalGathererEndpoint"), |config| {
            &mut config.remote
        });
        match of("enableGlobalObfuscation") {
            Some("true" | "True" | "TRUE" | "1" | "t" | "T") => layer.config.obfuscate = true,
            None | Some("false" | "False" | "FALSE" | "0" | "f" | "F") => {}
            // An invalid value counts as true: hiding too much is the smaller mistake.
            Some(_) => {
                layer.config.obfuscate = true;
                layer.refuse("enableGlobalObfuscation", "it is neither true nor false, and taken for true");
            }
        }
        layer.proxies(["httpProxy", "httpsProxy", "noProxy"].map(|key| (key, of(key).unwrap_or_default())));
    }

    fn take_map(&mut self, text: &str, namespace: &str) {
        let mut layer = Layer { config: self, name: format!("ConfigMap {namespace}/{OWN}") };
        let parsed = (text.len() <= MAX_TEXT).then(|| yaml::parse_values(text).ok()).flatten();
        let parsed = parsed.and_then(|mut trees| {
            let last = trees.pop();
            last.filter(|tree| trees.is_empty() && tree.duplicates.is_empty())
        });
        let Some(values) = parsed.map(|tree| tree.value).filter(Value::is_object) else {
            layer.config.obfuscate = true;
            return layer.refuse(
                "config.yaml",
                "it cannot be read; it might ask for obfuscation, which is done until it can",
            );
        };
        let of = |pointer: &str| match values.pointer(pointer) {
            Some(Value::String(text)) => Some(text.trim()).filter(|text| !text.is_empty()),
            _ => None,
        };
        layer.interval("dataReporting.interval", of("/dataReporting/interval"));
        layer.endpoint("dataReporting.uploadEndpoint", of("/dataReporting/uploadEndpoint"));
        layer.template(
            "dataReporting.processingStatusEndpoint",
            of("/dataReporting/processingStatusEndpoint"),
            |config| &mut config.status,
        );
        layer.template(
            "dataReporting.downloadEndpointTechPreview",
            of("/dataReporting/downloadEndpointTechPreview"),
            |config| &mut config.report,
        );
        layer.template(
            "dataReporting.conditionalGathererEndpoint",
            of("/dataReporting/conditionalGathererEndpoint"),
            |config| &mut config.remote,
        );
        if values.pointer("/dataReporting/disableRuntimeExtractor") == Some(&Value::Bool(true)) {
            layer.config.no_agents = true;
        }
        layer.obfuscation(values.pointer("/dataReporting/obfuscation"));
        if of("/dataReporting/storagePath").is_some() {
            layer.refuse("dataReporting.storagePath", "where archives lie is said with --archive-dir");
        }
        layer.proxies(
            [
                ("proxy.httpProxy", "/proxy/httpProxy"),
                ("proxy.httpsProxy", "/proxy/httpsProxy"),
                ("proxy.noProxy", "/proxy/noProxy"),
            ]
            .map(|(key, pointer)| (key, of(pointer).unwrap_or_default())),
        );
    }
}

/// Returns an object if it exists.
fn found<K>(read: Result<K, kube::Error>, what: impl FnOnce() -> String) -> Result<Option<K>, ConfigError> {
    match read {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(ConfigError { what: what(), source: Box::new(source) }),
    }
}

/// A layer that overrides the configuration so far.
struct Layer<'c> {
    config: &'c mut Config,
    name: String,
}

impl Layer<'_> {
    fn refuse(&mut self, key: &str, why: impl AsRef<str>) {
        // The value may be a URL with a login.
        let why = Outside::of(why.as_ref(), &Secrets::default());
        self.config.refused.push(format!("{}: {key}: {why}", self.name));
    }

    fn interval(&mut self, key: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        let parsed = text.parse::<SignedDuration>().ok().and_then(|every| Duration::try_from(every).ok());
        match parsed {
            None => self.refuse(key, format!("`{text}` is no duration such as 2h or 90m")),
            Some(every) if every < SHORTEST => self.refuse(key, format!("`{text}` is less than 10m")),
            Some(every) if every > LONGEST => self.refuse(key, format!("`{text}` is more than a year")),
            // If flags disable periodic gatherings, they stay disabled: another program may be responsible for them.
            Some(every) => self.config.every = self.config.every.map(|_| every),
        }
    }

    fn endpoint(&mut self, key: &str, url: Option<&str>) {
        let Some(url) = url else { return };
        match Endpoints::new(url, None, "") {
            Ok(_) => self.config.upload = Some(url.to_owned()),
            Err(error) => self.refuse(key, error.to_string()),
        }
    }

    /// Sets the proxies for http and https and the list of exceptions, each with the name of its key; empty means unset.
    fn proxies(&mut self, values: [(&str, &str); 3]) {
        let [http, https, (_, none)] = values;
        for ((key, url), of) in [
            (http, (|proxies| &mut proxies.http) as fn(&mut Proxies) -> &mut String),
            (https, |proxies| &mut proxies.https),
        ] {
            match Proxy::check(url) {
                _ if url.is_empty() => {}
                Ok(()) => url.clone_into(of(&mut self.config.proxies)),
                Err(error) => self.refuse(key, error.to_string()),
            }
        }
        if !none.is_empty() {
            none.clone_into(&mut self.config.proxies.none);
        }
    }

    fn template<T: FromStr<Err = EndpointError>>(
        &mut self,
        key: &str,
        text: Option<&str>,
        of: fn(&mut Config) -> &mut Option<T>,
    ) {
        let Some(text) = text else { return };
        match text.parse() {
            Ok(template) => *of(self.config) = Some(template),
            Err(error) => self.refuse(key, format!("{error}")),
        }
    }

    fn obfuscation(&mut self, wanted: Option<&Value>) {
        for item in wanted.and_then(Value::as_array).into_iter().flatten() {
            match item.as_str() {
                Some("networking") => self.config.obfuscate = true,
                Some("workload_names") => {
                    self.refuse("dataReporting.obfuscation", "names of workloads cannot be hidden");
                }
                _ => self.refuse("dataReporting.obfuscation", format!("{item} is not known")),
            }
        }
        if wanted.is_some_and(|wanted| !wanted.is_array() && !wanted.is_null()) {
            self.refuse("dataReporting.obfuscation", "it is not a list");
        }
    }
}

#[cfg(test)]
mod tests;
