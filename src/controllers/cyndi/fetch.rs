//! First stage: reads what a pipeline depends on, in the order in which missing parts are reported: configuration,
//! Secrets, database, connectors.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::{Api, ResourceExt};

use super::config::{CONFIG_MAP, Config, GLOBAL_NAMESPACE, spec_hash};
use super::connect::Connect;
use super::connector::{Login, Wanted};
use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::database::{Credentials, Database};
use super::plan::Seen;
use super::{Context, Error};
use crate::controllers::kit::key::Key;

/// A pipeline with what its plan depends on.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) seen: Seen,
    pub(super) app: Database,
    pub(super) login: Login,
    /// The login for the inventory; None for a pipeline that is being deleted.
    pub(super) inventory: Option<Credentials>,
}

pub(super) async fn fetch(context: &Context, object: &CyndiPipeline) -> Result<Fetched, Error> {
    let config = configuration(context, object).await?;
    let of_app = context.credentials(object, &object.spec.db_secret()).await?;
    let inventory = if object.metadata.deletion_timestamp.is_none() {
        Some(context.credentials(object, &config.inventory_secret).await?)
    } else {
        None
    };
    let mut app = context.pools.open(&of_app, &config).await.map_err(Error::App)?;
    let (tables, view) = (app.tables().await.map_err(Error::App)?, app.view().await.map_err(Error::App)?);
    let login = login(context, of_app);
    let owner = object.uid().unwrap_or_default();
    let version = object.status.as_ref().and_then(CyndiPipelineStatus::version);
    let managed = object.spec.managed_connectors;
    if let Some((namespace, name)) = context.settings.connect.as_ref().and_then(Connect::secret) {
        context.uses.note(Key::of(object), namespace, name);
    }
    let connectors = if managed { context.connectors.list(object).await? } else { Vec::new() };
    let wanted = version
        .filter(|_| managed)
        .map(|version| Wanted::of(&version, &owner, &config, &object.spec, &login));
    let spec_hash = spec_hash(&object.spec);
    let seen = Seen { object: object.clone(), config, spec_hash, tables, view, connectors, wanted };
    Ok(Fetched { seen, app, login, inventory })
}

/// Reads the configuration of a pipeline.
pub(super) async fn configuration(context: &Context, object: &CyndiPipeline) -> Result<Config, Error> {
    let namespace = object.namespace().unwrap_or_default();
    let (global, own) =
        (config_map(context, GLOBAL_NAMESPACE).await?, config_map(context, &namespace).await?);
    Ok(Config::read(&namespace, &global, &own, &object.spec)?)
}

impl Context {
    /// Reads the login in a Secret in the pipeline's namespace. From now on, changes of that Secret trigger a reconciliation.
    pub(super) async fn credentials(&self, object: &CyndiPipeline, name: &str) -> Result<Credentials, Error> {
        let namespace = object.namespace().unwrap_or_default();
        self.uses.note(Key::of(object), &namespace, name);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let secret = secrets.get_opt(name).await?.ok_or_else(|| Error::NoSecret(name.to_owned()))?;
        Ok(Credentials::of(&secret)?)
    }

    /// Whether `object` is the server's current version. If the watch is behind, the table and the connector that were just created would
    /// look stale.
    pub(super) async fn is_current(&self, object: &CyndiPipeline) -> Result<bool, Error> {
        let api: Api<CyndiPipeline> =
            Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        let now = api.get_metadata_opt(&object.name_any()).await?;
        let version = |meta: &ObjectMeta| (meta.uid.clone(), meta.resource_version.clone());
        Ok(now.is_some_and(|now| version(&now.metadata) == version(&object.metadata)))
    }
}

fn login(context: &Context, credentials: Credentials) -> Login {
    if !context.settings.ephemeral {
        return Login::Environment;
    }
    let Credentials { host, port, name, user, password, .. } = credentials;
    Login::Literal { host, port: port.to_string(), name, user, password }
}

async fn config_map(context: &Context, namespace: &str) -> Result<BTreeMap<String, String>, Error> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    Ok(maps.get_opt(CONFIG_MAP).await?.and_then(|map| map.data).unwrap_or_default())
}

/// Returns an older pipeline with the same database, if there is one: each would drop the other's tables.
pub(super) fn rival(
    objects: &Store<DeserializeGuard<CyndiPipeline>>,
    object: &CyndiPipeline,
) -> Option<String> {
    let place = |it: &CyndiPipeline| (it.creation_timestamp(), it.uid());
    let others = objects.state();
    let others = others.iter().filter_map(|other| other.0.as_ref().ok());
    let same = |other: &&CyndiPipeline| {
        other.namespace() == object.namespace()
            && other.uid() != object.uid()
            && other.spec.db_secret() == object.spec.db_secret()
    };
    others.filter(same).filter(|other| place(other) < place(object)).map(ResourceExt::name_any).min()
}
