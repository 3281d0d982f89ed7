//! Implements the spoke's side of the link: applies the hub's spec to this cluster's add-on, and deletes it with the hub's
//! object, unless the add-on says that its spec is its own.

use std::sync::{Mutex, PoisonError};

use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use tracing::info;

use super::error::HubError;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::observability::crd::{
    NAME, ObservabilityAddon, ObservabilityAddonSpec, SOURCE, SOURCE_HUB, SOURCE_OVERRIDE,
};
use crate::controllers::observability::last_seen::LastSeen;

pub(super) struct Spoke {
    api: Api<ObservabilityAddon>,
    namespace: String,
    seen: LastSeen,
    /// A spec of the hub, and what the spoke's server stored of it: another version of the CRD may have other fields.
    made: Mutex<Option<(ObservabilityAddonSpec, ObservabilityAddonSpec)>>,
}

impl Spoke {
    pub(super) fn new(client: Client, namespace: &str, seen: LastSeen) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, namespace: namespace.to_owned(), seen, made: Mutex::default() }
    }

    /// Whether the hub's object is the spoke's add-on itself, because the kubeconfig of the hub leads to this cluster. That is
    /// only possible in the same namespace, which is compared first.
    ///
    /// # Errors
    /// [`HubError::Spoke`]
    pub(super) async fn is_own(&self, hub: &ObservabilityAddon) -> Result<bool, HubError> {
        if hub.namespace().as_deref() != Some(self.namespace.as_str()) {
            return Ok(false);
        }
        let own = match self.seen.get() {
            Some(seen) => Some(seen),
            None => self.api.get_opt(NAME).await.map_err(|error| failed("read", error))?,
        };
        Ok(own.is_some_and(|own| own.uid() == hub.uid()))
    }

    /// Applies the spec of `hub` to the spoke's add-on. Returns the add-on to copy; None if it was just created, or not reconciled
    /// yet.
    ///
    /// # Errors
    /// [`HubError::Spoke`]
    pub(super) async fn follow(
        &self,
        hub: &ObservabilityAddon,
    ) -> Result<Option<ObservabilityAddon>, HubError> {
        let Some(seen) = self.seen.get() else {
            let found = self.api.get_opt(NAME).await.map_err(|error| failed("read", error))?;
            if found.is_none() {
                self.create(hub).await?;
            }
            return Ok(None);
        };
        if !self.is_as_asked(&seen, hub) {
            self.bring(hub).await.map_err(|error| failed("bring the hub's spec to", error))?;
        }
        Ok(Some(seen))
    }

    fn is_as_asked(&self, spoke: &ObservabilityAddon, hub: &ObservabilityAddon) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_made = made.as_ref().is_some_and(|(of, made)| *of == hub.spec && *made == spoke.spec);
        is_its_own(spoke) || spoke.metadata.deletion_timestamp.is_some() || spoke.spec == hub.spec || is_made
    }

    async fn create(&self, hub: &ObservabilityAddon) -> Result<(), HubError> {
        let source = hub.annotations().get(SOURCE).map_or(SOURCE_HUB, String::as_str);
        let metadata = ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(self.namespace.clone()),
            annotations: Some([(SOURCE.to_owned(), source.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let object = ObservabilityAddon { metadata, spec: hub.spec.clone(), status: None };
        match self.api.create(&PostParams::default(), &object).await {
            Ok(_) => info!("made the add-on that the hub asks for"),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            Err(error) => return Err(failed("make", error)),
        }
        Ok(())
    }

    async fn bring(&self, hub: &ObservabilityAddon) -> Result<(), kube::Error> {
        let stored = on_conflict(|| async {
            let Some(mut there) = self.api.get_opt(NAME).await? else { return Ok(None) };
            if self.is_as_asked(&there, hub) {
                return Ok(None);
            }
            there.spec.clone_from(&hub.spec);
            there.managed_fields_mut().clear();
            self.api.replace(NAME, &PostParams::default(), &there).await.map(Some)
        });
        if let Some(stored) = stored.await? {
            info!("the spec is that of the hub");
            let made = Some((hub.spec.clone(), stored.spec));
            *self.made.lock().unwrap_or_else(PoisonError::into_inner) = made;
        }
        Ok(())
    }

    /// Deletes the spoke's add-on, unless its spec is its own; returns whether nothing is left to delete.
    ///
    /// # Errors
    /// [`HubError::Spoke`]
    pub(super) async fn clean(&self) -> Result<bool, HubError> {
        let found = self.api.get_opt(NAME).await.map_err(|error| failed("read", error))?;
        let Some(found) = found.filter(|found| !is_its_own(found)) else { return Ok(true) };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let preconditions = Preconditions { uid: found.uid(), resource_version: None };
        let deleting = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.api.delete(NAME, &deleting).await {
            Ok(deleted) => {
                info!("removed the add-on that the hub no longer asks for");
                Ok(deleted.is_right())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            Err(error) => Err(failed("remove", error)),
        }
    }
}

fn is_its_own(object: &ObservabilityAddon) -> bool {
    object.annotations().get(SOURCE).is_some_and(|source| source == SOURCE_OVERRIDE)
}

fn failed(verb: &'static str, source: kube::Error) -> HubError {
    HubError::Spoke { verb, source: Box::new(source) }
}
