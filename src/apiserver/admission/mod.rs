//! Admission of writes: the plugins that are built in and stored policies and webhooks that change objects before
//! validation, and plugins, stored policies and validating webhooks after it.
//!
//! Each is asked only about what those before admit, in the order of kube-apiserver: [`plugins`], then policies, then
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

use admit_policy::webhook::Kind;
use admit_policy::{Access, AccessAttributes, Reinvocation, Schemas, UserInfo};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::conversion::Webhook;
use crate::objects::Objects;
use crate::resources::ResourceInfo;
use crate::served::ScalePaths;
use crate::status::Refusal;

use self::plugins::{Live, MUTATING_WEBHOOKS, Request, VALIDATING_POLICIES, VALIDATING_WEBHOOKS};
use self::policies::Policies;

/// The state of admission beside the registry.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    plugins: AdmissionPlugins,
    /// What the plugins are set to and remember.
    live: Live,
    policies: Policies,
}

/// What admission reads of the cluster that a write goes to.
pub(crate) trait Cluster: Objects {
    /// The webhook that converts objects of this resource between its versions, where one does.
    fn converter(&self, info: &ResourceInfo) -> Option<Arc<Webhook>>;

    /// Whether a user may do it, and why: for policies and plugins that ask.
    fn access(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access;

    /// Makes a namespace, as the server itself.
    fn make_namespace<'r>(&'r self, name: &'r str) -> BoxFuture<'r, Result<(), Refusal>>;

    /// What is known of the kinds whose objects policies change.
    fn schemas(&self) -> &dyn Schemas;
}

/// An object that admission changed.
pub(crate) struct Mutated {
    pub(crate) object: Value,
    /// Whether policies or webhooks changed it, which do not see what was sent with nothing in it.
    pub(crate) is_rewritten: bool,
}

/// Who is to see the object a second time.
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
    /// That runs these plugins.
    pub(crate) fn new(plugins: AdmissionPlugins) -> Self {
        Self { live: plugins.live(), plugins, policies: Policies::default() }
    }

    /// The same for another cluster, with its compiled policies where those are `current`.
    pub(crate) fn fork(&self, current: bool) -> Self {
        Self {
            plugins: self.plugins.clone(),
            live: self.plugins.live(),
            policies: self.policies.fork(current),
        }
    }

    /// What of a write no quota of its namespace covers, although the settings want one.
    pub(crate) fn uncovered(
        &self,
        quotas: impl FnOnce() -> Vec<Arc<Value>>,
        written: quota::Written<'_>,
    ) -> Option<quota::Uncovered> {
        self.live.uncovered(quotas, written)
    }

    pub(crate) fn plugins(&self) -> &AdmissionPlugins {
        &self.plugins
    }

    /// Lets plugins, policies and mutating webhooks change the object that is to be written; none when none of them
    /// changes it. Every write comes by here first. Where policies or webhooks changed it, all see it once more, but for
    /// those that did not ask for that.
    ///
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn mutate(
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

    /// What plugins make of the object, if they change it.
    async fn plug(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<Option<Value>, Refusal> {
        if review.call.admitted {
            return Ok(None);
        }
        let mut request = Request::new(cluster, review, &self.live);
        self.plugins.mutate(&mut request).await?;
        Ok(request.into_changed())
    }

    /// What policies and webhooks make of the object, or of the scale that the request is about.
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
        let users = self.plugins.webhook_users(Kind::Mutating);
        let by_webhooks = webhook::mutate(cluster, &seen, &mut again.webhooks, users).await?;
        Ok(by_webhooks.or(by_policies))
    }

    /// Drops cached policies if a change at this storage key concerns them.
    pub(crate) fn written(&self, storage_key: &str) {
        if policy_keys::concerns(storage_key) {
            self.policies.forget();
        }
    }

    /// Asks everyone who has a say. Warnings go to the call.
    ///
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn admit(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<(), Refusal> {
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
            let decide = || self.policies.admit(cluster, review);
            review.call.conversions.provide(cluster, decide).await?;
        }
        if self.plugins.is_enabled(VALIDATING_WEBHOOKS) {
            webhook::admit(cluster, review, self.plugins.webhook_users(Kind::Validating)).await?;
        }
        Ok(())
    }
}

/// The scales of both objects of a review: what a request to a scale is about.
fn scales(paths: &ScalePaths, review: &Review<'_>) -> (Option<Value>, Option<Value>) {
    let scale = |object: Option<&Value>| object.map(|object| paths.scale_of(object));
    (scale(review.object), scale(review.old_object))
}
