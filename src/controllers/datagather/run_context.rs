//! Holds what all runs of this process share: the client, the settings, the store of archives, and the upload client.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use kube::Client;
use tokio::sync::Semaphore;
use tracing::warn;

use super::config::{Config, ConfigError};
use super::counts::Counts;
use super::settings::{ADVISOR, Settings};
use crate::gather::store::ArchiveStore;
use crate::gather::tunnel::TransportSetupError;
use crate::gather::upload::{ConcurrencyLimit, EndpointError, Endpoints, Ingress, Outlet, TokenSource};
use crate::gather::{self, cluster};

/// Runs that gather at a time, since each requests everything from the API server; others wait as `Running`.
const GATHERING_AT_ONCE: usize = 2;

/// The state that all runs share.
pub struct RunContext {
    pub client: Client,
    pub settings: Settings,
    pub store: ArchiveStore,
    pub uploads: Option<Uploads>,
    pub started: Instant,
    pub counts: Counts,
    pub(super) gathering: Semaphore,
    /// Limits the uploads of all runs together.
    turns: ConcurrencyLimit,
    /// The invalid values of the cluster's configuration that were reported last.
    told: Mutex<Vec<String>>,
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Uploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uploads").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

/// The upload settings, checked.
pub struct Uploads {
    pub outlet: Outlet,
    pub endpoints: Endpoints,
    pub token: TokenSource,
    pub pacing: gather::upload::Pacing,
}

impl RunContext {
    pub fn new(
        client: Client,
        settings: Settings,
        store: ArchiveStore,
        uploads: Option<Uploads>,
        counts: Counts,
    ) -> Self {
        let gathering = Semaphore::new(GATHERING_AT_ONCE);
        let (turns, told) = (ConcurrencyLimit::default(), Mutex::default());
        Self { client, settings, store, uploads, started: Instant::now(), counts, gathering, turns, told }
    }

    /// Reads the current configuration. Each invalid value is reported once.
    pub(super) async fn config(&self) -> Result<Config, ConfigError> {
        let config = Config::read(&self.client, &self.settings).await?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != config.refused {
            for refused in &config.refused {
                warn!(refused, "a value of the configuration does not count");
            }
            told.clone_from(&config.refused);
        }
        Ok(config)
    }

    /// Returns the source of the upload token, if uploads are configured.
    pub(super) fn token(&self, config: &Config) -> Option<TokenSource> {
        let own = self.uploads.as_ref().map(|uploads| uploads.token.clone());
        own.or_else(|| config.upload.as_ref().map(|_| TokenSource::pull_secret(self.client.clone())))
    }

    /// Creates the upload client with the cluster's id; None if uploads are not configured.
    pub(super) async fn ingress(&self, config: &Config) -> Result<Option<Ingress>, IngressError> {
        let (Some(url), Some(token)) = (&config.upload, self.token(config)) else { return Ok(None) };
        let settings = self.settings.upload.as_ref();
        let (outlet, pacing) = match &self.uploads {
            Some(Uploads { outlet, pacing, .. }) => (outlet.clone(), *pacing),
            None => (self.settings.outlet(None)?, gather::upload::Pacing::default()),
        };
        let endpoints = match &self.uploads {
            Some(uploads) if settings.is_some_and(|settings| settings.url == *url) => {
                uploads.endpoints.clone()
            }
            _ => {
                let advisor = settings.map_or(ADVISOR, |settings| &settings.advisor_url);
                Endpoints::new(url, settings.and_then(|settings| settings.results_url.as_deref()), advisor)?
            }
        };
        let cluster_id = match &self.settings.cluster_id {
            Some(id) => id.clone(),
            None => cluster::id(&self.client).await?,
        };
        Ok(Some(Ingress {
            transport: outlet.transport(config.proxies.clone()),
            endpoints: endpoints.with(config.status.clone(), config.report.clone()),
            token,
            cluster_id,
            pacing,
            turns: self.turns.clone(),
        }))
    }

    /// Creates the upload client with the current configuration.
    pub(super) async fn current_ingress(&self) -> Result<Option<Ingress>, IngressError> {
        let config = self.config().await?;
        self.ingress(&config).await
    }
}

/// Why there is no upload client.
#[derive(Debug, thiserror::Error)]
pub(super) enum IngressError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Id(#[from] cluster::IdError),
    #[error("upload URL: {0}")]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Transport(#[from] TransportSetupError),
}
