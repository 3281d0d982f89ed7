//! First stage: reads everything that the plan depends on, once. The only stage that reads the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};

use super::crd::{ImageStream, MustGather};
use super::job::{self, JobView, place};
use super::service::PodSeen;
use super::{Context, Error};
use crate::controllers::kit::clock::whole_seconds;
use crate::controllers::kit::pods::Hindrance;
use crate::gather::cluster::{self, Names, names};
use crate::gather::tunnel::Proxies;
use crate::gather::upload::sftp::Credentials;

/// One MustGather and the objects that its plan depends on.
#[derive(Debug)]
pub struct Fetched {
    pub object: MustGather,
    pub job: JobView,
    /// Why its Pod cannot start, if it cannot.
    pub hindrance: Option<Hindrance>,
    /// The inputs of a new Job; read only if one is to be created.
    pub inputs: Option<Inputs>,
    /// The current time in whole seconds, as the API stores times.
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Whether the account of the Job exists.
    pub account: bool,
    /// The Secret for the upload; None without an upload.
    pub secret: Option<SecretView>,
    /// The proxies in the cluster's Proxy object.
    pub cluster: Proxies,
    /// The obfuscation; None without one.
    pub hiding: Option<ObfuscationView>,
    /// The image that the object names.
    pub image: Option<Result<String, ImageError>>,
}

/// The obfuscation settings from objects of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ObfuscationView {
    /// The rules as text.
    pub rules: Option<Result<String, MissingRules>>,
    /// The cluster's domains; an error message if they cannot be determined.
    pub domains: Result<Vec<String>, String>,
}

/// Why an ImageStream provides no image.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ImageError {
    #[error("there is no ImageStream {namespace}/{name}")]
    NotFound { namespace: String, name: String },
    #[error("ImageStream {namespace}/{name} has no image of tag {tag}")]
    MissingTag { namespace: String, name: String, tag: String },
}

/// Configured rules that do not exist yet.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MissingRules {
    #[error("there is no ConfigMap {0} with rules of obfuscation: it is waited for")]
    ConfigMap(String),
    #[error("ConfigMap {0} has no key {RULES}: it is waited for")]
    Key(String),
}

/// The key of a ConfigMap with the rules.
const RULES: &str = "config.yaml";

/// The Secret with the credentials, reduced to what the plan needs.
#[derive(Clone, Debug)]
pub enum SecretView {
    Missing,
    /// This key is missing, empty, or not text.
    Lacks(&'static str),
    Whole(Login),
}

impl PartialEq for SecretView {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) => true,
            (Self::Lacks(one), Self::Lacks(two)) => one == two,
            (Self::Whole(one), Self::Whole(two)) => one.known_hosts == two.known_hosts,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Login {
    pub credentials: Credentials,
    pub known_hosts: Option<String>,
}

/// Reads everything that the plan depends on. For an object that is being deleted nothing is read: the clean-up,
/// which has a time limit, finds what it has to remove.
///
/// # Errors
/// [`Error::Api`] when an object cannot be read.
pub async fn fetch(context: &Context, object: &MustGather) -> Result<Fetched, Error> {
    let uid = object.uid().unwrap_or_default();
    let leaves = object.metadata.deletion_timestamp.is_some();
    let (namespace, name) = place(object, context.settings.rules.job_namespace.as_deref());
    let long = name.len() > job::MAX_NAME;
    let found = if long || leaves { None } else { existing(context, object, &namespace, &name).await? };
    let job = job::view(found.as_ref(), &uid);
    let hindrance = match &found {
        Some(found) if job == JobView::Active && !object.has_ended() => hindered(context, found),
        _ => None,
    };
    let begins = job == JobView::Missing && !object.has_ended() && !leaves;
    let inputs = if begins { Some(inputs(context, object, &namespace).await?) } else { None };
    let now = whole_seconds(context.settings.clock.now());
    Ok(Fetched { object: object.clone(), job, hindrance, inputs, now })
}

/// Returns the Job from the watch. If the watch has no Job of this object, or a foreign one with the name, the server is
/// queried. For an object that has ended no Job is created any more, so the watch is enough.
async fn existing(
    context: &Context,
    object: &MustGather,
    namespace: &str,
    name: &str,
) -> Result<Option<Job>, Error> {
    let uid = object.uid().unwrap_or_default();
    match context.known.jobs.get(namespace, name).filter(|job| job::is_of(&job.metadata, &uid)) {
        Some(job) => Ok(Some(job)),
        None if object.has_ended() => Ok(None),
        None => {
            let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
            Ok(jobs.get_opt(name).await?)
        }
    }
}

/// Returns why the Pod of a Job cannot start, as far as its status says; None if the Job has a ready Pod.
fn hindered(context: &Context, job: &Job) -> Option<Hindrance> {
    let ready = job.status.as_ref().and_then(|status| status.ready).unwrap_or(0);
    if ready > 0 {
        return None;
    }
    let uid = job.uid()?;
    let of_job = |pod: &PodSeen| pod.hindrance.clone().filter(|_| pod.job == uid);
    context.known.pods.find(&job.namespace().unwrap_or_default(), of_job)
}

async fn inputs(context: &Context, object: &MustGather, namespace: &str) -> Result<Inputs, Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(context.client.clone(), namespace);
    let account = accounts.get_metadata_opt(object.spec.account()).await?.is_some();
    let secret = match object.spec.sftp() {
        None => None,
        Some(sftp) => {
            let secrets: Api<Secret> =
                Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
            let secret = secrets.get_opt(&sftp.case_management_account_secret_ref.name).await?;
            Some(secret.map_or(SecretView::Missing, |secret| view(&secret)))
        }
    };
    let hiding = match object.spec.obfuscation() {
        None => None,
        Some(obfuscate) => Some(hiding(context, object, obfuscate.rules()).await?),
    };
    let image = match &object.spec.image_stream_ref {
        None => None,
        Some(stream) => Some(image(context, namespace, stream).await?),
    };
    Ok(Inputs { account, secret, cluster: cluster::proxies(&context.client).await?, hiding, image })
}

