//! Implements the pipeline controller: creates what a pipeline consists of, keeps it as it should be, and removes it with the
//! pipeline.

use std::time::Duration;

use kube::{Api, ResourceExt};
use tracing::debug;

use super::connect::ConnectError;
use super::crd::CyndiPipeline;
use super::database::DatabaseError;
use super::fetch::{fetch, rival};
use super::plan::plan;
use super::{Context, Error, FINALIZER};
use crate::controllers::kit::conditions::{self, Statement, Truth};
use crate::controllers::kit::controller::{Next, Reconcile};
use crate::controllers::kit::finalizer::{Cleanup, Finalizer, FinalizerError};
use crate::controllers::kit::key::Key;

/// The condition of a pipeline whose deletion is blocked.
const CLEANED_UP: &str = "CleanedUp";

/// The wait until the watch reports a version of an object that the server has already.
const AGAIN: Duration = Duration::from_millis(200);

/// The controller of what belongs to pipelines.
#[derive(Debug)]
pub(super) struct Pipelines(pub(super) std::sync::Arc<Context>);

impl Reconcile for Pipelines {
    type Object = CyndiPipeline;
    type Error = FinalizerError<Error>;

    async fn reconcile(&self, object: &CyndiPipeline) -> Result<Next, FinalizerError<Error>> {
        let context = &self.0;
        context.counts.begin(&object.spec.app_name);
        let api: Api<CyndiPipeline> =
            Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
        let patience = context.settings.ephemeral.then_some(Duration::ZERO);
        let finalizer = Finalizer { name: FINALIZER, patience };
        finalizer.look(&api, object, self, &context.events, context.settings.clock.now()).await
    }

    fn gone(&self, key: &Key) {
        self.0.uses.forget(key);
        self.0.pools.clear();
    }
}

impl Pipelines {
    async fn pass(&self, object: &CyndiPipeline) -> Result<Next, Error> {
        let context = &self.0;
        if let Some(other) = rival(&context.objects, object) {
            return Err(Error::Rival(other));
        }
        let mut fetched = match fetch(context, object).await {
            Err(Error::App(DatabaseError::Password(_))) if context.set_password(object).await? => {
                fetch(context, object).await?
            }
            fetched => fetched?,
        };
        let plan = plan(&fetched.seen);
        debug!(pipeline = object.name_any(), ?plan, "a pass");
        if plan.changes_something() && !context.is_current(object).await? {
            return Ok(Next::After(AGAIN));
        }
        context.remove(&mut fetched, &plan).await?;
        context.apply(&mut fetched, plan.step).await?;
        Ok(Next::After(fetched.seen.config.standard_interval))
    }
}

impl Cleanup for Pipelines {
    type Object = CyndiPipeline;
    type Error = Error;

    async fn keep(&self, object: &CyndiPipeline) -> Result<Next, Error> {
        let ended = self.pass(object).await;
        if let Err(Error::Connect(ConnectError::Refused(why))) = &ended {
            self.0.tell_refusal(object, why).await;
        }
        ended
    }

    async fn clean(&self, object: &CyndiPipeline) -> Result<(), Error> {
        let context = &self.0;
        // The tables in the database belong to the other pipeline.
        if rival(&context.objects, object).is_some() {
            return Ok(());
        }
        if object.spec.managed_connectors {
            // Connectors are deleted even if the database is unavailable, so that nothing more is written.
            for found in context.connectors.list(object).await? {
                let deleted = context.connectors.delete(object, &found.name).await;
                deleted.map_err(|error| error.hiding(&found.secrets()))?;
            }
        }
        let mut fetched = fetch(context, object).await?;
        let plan = plan(&fetched.seen);
        context.remove(&mut fetched, &plan).await
    }

    async fn tell(&self, object: &CyndiPipeline, left: &str) {
        let since = object.metadata.deletion_timestamp.as_ref().map(|at| at.0.to_string());
        let message = format!(
            "kept since {}: {left}. It goes when this is mended; to let it go with its tables left behind, remove the finalizer \
             {FINALIZER}",
            since.unwrap_or_default()
        );
        let mut status = object.status.clone().unwrap_or_default();
        let statement = Statement::new(CLEANED_UP, Truth::False, "CleanupFailed", message);
        conditions::set(&mut status.conditions, statement, None, self.0.settings.clock.now());
        if let Err(error) = self.0.write(object, &status).await {
            debug!(pipeline = object.name_any(), %error, "the condition of a pipeline that cannot go was not written");
        }
    }
}
