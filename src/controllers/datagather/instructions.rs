//! Determines the instructions of a gathering: the remote configuration of the service, if one is configured, and
//! whether the agents on nodes are asked. No failure here stops a gathering: without a remote configuration the
//! built-in one applies, and that is reported.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tracing::warn;

use super::config::Config;
use super::run_context::RunContext;
use super::run_state::RemoteOutcome;
use crate::gather::remote::Remote;
use crate::gather::upload::VersionTemplate;
use crate::gather::{Agents, cluster};
use crate::telemetry::with_causes;

/// The time limit for the request, including waiting for its turn, since the gathering waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The instructions for one gathering.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    pub(super) remote: Arc<Remote>,
    /// None if no remote configuration is requested.
    pub(super) outcome: Option<RemoteOutcome>,
    pub(super) agents: Option<Agents>,
}

/// Determines the current instructions.
pub(super) async fn ask(run_context: &RunContext) -> Instructions {
    // The next step that reads the configuration reports the error.
    let Ok(config) = run_context.config().await else { return Instructions::default() };
    let agents = run_context.settings.agents.clone().filter(|_| !config.no_agents);
    let Some(endpoint) = &config.remote else { return Instructions { agents, ..Instructions::default() } };
    let asked = timeout(PATIENCE, remote(run_context, &config, endpoint)).await;
    let message = || format!("no answer within {} s", PATIENCE.as_secs());
    let asked = asked.unwrap_or_else(|_| Err(RemoteOutcome::Unavailable { code: 0, message: message() }));
    match asked {
        Ok(remote) => {
            Instructions { remote: Arc::new(remote), outcome: Some(RemoteOutcome::Followed), agents }
        }
        Err(outcome) => {
            warn!(?outcome, "the built-in configuration counts instead of the remote one");
            Instructions { outcome: Some(outcome), agents, ..Instructions::default() }
        }
    }
}

async fn remote(
    run_context: &RunContext,
    config: &Config,
    endpoint: &VersionTemplate,
) -> Result<Remote, RemoteOutcome> {
    let unasked = |message| RemoteOutcome::Unavailable { code: 0, message };
    let ingress = run_context.ingress(config).await.map_err(|error| unasked(error.to_string()))?;
    let ingress = ingress.ok_or_else(|| {
        unasked("it is asked for with the token for uploads, and no upload URL is configured".to_owned())
    })?;
    let url = match &run_context.settings.release {
        _ if !endpoint.names_version() => endpoint.of(""),
        Some(release) => endpoint.of(release),
        None => {
            let version = cluster::version(&run_context.client).await;
            endpoint.of(&version.map_err(|error| {
                unasked(format!("cannot read the version of the cluster: {}", with_causes(&error)))
            })?)
        }
    };
    let text = ingress.remote_configuration(&url).await;
    let text =
        text.map_err(|error| RemoteOutcome::Unavailable { code: error.code(), message: error.to_string() })?;
    Remote::parse(&text, &url).map_err(|invalid| RemoteOutcome::Invalid(invalid.to_string()))
}
