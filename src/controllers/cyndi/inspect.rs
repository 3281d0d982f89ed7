//! Reports what the next pass and a validation would find and do, without doing it, for the commands that inspect
//! pipelines. Nothing is written, and databases are queried in read-only transactions.

use kube::runtime::reflector;
use kube::{Api, Client};

use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::database::Pools;
use super::fetch::fetch;
use super::plan::{Plan, Step, plan};
use super::secret_refs::SecretRefs;
use super::state::State;
use super::validation_controller::compare;
use super::verdict::Verdict;
use super::{Context, Counts, Error, Settings};
use crate::controllers::kit::events::Events;

/// The plan of the next pass.
#[derive(Clone, Debug)]
pub struct Planned {
    pub state: State,
    /// The table in the status; empty if there is none.
    pub table: String,
    /// The table that the view shows.
    pub active: String,
    pub plan: Plan,
}

impl Planned {
    /// Returns the step in a few words.
    #[must_use]
    pub fn step(&self) -> (&'static str, String) {
        match &self.plan.step {
            Step::LetGo => ("let-go", "let the pipeline go".to_owned()),
            Step::Start => ("start", "make a table and its connector".to_owned()),
            Step::Refresh(why) => ("refresh", why.note()),
            Step::Show(table) => ("show", format!("have inventory.hosts show {table}")),
            Step::Restart(failed) => ("restart", format!("start {failed} of the connector again")),
            Step::Pause(true) => ("pause", "have the connector rest".to_owned()),
            Step::Pause(false) => ("resume", "have the connector work again".to_owned()),
            Step::Nothing => ("nothing", "nothing is to be done".to_owned()),
        }
    }
}

/// Plans the next pass for a pipeline, without carrying it out.
///
/// # Errors
/// The errors of a pass; also when there is no such pipeline.
pub async fn planned(
    client: Client,
    settings: Settings,
    namespace: &str,
    name: &str,
) -> Result<Planned, Error> {
    let (context, object) = alone(client, settings, namespace, name).await?;
    let fetched = fetch(&context, &object).await?;
    let table = object.status.as_ref().map(|status| status.table_name.clone()).unwrap_or_default();
    let active = fetched.seen.view.name();
    Ok(Planned { state: State::of(&object), table, active, plan: plan(&fetched.seen) })
}

/// Validates a pipeline's table; None if there is no table to validate.
///
/// # Errors
/// The errors of a validation; also when there is no such pipeline.
pub async fn validated(
    client: Client,
    settings: Settings,
    namespace: &str,
    name: &str,
) -> Result<Option<Verdict>, Error> {
    let (context, object) = alone(client, settings, namespace, name).await?;
    let status = object.status.clone().unwrap_or_default();
    let table = CyndiPipelineStatus::table(&status).filter(|_| object.metadata.deletion_timestamp.is_none());
    let Some(table) = table else { return Ok(None) };
    let mut fetched = fetch(&context, &object).await?;
    let rules = fetched.seen.config.validation(status.initial_sync_in_progress);
    compare(&context, &mut fetched, &table, rules).await.map(Some)
}

async fn alone(
    client: Client,
    settings: Settings,
    namespace: &str,
    name: &str,
) -> Result<(Context, CyndiPipeline), Error> {
    let pipelines: Api<CyndiPipeline> = Api::namespaced(client.clone(), namespace);
    let object = pipelines.get(name).await?;
    let context = Context {
        connectors: settings.connectors(&client),
        events: Events::new(client.clone(), "admit-cyndi"),
        client,
        settings,
        counts: Counts::default(),
        uses: SecretRefs::default(),
        pools: Pools::default().into(),
        objects: reflector::store().0,
    };
    Ok((context, object))
}
