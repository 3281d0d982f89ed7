//! Implements the validation controller: compares each table with the inventory and reports whether it is valid.

use kube::ResourceExt;
use tracing::info;

use super::config::Validation;
use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::fetch::{Fetched, fetch, rival};
use super::plan::{Refresh, deviation};
use super::sql::{self, Selection};
use super::state::State;
use super::validation::{Source, validate};
use super::verdict::Verdict;
use super::{Context, Error};
use crate::controllers::kit::controller::{Next, Reconcile};
use crate::controllers::kit::events::Notice;

/// The controller that validates tables.
#[derive(Debug)]
pub(super) struct Validating(pub(super) std::sync::Arc<Context>);

impl Reconcile for Validating {
    type Object = CyndiPipeline;
    type Error = Error;

    async fn reconcile(&self, object: &CyndiPipeline) -> Result<Next, Error> {
        let context = &self.0;
        let state = State::of(object);
        let version = object.status.as_ref().and_then(CyndiPipelineStatus::version);
        // Other states are handled by the pipeline controller alone.
        let (State::InitialSync | State::Valid | State::Invalid, Some(version)) = (state, version) else {
            return Ok(Next::Settled);
        };
        if rival(&context.objects, object).is_some() {
            return Ok(Next::Settled);
        }
        let mut fetched = fetch(context, object).await?;
        let status = object.status.clone().unwrap_or_default();
        if let Some(what) = deviation(&fetched.seen, &status, &version) {
            context.refresh(&fetched.seen, &Refresh::Deviation(what)).await?;
            return Ok(Next::Settled);
        }
        let rules = fetched.seen.config.validation(status.initial_sync_in_progress);
        let verdict = compare(context, &mut fetched, &version.table(), rules).await?;
        let hosts = i64::try_from(verdict.table).unwrap_or(i64::MAX);
        let next = status.validated(verdict.valid, &verdict.message(), hosts, context.settings.clock.now());
        context.write(object, &next).await?;
        tell(context, object, state, &verdict).await;
        Ok(Next::After(fetched.seen.config.validation(next.initial_sync_in_progress).interval))
    }
}

pub(super) async fn compare(
    context: &Context,
    fetched: &mut Fetched,
    table: &super::names::Table,
    rules: Validation,
) -> Result<Verdict, Error> {
    let seen = &fetched.seen;
    let hosts = sql::hosts_of_inventory(&seen.config, &seen.object.spec, &context.settings.insights)?;
    let rows = Selection::all(table);
    let credentials = fetched.inventory.as_ref().ok_or(Error::Leaving)?;
    let mut inventory = context.pools.open(credentials, &seen.config).await.map_err(Error::Inventory)?;
    let of_inventory = Source { database: &mut inventory, selection: &hosts };
    let of_table = Source { database: &mut fetched.app, selection: &rows };
    validate(of_inventory, of_table, rules.percentage).await.map_err(Error::Comparison)
}

async fn tell(context: &Context, object: &CyndiPipeline, before: State, verdict: &Verdict) {
    context.counts.validated(&object.spec.app_name, verdict);
    if let Some(difference) = verdict.difference.as_ref().filter(|_| verdict.mismatches > 0) {
        let (missing, more) = (&difference.left.shown, &difference.right.shown);
        info!(pipeline = object.name_any(), ?missing, ?more, "hosts do not match");
    }
    let notice = match (verdict.valid, before) {
        (true, State::Invalid) => ("Valid", "Pipeline is valid again".to_owned()),
        // The switch of the view to a newly valid table has an event of its own.
        (true, _) => return,
        (false, _) => ("ValidationFailed", verdict.message()),
    };
    let (reason, note) = notice;
    let notice = Notice { warning: !verdict.valid, reason, action: "Validate", note };
    context.events.publish(object, notice).await;
}
