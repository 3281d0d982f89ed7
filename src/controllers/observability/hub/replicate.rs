//! Reconciles the hub's object: copies its spec to the spoke and the spoke's status to it, and releases it when the
//! spoke has cleaned up.

use std::sync::Arc;
use std::time::Duration;

use kube::api::PostParams;
use kube::{Api, ResourceExt};
use tokio::time::timeout;
use tracing::{info, warn};

use super::error::{Class, HubError};
use super::reach::Heard;
use super::spoke::Spoke;
use crate::controllers::kit::conditions::Truth;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::controller::{Next, Reconcile};
use crate::controllers::kit::operator::{Aspect, Says};
use crate::controllers::observability::counts::Counts;
use crate::controllers::observability::crd::{FINALIZER, NAME, ObservabilityAddon};
use crate::telemetry::with_causes;

/// The name of the part in statements.
pub(super) const PART: &str = "Hub";
/// The time limit of one reconciliation, including conflicts.
const ANSWER: Duration = Duration::from_secs(30);
/// The wait before a spoke's add-on that is being deleted is checked again, since no watch may report what blocks it.
const CLEANING: Duration = Duration::from_secs(5);

pub(super) struct Replicator {
    pub(super) hub: Api<ObservabilityAddon>,
    pub(super) namespace: String,
    pub(super) heard: Arc<Heard>,
    pub(super) spoke: Spoke,
    pub(super) counts: Counts,
    pub(super) says: Says,
}

/// The result of a reconciliation.
enum Looked {
    Written,
    Same,
    /// Has to be reconciled again.
    Cleaning,
    Released,
}

impl Reconcile for Replicator {
    type Object = ObservabilityAddon;
    type Error = HubError;

    async fn reconcile(&self, hub: &ObservabilityAddon) -> Result<Next, HubError> {
        let looked = timeout(ANSWER, self.look(hub)).await.unwrap_or(Err(HubError::Silent(ANSWER)));
        say(&self.says, looked.as_ref().err());
        match looked {
            Ok(looked) => {
                let (result, next) = match looked {
                    Looked::Written => ("written", Next::Settled),
                    Looked::Same => ("unchanged", Next::Settled),
                    Looked::Cleaning => ("cleaning", Next::After(CLEANING)),
                    Looked::Released => ("released", Next::Settled),
                };
                self.heard.worked();
                self.counts.replicated(result);
                Ok(next)
            }
            Err(error) => {
                self.counts.replicated(error.result());
                if error.class() == Class::Credentials {
                    self.heard.wear(&with_causes(&error));
                }
                Err(error)
            }
        }
    }
}

impl Replicator {
    async fn look(&self, hub: &ObservabilityAddon) -> Result<Looked, HubError> {
        if self.spoke.is_own(hub).await? {
            return Err(HubError::Itself { namespace: self.namespace.clone() });
        }
        if hub.metadata.deletion_timestamp.is_some() {
            return self.release(hub).await;
        }
        self.hold(hub).await?;
        match self.spoke.follow(hub).await? {
            Some(spoke) if spoke.conditions() != hub.conditions() => self.show(&spoke).await,
            Some(_) | None => Ok(Looked::Same),
        }
    }

    /// Adds the finalizer, before anything is created that has to be cleaned up. It also distinguishes the hub's copies from objects of
    /// components for policies on transitions: a copy skips what happened while the hub was unavailable.
    async fn hold(&self, hub: &ObservabilityAddon) -> Result<(), HubError> {
        if is_held(hub) {
            return Ok(());
        }
        let mut held = hub.clone();
        held.finalizers_mut().push(FINALIZER.to_owned());
        held.managed_fields_mut().clear();
        match self.hub.replace(NAME, &PostParams::default(), &held).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                // The hub's own controllers may add it.
                warn!(
                    reason = status.message,
                    "may not put a finalizer on the hub's add-on, going on without"
                );
                Ok(())
            }
            Err(error) => Err(self.failed("put a finalizer on", error)),
        }
    }

    /// Copies the whole status of `spoke` to the hub's object, which is read in the loop, since a conflict means that it has
    /// changed.
    async fn show(&self, spoke: &ObservabilityAddon) -> Result<Looked, HubError> {
        let shown = on_conflict(|| async {
            let mut there = self.hub.get(NAME).await?;
            if there.conditions() == spoke.conditions() {
                return Ok(Looked::Same);
            }
            there.status.clone_from(&spoke.status);
            there.managed_fields_mut().clear();
            self.hub.replace_status(NAME, &PostParams::default(), &there).await?;
            Ok(Looked::Written)
        });
        shown.await.map_err(|error| self.failed("show the status of", error))
    }

    async fn release(&self, hub: &ObservabilityAddon) -> Result<Looked, HubError> {
        if !is_held(hub) {
            return Ok(Looked::Same);
        }
        if !self.spoke.clean().await? {
            return Ok(Looked::Cleaning);
        }
        let let_go = on_conflict(|| let_go(&self.hub)).await;
        let_go.map_err(|error| self.failed("let go of", error))?;
        info!("the hub's add-on is let go, this cluster is clean");
        Ok(Looked::Released)
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> HubError {
        let (namespace, asked) = (self.namespace.clone(), self.heard.asked());
        HubError::Api { verb, namespace, source: Box::new(source), asked }
    }
}

fn is_held(object: &ObservabilityAddon) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// Removes the finalizer of the object of `api`, if it is being deleted. A missing object is no error.
pub(super) async fn let_go(api: &Api<ObservabilityAddon>) -> Result<(), kube::Error> {
    let Some(mut there) = api.get_opt(NAME).await? else { return Ok(()) };
    if there.metadata.deletion_timestamp.is_none() || !is_held(&there) {
        return Ok(());
    }
    there.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
    there.managed_fields_mut().clear();
    match api.replace(NAME, &PostParams::default(), &there).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        replaced => replaced.map(drop),
    }
}

/// Reports the result of a reconciliation as a statement.
fn say(says: &Says, trouble: Option<&HubError>) {
    match trouble {
        Some(error) => {
            says.say(PART, Aspect::Degraded, Truth::True, "NotReplicated", with_causes(error));
        }
        None => says.say(PART, Aspect::Degraded, Truth::False, "AsExpected", ""),
    }
}
