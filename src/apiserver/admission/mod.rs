//! Admits or refuses writes: runs built-in plugins, mutating policies and mutating webhooks before validation, then
//! validating plugins, policies and webhooks after it.
//!
//! Each is asked only once those before it admit, in the order of kube-apiserver: [`plugins`], then policies, then
//! webhooks.

mod from_files;
mod host;
mod plugins;
mod policies;
mod policy_keys;
mod review;
mod webhook;

pub(crate) use from_files::{MARK, file_of};
pub(crate) use plugins::resource_quota as quota;
pub use plugins::{AdmissionConfiguration, AdmissionPlugins, PluginError, SettingsError};
pub(crate) use plugins::{Offline, SERVICE_ACCOUNTS};
pub(crate) use policy_keys::{BINDINGS, MUTATING_BINDING_KEY, MUTATING_POLICY_KEY, POLICIES};
pub(crate) use review::Review;

use std::sync::Arc;
use std::time::Instant;

use admit_policy::webhook::Kind;
use admit_policy::{Access, AccessAttributes, Reinvocation, Schemas, UserInfo};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::conversion::Webhook;
use crate::metrics::{AdmissionMetrics, Step};
use crate::objects::Objects;
use crate::resources::ResourceInfo;
use crate::served::ScalePaths;
use crate::status::Refusal;

use self::plugins::{Live, MUTATING_WEBHOOKS, Request, VALIDATING_POLICIES, VALIDATING_WEBHOOKS};
use self::policies::Policies;
use self::webhook::Caller;

/// Holds the state of admission: settings of plugins and compiled policies.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    plugins: AdmissionPlugins,
    /// The settings of the plugins, and what they remember between requests.
    live: Live,
    policies: Policies,
    /// What webhooks and policies did.
    metrics: AdmissionMetrics,
}

/// Gives admission what it reads from the cluster that a write goes to.
pub(crate) trait Cluster: Objects {
    /// Returns the webhook that converts objects of this resource between versions, if the resource has one.
    fn converter(&self, info: &ResourceInfo) -> Option<Arc<Webhook>>;

    /// Returns whether the user may do what the attributes describe, and why: for policies and plugins that check access.
    fn access(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access;

    /// Creates a namespace, as the server itself.
    fn make_namespace<'r>(&'r self, name: &'r str) -> BoxFuture<'r, Result<(), Refusal>>;

    /// Returns the schemas of the kinds whose objects policies change.
    fn schemas(&self) -> &dyn Schemas;
}

/// An object that admission changed.
pub(crate) struct Mutated {
    pub(crate) object: Value,
    /// Whether policies or webhooks changed it: they do not see fields that were sent empty.
    pub(crate) is_rewritten: bool,
}

/// Records which policies and webhooks are to be invoked again.
#[derive(Debug, Default)]
struct Again {
    policies: Reinvocation,
    webhooks: webhook::Reinvocation,
}

impl Again {
    fn is_wanted(&self) -> bool {
        self.policies.is_wanted() || self.webhooks.is_wanted()
    }

    fn begin_second(&mut self) {
        self.policies.begin_second();
        self.webhooks.begin_second();
    }
}

impl Admission {
    /// Creates the state for these plugins.
    pub(crate) fn new(plugins: AdmissionPlugins) -> Self {
        Self { live: plugins.live(), plugins, ..Self::default() }
    }

    /// Copies the state for another cluster, with the compiled policies if they are `current`.
    pub(crate) fn fork(&self, current: bool) -> Self {
        Self {
            plugins: self.plugins.clone(),
            live: self.plugins.live(),
            policies: self.policies.fork(current),
            metrics: AdmissionMetrics::default(),
        }
    }

    /// Returns what the write consumes that the settings limit and no quota of its namespace covers.
    pub(crate) fn uncovered(
        &self,
        quotas: impl FnOnce() -> Vec<Arc<Value>>,
        written: quota::Written<'_>,
    ) -> Option<quota::Uncovered> {
        self.live.uncovered(quotas, written)
    }

    /// Returns the counts of what webhooks and policies did.
    pub(crate) fn metrics(&self) -> &AdmissionMetrics {
        &self.metrics
    }

    pub(crate) fn plugins(&self) -> &AdmissionPlugins {
        &self.plugins
    }

    /// Runs plugins, mutating policies and mutating webhooks on the object that is to be written; returns None when none of
    /// them changes it. Every write passes here first. Where policies or webhooks changed the object, all run once more,
    /// except those whose reinvocation policy does not ask for that.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn mutate(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
    ) -> Result<Option<Mutated>, Refusal> {
        self.measured(Step::Admit, review, self.mutate_all(cluster, review)).await
    }

    /// Measures a step of admission.
    async fn measured<T>(
        &self,
        step: Step,
        review: &Review<'_>,
        run: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let began = Instant::now();
        let result = run.await;
        self.metrics.step(step, review.operation.as_str(), result.is_err(), began.elapsed());
        result
    }

