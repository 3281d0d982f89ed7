//! Simulates the surroundings of a CyndiPipeline: an inventory, an application's database, and a connector that fills
//! its table, sometimes with errors.

use admit_apimachinery::go;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::info;

use super::postgres::{Error as DatabaseError, Postgres};
use super::{LONGEST, LOOKS, NAMESPACE, Stage};
use crate::controllers::cyndi::FINALIZER;
use crate::controllers::cyndi::crd::{CyndiPipeline, CyndiPipelineStatus};
use crate::controllers::cyndi::state::State;
use crate::telemetry::with_causes;

/// Name of the pipeline, and of its application.
const NAME: &str = "demo";
/// The databases of the application and of the inventory.
const APP: &str = "app";
const INVENTORY: &str = "inventory";
const USER: &str = "demo";
/// The number of hosts in the inventory, and of those that stay in the table after a loss: more are missing then than the 5 % that are
/// tolerated, and fewer than the half beyond which nothing is compared.
const HOSTS: u32 = 100;
const LEFT: u32 = 80;

/// A step of the demo, with the state of the pipeline after it.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// `INITIAL_SYNC`: some of the hosts are in the table.
    Begin,
    /// VALID.
    Fill,
    /// INVALID.
    Lose,
    /// NEW, and `INITIAL_SYNC`: the view shows the old table meanwhile.
    Rebuild,
    /// REMOVED.
    Remove,
}

impl Action {
    /// Returns the state after this step, or `None` if there is no pipeline then.
    fn leads_to(self) -> Option<State> {
        match self {
            Self::Begin | Self::Rebuild => Some(State::InitialSync),
            Self::Fill => Some(State::Valid),
            Self::Lose => Some(State::Invalid),
            Self::Remove => None,
        }
    }
}

const ROUND: [Action; 8] = [
    Action::Begin,
    Action::Fill,
    Action::Lose,
    Action::Fill,
    Action::Rebuild,
    Action::Begin,
    Action::Fill,
    Action::Remove,
];

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Takes a pipeline through all steps, if PostgreSQL is installed.
pub(super) async fn run(stage: &Stage) {
    // A server that is still starting must be waited for, so that it can be stopped.
    let postgres = match Postgres::start().await {
        Ok(postgres) => postgres,
        Err(error) => {
            info!(why = with_causes(&error), "the demo has no pipeline");
            stage.stop.cancelled().await;
            return;
        }
    };
    let set = set(stage, &postgres).await;
    stage.tell("make a pipeline", set);
    for (number, action) in (0_u64..).zip(ROUND.into_iter().cycle()) {
        if !reach(stage, &postgres, action, number).await || !stage.pause(stage.step).await {
            break;
        }
    }
    // Its database is removed next, and with it all that the controller would clean up.
    let left = leave(stage).await;
    stage.tell("remove the pipeline", left);
    postgres.end().await;
}

/// Repeats a step until the pipeline has the wanted state: a table that does not exist yet cannot be filled. False if stopped.
async fn reach(stage: &Stage, postgres: &Postgres, action: Action, number: u64) -> bool {
    let since = Instant::now();
    loop {
        let taken = take(stage, postgres, action, number).await;
        stage.tell("go on with a pipeline", taken);
        if state(stage).await == Some(action.leads_to()) || since.elapsed() > LONGEST {
            return true;
        }
        if !stage.pause(stage.step / LOOKS).await {
            return false;
        }
    }
}

/// Creates the databases as the platform provides them, and the Secrets and the ConfigMap that name them.
async fn set(stage: &Stage, postgres: &Postgres) -> Result<(), Error> {
    let password = &postgres.password;
    let begin = [
        "CREATE ROLE cyndi_reader".to_owned(),
        "CREATE ROLE cyndi_admin".to_owned(),
        format!("CREATE ROLE {USER} LOGIN PASSWORD '{password}' IN ROLE cyndi_admin"),
        format!("CREATE DATABASE {APP}"),
        format!("CREATE DATABASE {INVENTORY}"),
    ];
    postgres.run("postgres", &begin).await?;
    let onboarding = "CREATE SCHEMA inventory; GRANT USAGE ON SCHEMA inventory TO cyndi_reader; \
                      GRANT ALL ON SCHEMA inventory TO cyndi_admin";
    postgres.run(APP, &[onboarding.to_owned()]).await?;
    let hosts = format!(
        "CREATE TABLE hosts (id uuid PRIMARY KEY, canonical_facts jsonb NOT NULL DEFAULT '{{}}'); \
         INSERT INTO hosts (id) SELECT {} FROM generate_series(1, {HOSTS}) number; GRANT SELECT ON hosts TO {USER}",
        id()
    );
    postgres.run(INVENTORY, &[hosts]).await?;
    let login = |name: &str, database: &str| {
        let data = [
            ("db.host", "127.0.0.1".to_owned()),
            ("db.port", postgres.port.to_string()),
            ("db.name", database.to_owned()),
            ("db.user", USER.to_owned()),
            ("db.password", password.clone()),
        ];
        let data = data.map(|(key, value)| (key.to_owned(), Value::from(go::base64::encode(value))));
        let data: serde_json::Map<String, Value> = data.into_iter().collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
    };
    stage.apply("secrets", &login("demo-db", APP)).await?;
    stage.apply("secrets", &login("host-inventory-read-only-db", INVENTORY)).await?;
    let often = stage.step.as_secs().to_string();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cyndi", "namespace": NAMESPACE},
        "data": {
            "standard.interval": often, "validation.interval": often, "init.validation.interval": often,
            // The demo alone decides when the pipeline is rebuilt.
            "validation.attempts.threshold": "1000000", "init.validation.attempts.threshold": "1000000",
        },
    });
    Ok(stage.apply("configmaps", &map).await?)
}

