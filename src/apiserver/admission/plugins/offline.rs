//! Runs plugins where there is no cluster, only some of its objects: each according to its [`Alone`].

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::alone::{Alone, Turn};
use super::{
    AdmissionConfiguration, AdmissionPlugins, CHAIN, Link, Live, MUTATING_POLICIES, MUTATING_WEBHOOKS,
    Plugin, PluginError, Request, VALIDATING_POLICIES, VALIDATING_WEBHOOKS, resource_quota,
};
use crate::admission::Cluster;
use crate::admission::review::Review;
use crate::status::Refusal;

/// The resources that plugins look up.
const LOOKED_UP: [&str; 9] = [
    "ingressclasses",
    "limitranges",
    "namespaces",
    "nodes",
    "priorityclasses",
    "resourcequotas",
    "runtimeclasses",
    "serviceaccounts",
    "storageclasses",
];

/// The plugins that run policies and webhooks, which cannot run without a cluster.
const OTHERS: [&str; 4] = [MUTATING_POLICIES, MUTATING_WEBHOOKS, VALIDATING_POLICIES, VALIDATING_WEBHOOKS];

/// The plugins that run over given objects.
#[derive(Debug, Default)]
pub(crate) struct Offline {
    plugins: AdmissionPlugins,
    asked: BTreeSet<String>,
    live: Live,
}

impl Offline {
    /// # Errors
    /// Those of [`AdmissionPlugins::configured`], and plugins that cannot run without a cluster.
    pub(crate) fn new(
        enabled: &[String],
        disabled: &[String],
        configuration: &AdmissionConfiguration,
    ) -> Result<Self, PluginError> {
        let is_elsewhere = |name: &&String| OTHERS.contains(&name.as_str());
        let never = |name: &&String| CHAIN.iter().any(|link| link.name() == *name && !link.acts_alone());
        let wrong = enabled.iter().find(never).or_else(|| enabled.iter().chain(disabled).find(is_elsewhere));
        if let Some(name) = wrong {
            return Err(PluginError::NeedsCluster(name.clone()));
        }
        let plugins = AdmissionPlugins::configured(enabled, disabled, configuration)?;
        let live = plugins.live();
        Ok(Self { plugins, asked: enabled.iter().cloned().collect(), live })
    }

    /// Returns whether plugins look up objects of the resource.
    pub(crate) fn looks_up(plural: &str) -> bool {
        LOOKED_UP.contains(&plural)
    }

    /// Returns whether `ResourceQuota` is enabled.
    pub(crate) fn charges(&self) -> bool {
        self.plugins.is_enabled(resource_quota::PLUGIN)
    }

    /// Returns what the write consumes that the settings limit and no quota covers.
    pub(crate) fn uncovered(
        &self,
        quotas: impl FnOnce() -> Vec<Arc<Value>>,
        written: resource_quota::Written<'_>,
    ) -> Option<resource_quota::Uncovered> {
        self.live.uncovered(quotas, written)
    }

    /// Runs the mutating plugins; returns the object if they change it. Assumptions are added to `assumed`.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) fn mutate(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        assumed: &mut Vec<String>,
    ) -> Result<Option<Value>, Refusal> {
        let mut request = Request::new(cluster, review, &self.live);
        for plugin in Self::chain() {
            if let Some(mutate) = plugin.mutate
                && self.acts(plugin, &request, assumed)
            {
                mutate(&mut request)?;
            }
        }
        Ok(request.into_changed())
    }

    /// Runs the validating plugins. Assumptions are added to `assumed`.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) fn validate(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        assumed: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        let request = Request::new(cluster, review, &self.live);
        for plugin in Self::chain() {
            if let Some(validate) = plugin.validate
                && self.acts(plugin, &request, assumed)
            {
                validate(&request)?;
            }
        }
        Ok(())
    }

    fn chain() -> impl Iterator<Item = &'static Plugin> {
        CHAIN.iter().filter_map(|link| match link {
            Link::Now(plugin) => Some(plugin),
            Link::Mutating(_) | Link::Validating(_) => None,
        })
    }

    fn acts(&self, plugin: &Plugin, request: &Request<'_>, assumed: &mut Vec<String>) -> bool {
        if !self.plugins.is_enabled(plugin.name) {
            return false;
        }
        let turn = match plugin.alone {
            Alone::Acts => Turn::Acts,
            Alone::WhereAsked => Turn::acts_if(self.asked.contains(plugin.name)),
            Alone::Never => Turn::Passes,
            Alone::By(turn) => turn(request),
        };
        match turn {
            Turn::Acts => true,
            Turn::Passes => false,
            Turn::Assumes(what) => {
                if !assumed.contains(&what) {
                    assumed.push(what);
                }
                false
            }
        }
    }
}
