//! Runs plugins where there is no cluster, only some of its objects. A plugin acts by what is given: one that looks nothing up, and
//! changes every object of a kind alike, acts only where it is asked for by name; where an object names another that is not given,
//! that is taken as being there, and is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use admit_apimachinery::go;
use serde_json::Value;

use super::pods::text;
use super::{
    AdmissionConfiguration, AdmissionPlugins, CHAIN, Link, Live, MUTATING_POLICIES, MUTATING_WEBHOOKS,
    PluginError, Request, VALIDATING_POLICIES, VALIDATING_WEBHOOKS, auto_provision, certificates,
    claim_resize, default_toleration_seconds, event_rate_limit, image_policy, namespace_lifecycle,
    node_features, node_restriction, node_selector, owner_references, pod_resize, pod_security,
    pod_tolerations, priority, resource_quota, runtime_class, service_account, storage_in_use, taint_nodes,
};
use crate::admission::Cluster;
use crate::admission::review::{Operation, Review};
use crate::object;
use crate::resources::Scope;
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

/// Those that look nothing up and change every object of a kind: they say nothing of one object that they would not say of all.
const ALIKE: [&str; 3] =
    [default_toleration_seconds::PLUGIN.name, storage_in_use::PLUGIN.name, taint_nodes::PLUGIN.name];

/// Those that ask an authorizer, a backend or the clock, or write: nobody of these is here.
const ASKING: [&str; 8] = [
    auto_provision::PLUGIN.name,
    certificates::APPROVAL.name,
    certificates::ATTEST.name,
    certificates::SIGNING.name,
    event_rate_limit::PLUGIN.name,
    image_policy::PLUGIN.name,
    node_restriction::PLUGIN.name,
    owner_references::PLUGIN.name,
];

/// Those that are no plugins of objects.
const OTHERS: [&str; 4] = [MUTATING_POLICIES, MUTATING_WEBHOOKS, VALIDATING_POLICIES, VALIDATING_WEBHOOKS];

/// Which plugins run over given objects.
#[derive(Debug, Default)]
pub(crate) struct Offline {
    plugins: AdmissionPlugins,
    asked: BTreeSet<String>,
    live: Live,
}

/// What a plugin does about a request.
enum Turn {
    Acts,
    /// It has nothing to go by.
    Passes,
    /// It would look up something that is not given.
    Assumes(String),
}

impl Offline {
    /// # Errors
    /// As those of [`AdmissionPlugins::configured`], and for plugins that cannot run without a cluster.
    pub(crate) fn new(
        enabled: &[String],
        disabled: &[String],
        configuration: &AdmissionConfiguration,
    ) -> Result<Self, PluginError> {
        let is_elsewhere = |name: &&String| OTHERS.contains(&name.as_str());
        let asks = |name: &&String| ASKING.contains(&name.as_str());
        let wrong = enabled.iter().find(asks).or_else(|| enabled.iter().chain(disabled).find(is_elsewhere));
        if let Some(name) = wrong {
            return Err(PluginError::NeedsCluster(name.clone()));
        }
        let plugins = AdmissionPlugins::configured(enabled, disabled, configuration)?;
        let live = plugins.live();
        Ok(Self { plugins, asked: enabled.iter().cloned().collect(), live })
    }

    /// Whether plugins look up objects of the resource.
    pub(crate) fn looks_up(plural: &str) -> bool {
        LOOKED_UP.contains(&plural)
    }

    /// Whether quotas are kept.
    pub(crate) fn charges(&self) -> bool {
        self.plugins.is_enabled(resource_quota::PLUGIN)
    }

    /// What of a write no quota covers, although the settings want one.
    pub(crate) fn uncovered(
        &self,
        quotas: impl FnOnce() -> Vec<Arc<Value>>,
        written: resource_quota::Written<'_>,
    ) -> Option<resource_quota::Uncovered> {
        self.live.uncovered(quotas, written)
    }

    /// The object, if plugins change it.
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub(crate) fn mutate(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        assumed: &mut Vec<String>,
    ) -> Result<Option<Value>, Refusal> {
        let mut request = Request::new(cluster, review, &self.live);
        for plugin in Self::chain() {
            if let Some(mutate) = plugin.mutate
                && self.acts(plugin.name, &request, assumed)
            {
                mutate(&mut request)?;
            }
        }
        Ok(request.into_changed())
    }

    /// Asks those that look at the object.
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub(crate) fn validate(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        assumed: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        let request = Request::new(cluster, review, &self.live);
        for plugin in Self::chain() {
            if let Some(validate) = plugin.validate
                && self.acts(plugin.name, &request, assumed)
            {
                validate(&request)?;
            }
        }
        Ok(())
    }

