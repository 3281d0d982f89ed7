//! Last stage of a pass: carries out the plan in its order, and writes the status.
//!
//! A table and its connector are created before the status names them: if the process dies in between, the next pass
//! removes them first.

use kube::{Api, ResourceExt};
use tracing::debug;

use super::connector::{Found, Wanted};
use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::fetch::Fetched;
use super::names::{Table, Version};
use super::plan::{self, Plan, Refresh, Seen, Step, View};
use super::sql::{self, Selection};
use super::{Context, Error};
use crate::controllers::kit::conditions::{self, Statement, Truth};
use crate::controllers::kit::events::Notice;
use crate::controllers::kit::status;
use crate::telemetry::Outside;

/// The condition for a connector that Kafka Connect rejects.
const ACCEPTED: &str = "ConnectorAccepted";

impl Context {
    /// Sets a condition with the reason why Kafka Connect rejects the connector. Errors in doing so are ignored.
    pub(super) async fn tell_refusal(&self, object: &CyndiPipeline, refusal: &Outside) {
        let mut status = object.status.clone().unwrap_or_default();
        let statement = Statement::new(ACCEPTED, Truth::False, "InvalidConfiguration", refusal.as_str());
        conditions::set(&mut status.conditions, statement, None, self.settings.clock.now());
        if let Err(error) = self.write(object, &status).await {
            debug!(pipeline = object.name_any(), %error, "the condition of a refused connector was not written");
        }
    }

    /// Removes connectors and tables that no version needs any more.
    pub(super) async fn remove(&self, fetched: &mut Fetched, plan: &Plan) -> Result<(), Error> {
        for name in &plan.stale_connectors {
            let secrets = fetched.seen.connectors.iter().find(|it| it.name == *name).map(Found::secrets);
            let deleted = self.connectors.delete(&fetched.seen.object, name).await;
            deleted.map_err(|error| error.hiding(&secrets.unwrap_or_default()))?;
        }
        if plan.drop_view {
            fetched.app.drop_view().await.map_err(Error::App)?;
        }
        for table in &plan.stale_tables {
            fetched.app.drop_table(table).await.map_err(Error::App)?;
        }
        Ok(())
    }

    /// Carries out the step, and writes the resulting status, with the table that the view shows now.
    pub(super) async fn apply(&self, fetched: &mut Fetched, step: Step) -> Result<(), Error> {
        let object = fetched.seen.object.clone();
        let before = object.status.clone().unwrap_or_default();
        let mut notice = None;
        let mut next = match step {
            Step::LetGo | Step::Nothing => before.clone(),
            Step::Start => {
                let (next, told) = self.start(fetched, &before).await?;
                notice = Some(told);
                next
            }
            Step::Refresh(why) => {
                if why == Refresh::Invalid {
                    self.show_healthier(fetched, &before).await?;
                }
                return self.refresh(&fetched.seen, &why).await;
            }
            Step::Show(table) => {
                notice = Some(self.show(fetched, table).await?);
                before.clone()
            }
            Step::Restart(failed) => {
                let name = &before.cyndi_pipeline_name;
                self.connectors.restart(&object, name).await?;
                let note = format!("{failed} of {name} failed and is started again");
                notice = Some(Notice { warning: true, reason: "Restarting", action: "Restart", note });
                before.clone()
            }
            Step::Pause(paused) => {
                let patched = self.connectors.pause(&object, &before.cyndi_pipeline_name, paused).await;
                patched.map_err(|error| error.hiding(&fetched.login.secrets()))?;
                before.clone()
            }
        };
        next.active_table_name = fetched.seen.view.name();
        self.write(&object, &next).await?;
        if let Some(notice) = notice {
            self.events.publish(&object, notice).await;
        }
        Ok(())
    }