async fn hiding(context: &Context, object: &MustGather, map: Option<&str>) -> Result<ObfuscationView, Error> {
    let maps: Api<ConfigMap> =
        Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    let rules = match map {
        None => None,
        Some(name) => Some(match maps.get_opt(name).await? {
            None => Err(MissingRules::ConfigMap(name.to_owned())),
            Some(map) => match map.data.and_then(|mut data| data.remove(RULES)) {
                None => Err(MissingRules::Key(name.to_owned())),
                Some(text) => Ok(text),
            },
        }),
    };
    let domains = match names(&context.client).await {
        Ok(Names { base_domain, api_host }) => Ok(api_host.into_iter().chain(base_domain).collect()),
        Err(error) => Err(error.to_string()),
    };
    Ok(ObfuscationView { rules, domains })
}

/// Returns the newest image of a tag. A cluster without that kind has no ImageStreams.
async fn image(
    context: &Context,
    namespace: &str,
    stream: &ImageStream,
) -> Result<Result<String, ImageError>, Error> {
    let ImageStream { name, tag } = stream;
    let kind = GroupVersionKind::gvk("image.openshift.io", "v1", "ImageStream");
    let resource = ApiResource::from_gvk_with_plural(&kind, "imagestreams");
    let streams: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), namespace, &resource);
    let found = match streams.get(name).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            return Ok(Err(ImageError::NotFound { namespace: namespace.to_owned(), name: name.clone() }));
        }
        Err(error) => return Err(error.into()),
    };
    let tags = found.data.pointer("/status/tags").and_then(|tags| tags.as_array());
    let mut tags = tags.into_iter().flatten();
    let of_tag = tags.find(|one| one.get("tag").and_then(|name| name.as_str()) == Some(tag));
    let image = of_tag.and_then(|one| one.pointer("/items/0/dockerImageReference")?.as_str());
    let (namespace, name, tag) = (namespace.to_owned(), name.clone(), tag.clone());
    Ok(image.map(str::to_owned).ok_or(ImageError::MissingTag { namespace, name, tag }))
}

fn view(secret: &Secret) -> SecretView {
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    let text = |key: &str| {
        let value = data.get(key).and_then(|value| String::from_utf8(value.0.clone()).ok());
        value.filter(|value| !value.is_empty())
    };
    let Some(username) = text("username") else { return SecretView::Lacks("username") };
    let Some(password) = text("password") else { return SecretView::Lacks("password") };
    let credentials = Credentials { username, password };
    SecretView::Whole(Login { credentials, known_hosts: text("known_hosts") })
}
