//! The flags of the controllers of CyndiPipelines, shared by the commands that run them.

use clap::Args;

use crate::controllers::cyndi::{INSIGHTS, Settings};

/// What was typed about CyndiPipelines.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cyndi pipelines")]
pub(super) struct CyndiArgs {
    /// The environment does not last: logins of databases stand in connectors, and pipelines go though their database is away
    #[arg(long = "cyndi-ephemeral", env = "EPHEMERAL", hide_env_values = true)]
    ephemeral: bool,

    /// Condition, in SQL, for hosts of the inventory that have an insights id
    #[arg(long = "cyndi-insights-condition", value_name = "SQL", default_value = INSIGHTS)]
    insights: String,
}

impl CyndiArgs {
    /// What the flags mean.
    pub(super) fn settings(&self) -> Settings {
        Settings { ephemeral: self.ephemeral, insights: self.insights.clone(), ..Settings::default() }
    }
}
