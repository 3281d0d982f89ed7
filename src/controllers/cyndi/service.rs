//! Sets up the two controllers of CyndiPipelines and their watches.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::Store;
use kube::runtime::watcher::Config as Selected;
use kube::{Api, Client, ResourceExt};

use super::config::{CONFIG_MAP, GLOBAL_NAMESPACE};
use super::connector::OWNER;
use super::crd::CyndiPipeline;
use super::database::Pools;
use super::pipeline_controller::Pipelines;
use super::secret_refs::SecretRefs;
use super::settings::Settings;
use super::state::VALID;
use super::strimzi;
use super::validation_controller::Validating;
use super::{Context, Counts, FINALIZER};
use crate::controllers::kit::controller::{Controller, Surroundings};
use crate::controllers::kit::definition::Definition;
use crate::controllers::kit::events::Events;
use crate::controllers::kit::key::Key;
use crate::controllers::kit::manager::{Member, Term};
use crate::controllers::kit::operator::Operator;

/// The names of the two controllers.
pub const NAME: &str = "cyndi";
pub const VALIDATION: &str = "cyndi-validation";
const EVENTS: &str = "admit-cyndi";

type Objects = Store<DeserializeGuard<CyndiPipeline>>;

/// Creates both controllers as members of a manager. They share database connections and metrics.
#[must_use]
pub fn members(client: &Client, settings: &Settings) -> [Member; 2] {
    let (pools, counts, uses) =
        (Arc::new(Pools::behind(settings.fence.clone())), Counts::default(), SecretRefs::default());
    let making = {
        let (client, settings) = (client.clone(), settings.clone());
        let (counts, uses) = (counts.clone(), uses.clone());
        move |objects: Objects| {
            let context = Context {
                client: client.clone(),
                settings: settings.clone(),
                events: Events::new(client.clone(), EVENTS),
                counts: counts.clone(),
                pools: Arc::clone(&pools),
                uses: uses.clone(),
                connectors: settings.connectors(&client),
                objects,
            };
            Arc::new(context)
        }
    };
    let needs = || vec![Definition::of::<CyndiPipeline>()];
    let (own, told, make, used) = (client.clone(), settings.clone(), making.clone(), uses.clone());
    let pipelines = Member::new(NAME, client.clone(), needs(), move |term: Term| {
        let controller = pipelines(&own, &told, &used);
        let context = make(controller.store());
        let around = Surroundings::of(&term, context.events.clone());
        async move {
            controller.run(Arc::new(Pipelines(context)), around, term.stop).await;
            Ok::<_, Infallible>(())
        }
    });
    let own = client.clone();
    let validation = Member::new(VALIDATION, client.clone(), needs(), move |term: Term| {
        let controller = validation(&own).wakes(uses.changes());
        let context = making(controller.store());
        let around = Surroundings::of(&term, context.events.clone());
        async move {
            controller.run(Arc::new(Validating(context)), around, term.stop).await;
            Ok::<_, Infallible>(())
        }
    });
    let operator = Operator::new(EVENTS).relating("cyndi.cloud.redhat.com", "cyndipipelines");
    [pipelines.counting(|registry| counts.register(registry)).reporting(operator), validation]
}

fn pipelines(client: &Client, settings: &Settings, uses: &SecretRefs) -> Controller<CyndiPipeline> {
    let objects: Api<DeserializeGuard<CyndiPipeline>> = Api::all(client.clone());
    let maps: Api<PartialObjectMeta<ConfigMap>> = Api::all(client.clone());
    let secrets: Api<PartialObjectMeta<Secret>> = Api::all(client.clone());
    let uses = uses.clone();
    let controller = Controller::new(NAME, objects, Selected::default())
        .when(moved)
        .watches(maps, Selected::default().fields(&format!("metadata.name={CONFIG_MAP}")), configured)
        .watches(secrets, Selected::default(), move |secret, _| {
            uses.changed(&secret.namespace().unwrap_or_default(), &secret.name_any())
        });
    if settings.connect.is_some() {
        return controller;
    }
    let store = controller.store();
    let connectors = strimzi::changes(client.clone());
    controller.wakes(connectors.flat_map(move |connector| stream::iter(owners(&connector, &store))))
}

fn validation(client: &Client) -> Controller<CyndiPipeline> {
    let objects: Api<DeserializeGuard<CyndiPipeline>> = Api::all(client.clone());
    Controller::new(VALIDATION, objects, Selected::default()).when(begun)
}

/// Returns a hash of what the pipeline controller reacts to: the spec, the deletion, and the result of validation.
fn moved(object: &CyndiPipeline) -> Option<u64> {
    let status = object.status.as_ref();
    let valid = status.and_then(|status| status.conditions.iter().find(|it| it.type_ == VALID));
    let mut hash = DefaultHasher::new();
    object.metadata.generation.hash(&mut hash);
    object.finalizers().iter().any(|name| name == FINALIZER).hash(&mut hash);
    object.metadata.deletion_timestamp.is_some().hash(&mut hash);
    status.map(|status| (&status.pipeline_version, status.validation_failed_count)).hash(&mut hash);
    valid.map(|valid| &valid.status).hash(&mut hash);
    Some(hash.finish())
}

/// Returns a hash of what the validation controller reacts to: the spec, and a new version. Its own writes do not matter.
fn begun(object: &CyndiPipeline) -> Option<u64> {
    let mut hash = DefaultHasher::new();
    object.metadata.generation.hash(&mut hash);
    object.status.as_ref().map(|status| &status.pipeline_version).hash(&mut hash);
    Some(hash.finish())
}

/// Returns the pipelines that a ConfigMap configures; all for the global one.
fn configured(map: &PartialObjectMeta<ConfigMap>, objects: &Objects) -> Vec<Key> {
    let namespace = map.namespace();
    let all = namespace.as_deref() == Some(GLOBAL_NAMESPACE);
    let found = objects.state();
    let concerned = found.iter().filter(|object| all || object.namespace() == namespace);
    concerned.map(|object| Key::of(object.as_ref())).collect()
}

fn owners(connector: &ObjectMeta, objects: &Objects) -> Vec<Key> {
    let Some(owner) = connector.labels.as_ref().and_then(|labels| labels.get(OWNER)) else {
        return Vec::new();
    };
    let found = objects.state();
    let own = found.iter().filter(|object| object.uid().as_ref() == Some(owner));
    own.map(|object| Key::of(object.as_ref())).collect()
}