    async fn mutate_all(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
    ) -> Result<Option<Mutated>, Refusal> {
        from_files::refuse(cluster, review)?;
        let mut again = Again::default();
        let first = self.mutate_once(cluster, review, &mut again).await?;
        if !again.is_wanted() {
            return Ok(first);
        }
        again.begin_second();
        let object = first.as_ref().map(|mutated| &mutated.object).or(review.object);
        let second =
            self.mutate_once(cluster, &review.seen_as(object, review.old_object), &mut again).await?;
        Ok(match (first, second) {
            (first, None) => first,
            (first, Some(second)) => {
                let is_rewritten = second.is_rewritten || first.is_some_and(|first| first.is_rewritten);
                Some(Mutated { is_rewritten, ..second })
            }
        })
    }

    async fn mutate_once(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        again: &mut Again,
    ) -> Result<Option<Mutated>, Refusal> {
        let changed = self.plug(cluster, review).await?;
        let seen = review.seen_as(changed.as_ref().or(review.object), review.old_object);
        let rewritten = self.rewrite(cluster, &seen, again).await?;
        let is_rewritten = rewritten.is_some();
        Ok(rewritten.or(changed).map(|object| Mutated { object, is_rewritten }))
    }

    /// Returns the object as the plugins leave it, if they change it.
    async fn plug(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<Option<Value>, Refusal> {
        if review.call.admitted {
            return Ok(None);
        }
        let mut request = Request::new(cluster, review, &self.live);
        self.plugins.mutate(&mut request).await?;
        Ok(request.into_changed())
    }

    /// Returns what policies and webhooks make of the object, or of the scale for a request to the scale subresource.
    async fn rewrite(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        again: &mut Again,
    ) -> Result<Option<Value>, Refusal> {
        if review.is_exempt() {
            return Ok(None);
        }
        let Some((object, paths)) = review.object.zip(review.call.scale()) else {
            return self.rewrite_sent(cluster, review, again).await;
        };
        let (scale, old) = scales(paths, review);
        let changed =
            self.rewrite_sent(cluster, &review.seen_as(scale.as_ref(), old.as_ref()), again).await?;
        Ok(changed.map(|scale| paths.with_scale(object, &scale)))
    }

    async fn rewrite_sent(
        &self,
        cluster: &dyn Cluster,
        review: &Review<'_>,
        again: &mut Again,
    ) -> Result<Option<Value>, Refusal> {
        let by_policies = if self.plugins.is_enabled(plugins::MUTATING_POLICIES) {
            self.policies.mutate(cluster, review, &mut again.policies).await?
        } else {
            None
        };
        if !self.plugins.is_enabled(MUTATING_WEBHOOKS) {
            return Ok(by_policies);
        }
        let seen = review.seen_as(by_policies.as_ref().or(review.object), review.old_object);
        let caller =
            Caller { cluster, users: self.plugins.webhook_users(Kind::Mutating), metrics: &self.metrics };
        let by_webhooks = webhook::mutate(&caller, &seen, &mut again.webhooks).await?;
        Ok(by_webhooks.or(by_policies))
    }

    /// Drops cached policies if a change at this storage key concerns them.
    pub(crate) fn written(&self, storage_key: &str) {
        if policy_keys::concerns(storage_key) {
            self.policies.forget();
        }
    }

    /// Runs validating plugins, policies and webhooks. Warnings are added to the call.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn admit(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<(), Refusal> {
        self.measured(Step::Validate, review, self.validate_all(cluster, review)).await
    }

    async fn validate_all(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<(), Refusal> {
        if !review.call.admitted {
            self.plugins.validate(&Request::new(cluster, review, &self.live)).await?;
        }
        if review.is_exempt() {
            return Ok(());
        }
        match review.call.scale() {
            None => self.ask(cluster, review).await,
            Some(paths) => {
                let (scale, old) = scales(paths, review);
                self.ask(cluster, &review.seen_as(scale.as_ref(), old.as_ref())).await
            }
        }
    }

    async fn ask(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<(), Refusal> {
        if self.plugins.is_enabled(VALIDATING_POLICIES) {
            let decide = || self.policies.decide(cluster, review);
            let decision = review.call.conversions.provide(cluster, decide).await?;
            Policies::settle(decision, review, &self.metrics)?;
        }
        if self.plugins.is_enabled(VALIDATING_WEBHOOKS) {
            let users = self.plugins.webhook_users(Kind::Validating);
            webhook::admit(&Caller { cluster, users, metrics: &self.metrics }, review).await?;
        }
        Ok(())
    }
}

/// Returns the scales of the new and old object, for a request to the scale subresource.
fn scales(paths: &ScalePaths, review: &Review<'_>) -> (Option<Value>, Option<Value>) {
    let scale = |object: Option<&Value>| object.map(|object| paths.scale_of(object));
    (scale(review.object), scale(review.old_object))
}