    fn chain() -> impl Iterator<Item = &'static super::Plugin> {
        CHAIN.iter().filter_map(|link| match link {
            Link::Now(plugin) => Some(plugin),
            Link::Mutating(_) | Link::Validating(_) => None,
        })
    }

    fn acts(&self, name: &str, request: &Request<'_>, assumed: &mut Vec<String>) -> bool {
        let is_left_off = ALIKE.contains(&name) && !self.asked.contains(name);
        if is_left_off || ASKING.contains(&name) || !self.plugins.is_enabled(name) {
            return false;
        }
        match self.turn(name, request) {
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

    fn turn(&self, name: &str, request: &Request<'_>) -> Turn {
        if name == pod_security::PLUGIN.name {
            return self.of_pod_security(request);
        }
        if name == namespace_lifecycle::PLUGIN.name {
            let is_namespaced = request.review.call.info.scope == Scope::Namespaced;
            return acts_if(!is_namespaced || is_namespace_given(request));
        }
        if [node_selector::PLUGIN.name, pod_tolerations::PLUGIN.name, namespace_lifecycle::EXISTS.name]
            .contains(&name)
        {
            return acts_if(is_namespace_given(request));
        }
        if name == claim_resize::PLUGIN.name {
            return of_resize(request);
        }
        if [node_features::PLUGIN.name, pod_resize::PLUGIN.name].contains(&name) {
            let node = text(request.object(), "/spec/nodeName");
            let is_resize = request.is(Operation::Update, ("", "pods", "resize"));
            return if is_resize { named(request, "nodes", "", node) } else { Turn::Passes };
        }
        if name == service_account::PLUGIN.name {
            return of_account(request);
        }
        if !request.creates("", "pods") {
            return Turn::Acts;
        }
        let pod = request.object();
        if name == priority::PLUGIN.name {
            let class = text(pod, "/spec/priorityClassName");
            // Without a class in sight, none may be the default.
            return match class {
                "" => acts_if(request.all("priorityclasses", None).is_ok_and(|classes| !classes.is_empty())),
                class => named(request, "priorityclasses", "", class),
            };
        }
        if name == runtime_class::PLUGIN.name {
            return named(request, "runtimeclasses", "", text(pod, "/spec/runtimeClassName"));
        }
        Turn::Acts
    }

    /// Where neither labels nor settings say anything, everything is let in.
    fn of_pod_security(&self, request: &Request<'_>) -> Turn {
        let is_labelled = || {
            let namespace = request.stored("namespaces", "", request.namespace());
            namespace.is_some_and(|namespace| {
                object::meta_map(&namespace, "labels")
                    .any(|(key, _)| key.starts_with("pod-security.kubernetes.io/"))
            })
        };
        let is_set = self.live.settings.pod_security != super::settings::PodSecurity::default();
        acts_if(request.review.call.info.scope == Scope::Cluster || is_set || is_labelled())
    }
}

fn acts_if(acts: bool) -> Turn {
    if acts { Turn::Acts } else { Turn::Passes }
}

fn is_namespace_given(request: &Request<'_>) -> bool {
    request.stored("namespaces", "", request.namespace()).is_some()
}

/// What is named has to be there; a request that names nothing goes on.
fn named(request: &Request<'_>, plural: &str, namespace: &str, name: &str) -> Turn {
    if name.is_empty() || request.stored(plural, namespace, name).is_some() {
        return Turn::Acts;
    }
    let resources = request.cluster.resources();
    let kind = resources.rows().iter().find(|row| row.builtin && row.plural == plural);
    let kind = kind.map_or(plural, |row| row.kind.as_str());
    let whole = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    Turn::Assumes(format!("{kind} {}", go::quote(&whole)))
}

/// Every namespace has an account by default; of it nothing is known where it is not given.
fn of_account(request: &Request<'_>) -> Turn {
    let is_of_pod =
        request.creates("", "pods") || request.is(Operation::Update, ("", "pods", "ephemeralcontainers"));
    if !is_of_pod || request.is_mirror_pod() {
        return Turn::Acts;
    }
    match text(request.object(), "/spec/serviceAccountName") {
        "" | service_account::DEFAULT => acts_if(
            request.stored("serviceaccounts", request.namespace(), service_account::DEFAULT).is_some(),
        ),
        name => named(request, "serviceaccounts", request.namespace(), name),
    }
}

/// Manifests say neither whether a claim is bound nor, most of the time, by which class.
fn of_resize(request: &Request<'_>) -> Turn {
    if !request.updates("", "persistentvolumeclaims") || text(request.old(), "/status/phase").is_empty() {
        return Turn::Passes;
    }
    named(request, "storageclasses", "", text(request.object(), "/spec/storageClassName"))
}
