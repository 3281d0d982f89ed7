//! Creates DataGathers periodically: a new one whenever the newest is old enough. It is then run like any other.
//!
//! What is due is derived from the objects, so that a restart or a change of leader never causes an early, late or duplicate
//! gathering.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt};
use tracing::{debug, info};

use super::Context;
use super::config::{Config, ConfigError};
use super::crd::{DataGather, DataGatherSpec};
use super::defaults::{self, DefaultsError};
use super::health::Disabled;
use crate::controllers::kit::periodic::UNTIL_WOKEN;
use crate::gather::upload::TokenError;
use crate::telemetry::with_causes;

/// The prefix of the names of periodic gatherings. If they are disabled, objects with it are ignored: they belong to another operator.
pub(super) const PREFIX: &str = "periodic-gathering-";

/// Why no gathering was created.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeriodicError {
    #[error("cannot list, read or create a DataGather: {}", with_causes(.0))]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Creates a DataGather if one is due; returns when to check again. The first one is due when the cluster itself has
/// the age of an interval: one that is being installed has nothing to show.
///
/// # Errors
/// [`PeriodicError`], also when uploads are configured and there is no token.
pub(super) async fn round(context: Arc<Context>) -> Result<Duration, PeriodicError> {
    let config = context.run_context.config().await?;
    let Some(every) = config.every else { return Ok(UNTIL_WOKEN) };
    let spec = asked_for(&context, &config).await?;
    let Some(spec) = spec else {
        debug!("periodic gathering is switched off by the configuration");
        return Ok(UNTIL_WOKEN);
    };
    let left = |since| left(since, every, context.settings().clock.now());
    let gatherings: Api<DataGather> = Api::all(context.client.clone());
    let newest = newest(&gatherings).await?;
    let since = match &newest {
        Some((_, created)) => Some(*created),
        None => made(&context).await?,
    };
    if let Some(left) = since.map(left).filter(|left| !left.is_zero()) {
        return Ok(left);
    }
    if let Some((name, _)) = newest {
        // Registered before the object is read, since it may end right after that.
        context.changes.until_ended(&name);
        if under_way(&context, &name).await? {
            debug!(name, "still under way, so no other is begun");
            return Ok(UNTIL_WOKEN);
        }
    }
    let made = gatherings.create(&PostParams::default(), &wanted(spec)).await?;
    info!(name = made.name_any(), "periodic gathering asked for");
    Ok(every)
}

/// Returns the spec of the next gathering; None if periodic gathering is disabled. Reports either in the ClusterOperator.
async fn asked_for(context: &Context, config: &Config) -> Result<Option<DataGatherSpec>, PeriodicError> {
    let Some(spec) = defaults::read(&context.client).await? else {
        context.health.asked_for(Some(&Disabled::ByConfiguration));
        return Ok(None);
    };
    if let Some(token) = context.run_context.token(config)
        && let Err(error) = token.read().await
    {
        context.health.asked_for(Some(&Disabled::NoToken(error.to_string())));
        return Err(error.into());
    }
    context.health.asked_for(None);
    Ok(Some(spec))
}

/// Returns when the cluster was created.
async fn made(context: &Context) -> Result<Option<Timestamp>, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    let system = namespaces.get_metadata_opt("kube-system").await?;
    Ok(system.and_then(|namespace| Some(namespace.metadata.creation_timestamp?.0)))
}

async fn newest(gatherings: &Api<DataGather>) -> Result<Option<(String, Timestamp)>, kube::Error> {
    let listed = gatherings.list_metadata(&ListParams::default()).await?;
    let periodic = listed.items.into_iter().filter_map(|object| {
        let created = object.metadata.creation_timestamp?.0;
        Some((object.metadata.name?, created)).filter(|(name, _)| name.starts_with(PREFIX))
    });
    Ok(periodic.max_by_key(|(_, created)| *created))
}

/// Returns the rest of `every` since `created`, at most all of it if the clock was set back.
fn left(created: Timestamp, every: Duration, now: Timestamp) -> Duration {
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    every.saturating_sub(age)
}

async fn under_way(context: &Context, name: &str) -> Result<bool, kube::Error> {
    let gatherings: Api<DeserializeGuard<DataGather>> = Api::all(context.client.clone());
    let found = gatherings.get_opt(name).await?;
    // An object that cannot be decoded is never run.
    Ok(found.and_then(|object| object.0.ok()).is_some_and(|object| !object.has_ended()))
}

fn wanted(spec: DataGatherSpec) -> DataGather {
    let metadata = ObjectMeta { generate_name: Some(PREFIX.to_owned()), ..ObjectMeta::default() };
    DataGather { metadata, spec, status: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_an_interval() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let every = Duration::from_secs(100);
        for (created, now, expected) in [(0, 0, 100), (0, 30, 70), (0, 100, 0), (0, 1_000, 0), (50, 20, 100)]
        {
            assert_eq!(left(at(created), every, at(now)), Duration::from_secs(expected), "{created} {now}");
        }
    }
}
