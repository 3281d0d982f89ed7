//! Prepares the obfuscation of network data in archives, and stores the table that translates it back.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use tracing::warn;

use super::config::ConfigError;
use super::plan::GatherRequest;
use super::run_context::RunContext;
use super::settings::ObfuscationSettings;
use crate::gather::cluster::{self, Names, NamesError};
use crate::gather::obfuscate::{Obfuscator, PatternError, Rules};
use crate::telemetry::with_causes;

const TRANSLATION_SECRET: &str = "obfuscation-translation-table";

/// How the network data of records is obfuscated.
#[derive(Default)]
pub(super) struct Obfuscation {
    pub(super) obfuscator: Option<Obfuscator>,
    /// Whether names should be obfuscated, but the cluster's names are unknown.
    pub(super) names_unknown: bool,
}

/// Why it is unknown what to obfuscate.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObfuscationError {
    #[error("{0}; it might ask for obfuscation")]
    Config(ConfigError),
    #[error("{0}; grant the right to get it, or give --base-domain")]
    Names(NamesError),
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// # Errors
/// When the cluster may have names that cannot be read.
pub(super) async fn rules(
    run_context: &RunContext,
    request: &GatherRequest,
) -> Result<Obfuscation, ObfuscationError> {
    let config = run_context.config().await.map_err(ObfuscationError::Config)?;
    if !request.obfuscate && !config.obfuscate {
        return Ok(Obfuscation::default());
    }
    let ObfuscationSettings { always: _, networks: further, base_domain, api_host } =
        &run_context.settings.obfuscation;
    let told = match cluster::names(&run_context.client).await {
        Ok(names) => names,
        Err(error) if base_domain.is_some() => {
            warn!(%error, "only the names that were configured are hidden");
            Names::default()
        }
        // The cluster may have names, which would be visible in the archive.
        Err(error) => return Err(ObfuscationError::Names(error)),
    };
    let mut networks = cluster::networks(&run_context.client).await;
    networks.extend(further);
    let both = |told: Option<String>, given: &Option<String>| told.into_iter().chain(given.clone()).collect();
    let rules = Rules {
        networks,
        base_domains: both(told.base_domain, base_domain),
        api_hosts: both(told.api_host, api_host),
    };
    let names_unknown = rules.base_domains.is_empty();
    let obfuscator = Obfuscator::new(&rules)?;
    Ok(Obfuscation { obfuscator: Some(obfuscator), names_unknown })
}

/// Stores the table from stand-ins to addresses, replacing that of the last run. Without it the archive is still useful, but its
/// readers cannot ask the cluster's administrators about an address.
pub(super) async fn keep_translation(
    run_context: &RunContext,
    table: BTreeMap<String, String>,
) -> Option<(String, String)> {
    if table.is_empty() {
        return None;
    }
    let namespace = &run_context.settings.namespace;
    let secrets: Api<Secret> = Api::namespaced(run_context.client.clone(), namespace);
    let secret = Secret {
        metadata: ObjectMeta { name: Some(TRANSLATION_SECRET.to_owned()), ..ObjectMeta::default() },
        string_data: Some(table),
        ..Secret::default()
    };
    match secrets.delete(TRANSLATION_SECRET, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => {
            warn!(error = with_causes(&error), namespace, "old table of obfuscated addresses stays")
        }
    }
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => Some((namespace.clone(), TRANSLATION_SECRET.to_owned())),
        Err(error) => {
            warn!(error = with_causes(&error), namespace, "the table of obfuscated addresses is not kept");
            None
        }
    }
}