    async fn start(
        &self,
        fetched: &mut Fetched,
        before: &CyndiPipelineStatus,
    ) -> Result<(CyndiPipelineStatus, Notice), Error> {
        let Seen { object, config, spec_hash, .. } = &fetched.seen;
        let now = self.settings.clock.now();
        let version = Version::at(now);
        let table = version.table();
        // An invalid filter is found before the table is created that would be compared by it.
        sql::hosts_of_inventory(config, &object.spec, &self.settings.insights)?;
        let statements = sql::make_table(&table, config, &object.spec)?;
        fetched.app.make(&statements).await.map_err(Error::App)?;
        let mut note = format!("Initial sync of {table} began");
        let managed = object.spec.managed_connectors;
        if managed {
            let owner = object.uid().unwrap_or_default();
            let wanted = Wanted::of(&version, &owner, config, &object.spec, &fetched.login);
            let created = self.connectors.create(object, &wanted, &fetched.app.secrets()).await;
            created.map_err(|error| error.hiding(&fetched.login.secrets()))?;
        } else {
            note = format!("{table} is to be filled by connectors that others make");
        }
        let mut next = before.started(&version, &object.spec.app_name, (&config.hash, spec_hash), now);
        next.conditions.retain(|condition| condition.type_ != ACCEPTED);
        let reason = if managed { "InitialSync" } else { "ExternalConnectorUpdate" };
        Ok((next, Notice { warning: !managed, reason, action: "Start", note }))
    }

    async fn show(&self, fetched: &mut Fetched, table: Table) -> Result<Notice, Error> {
        fetched.app.show(&table).await.map_err(Error::App)?;
        let note = format!("Pipeline became valid. inventory.hosts view now points to {table}");
        fetched.seen.view = View::Shows(table);
        Ok(Notice { warning: false, reason: "ValidationSucceeded", action: "Show", note })
    }

    /// Shows the new table although it did not become valid, if it is no further from the inventory than the shown one.
    async fn show_healthier(&self, fetched: &mut Fetched, status: &CyndiPipelineStatus) -> Result<(), Error> {
        let Some(new) = status.table().filter(|new| fetched.seen.view.table() != Some(new)) else {
            return Ok(());
        };
        let hosts = {
            let Seen { object, config, .. } = &fetched.seen;
            let selection = sql::hosts_of_inventory(config, &object.spec, &self.settings.insights)?;
            let credentials = fetched.inventory.as_ref().ok_or(Error::Leaving)?;
            let mut inventory = self.pools.open(credentials, config).await.map_err(Error::Inventory)?;
            inventory.count(&selection).await.map_err(Error::Inventory)?
        };
        let rows = fetched.app.count(&Selection::all(&new)).await.map_err(Error::App)?;
        let active = match fetched.seen.view.table().cloned() {
            Some(table) => Some(fetched.app.count(&Selection::all(&table)).await.map_err(Error::App)?),
            None => None,
        };
        if plan::is_healthier(hosts, rows, active) {
            fetched.app.show(&new).await.map_err(Error::App)?;
            fetched.seen.view = View::Shows(new);
        }
        Ok(())
    }

    /// Marks the pipeline to be rebuilt from the next pass on.
    pub(super) async fn refresh(&self, seen: &Seen, why: &Refresh) -> Result<(), Error> {
        let before = seen.object.status.clone().unwrap_or_default();
        let mut next = before.reset(self.settings.clock.now());
        next.active_table_name = seen.view.name();
        self.write(&seen.object, &next).await?;
        self.counts.refreshed(&seen.object.spec.app_name, why);
        let notice = Notice { warning: true, reason: "Refreshing", action: "Refresh", note: why.note() };
        self.events.publish(&seen.object, notice).await;
        Ok(())
    }

    /// Writes the status if it differs.
    pub(super) async fn write(
        &self,
        object: &CyndiPipeline,
        next: &CyndiPipelineStatus,
    ) -> Result<(), Error> {
        if object.status.as_ref() == Some(next) {
            return Ok(());
        }
        let api = Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default());
        status::write(&api, object, next).await?;
        Ok(())
    }
}