async fn take(stage: &Stage, postgres: &Postgres, action: Action, number: u64) -> Result<(), Error> {
    match action {
        Action::Begin => {
            // It is created again after a removal.
            if pipelines(stage).get_opt(NAME).await?.is_none() {
                ask(stage, None).await?;
            }
            fill(stage, postgres, LEFT).await
        }
        Action::Fill => fill(stage, postgres, HOSTS).await,
        Action::Lose => {
            let Some(table) = table(stage).await? else { return Ok(()) };
            let lose = format!("DELETE FROM {table} WHERE display_name > 'host{LEFT:06}'");
            Ok(postgres.run(APP, &[lose]).await?)
        }
        Action::Rebuild => ask(stage, Some(number)).await,
        Action::Remove => match pipelines(stage).delete(NAME, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        },
    }
}

/// Returns the state, `Some(None)` if there is no pipeline, and `None` if it cannot be read.
async fn state(stage: &Stage) -> Option<Option<State>> {
    let found = pipelines(stage).get_opt(NAME).await.ok()?;
    Some(found.as_ref().map(State::of))
}

fn pipelines(stage: &Stage) -> Api<CyndiPipeline> {
    Api::namespaced(stage.admin.clone(), NAMESPACE)
}

/// Applies the pipeline; with `anew` it is rebuilt.
async fn ask(stage: &Stage, anew: Option<u64>) -> Result<(), Error> {
    let mut spec = json!({"appName": NAME, "managedConnectors": false});
    if let (Some(number), Some(spec)) = (anew, spec.as_object_mut()) {
        spec.insert("refresh".to_owned(), number.to_string().into());
    }
    let pipeline = json!({
        "apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
        "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec,
    });
    Ok(stage.apply("cyndipipelines", &pipeline).await?)
}

/// Returns the table that is being filled or shown, quoted for SQL.
async fn table(stage: &Stage) -> Result<Option<String>, Error> {
    let found = pipelines(stage).get_opt(NAME).await?;
    let status = found.and_then(|found| found.status);
    Ok(status.as_ref().and_then(CyndiPipelineStatus::table).map(|table| table.quoted()))
}

/// Inserts the first `hosts` hosts into the table.
async fn fill(stage: &Stage, postgres: &Postgres, hosts: u32) -> Result<(), Error> {
    let Some(table) = table(stage).await? else { return Ok(()) };
    let rows = format!(
        "INSERT INTO {table} (id, display_name, tags, updated, created, stale_timestamp, system_profile, reporter, \
         per_reporter_staleness, last_check_in) SELECT {}, 'host' || lpad(number::text, 6, '0'), '{{}}', now(), now(), \
         now() + INTERVAL '1' DAY, '{{}}', 'demo', '{{}}', now() FROM generate_series(1, {hosts}) number ON CONFLICT DO NOTHING",
        id()
    );
    Ok(postgres.run(APP, &[rows]).await?)
}

/// Returns the SQL expression for the id of the host `number`.
fn id() -> &'static str {
    "lpad(to_hex(number), 32, '0')::uuid"
}

/// Deletes the pipeline and its finalizer, because the controller ends as well. The next start then finds nothing to wait for.
async fn leave(stage: &Stage) -> Result<(), Error> {
    let api = pipelines(stage);
    let gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
    match api.delete(NAME, &DeleteParams::default()).await {
        Err(error) if gone(&error) => return Ok(()),
        deleted => drop(deleted?),
    }
    let Some(there) = api.get_opt(NAME).await? else { return Ok(()) };
    let kept: Vec<&String> =
        there.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != FINALIZER).collect();
    let patch = Patch::Merge(json!({"metadata": {"finalizers": kept}}));
    match api.patch(NAME, &PatchParams::default(), &patch).await {
        Err(error) if gone(&error) => Ok(()),
        patched => Ok(patched.map(drop)?),
    }
}
