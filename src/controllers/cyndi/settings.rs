//! Defines the settings of the controllers of CyndiPipelines.

use std::sync::Arc;

use kube::Client;

use super::backend::Connectors;
use super::connect::Connect;
use super::strimzi::Strimzi;
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::fence::Fence;

/// The condition for hosts with an insights id, in the inventory of the first version.
pub const INSIGHTS: &str = "canonical_facts ? 'insights_id'";

#[derive(Clone, Debug)]
pub struct Settings {
    /// The environment is temporary (`EPHEMERAL`): logins are stored in connectors, and a pipeline is deleted even if
    /// its database is unavailable.
    pub ephemeral: bool,
    /// The condition, in SQL, for hosts of the inventory with an insights id.
    pub insights: String,
    /// Kafka Connect's REST interface, if connectors are not Strimzi objects.
    pub connect: Option<Connect>,
    /// Prevents a former leader from writing, also to databases and to Kafka Connect; None without leader election.
    pub fence: Option<Fence>,
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ephemeral: false,
            insights: INSIGHTS.to_owned(),
            connect: None,
            fence: None,
            clock: Clock::default(),
        }
    }
}

impl Settings {
    /// Returns the configured backend.
    pub(super) fn connectors(&self, client: &Client) -> Arc<dyn Connectors> {
        match &self.connect {
            Some(connect) => Arc::new(connect.clone().of(client, self.fence.clone())),
            None => Arc::new(Strimzi::new(client.clone())),
        }
    }
}
