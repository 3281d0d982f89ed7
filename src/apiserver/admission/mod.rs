//! Admission of writes: calls stored mutating webhooks before validation, and stored policies and validating webhooks
//! after it.
//!
//! Policies are evaluated first, and validating webhooks called only about what the policies admit, as in
//! kube-apiserver.

mod from_files;
mod host;
mod policies;
mod review;
mod webhook;

pub(crate) use from_files::{MARK, file_of};
pub(crate) use policies::{BINDINGS, POLICIES, validate as validate_policy};
pub(crate) use review::Review;

use std::sync::Arc;

use admit_policy::rbac::AccessRules;
use serde_json::Value;

use crate::conversion::Webhook;
use crate::objects::Objects;
use crate::resources::ResourceInfo;
use crate::served::ScalePaths;
use crate::status::Refusal;

use self::policies::Policies;

/// The state of admission beside the registry.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    policies: Policies,
}

/// What admission reads of the cluster that a write goes to.
pub(crate) trait Cluster: Objects {
    /// The webhook that converts objects of this resource between its versions, where one does.
    fn converter(&self, info: &ResourceInfo) -> Option<Arc<Webhook>>;

    /// The roles and bindings, for policies that ask who may do what.
    fn access_rules(&self) -> Arc<AccessRules>;
}

/// Calls mutating webhooks with the object that is to be written; none when none of them changes it. Every write comes
/// by here first.
///
/// # Errors
/// The refusal of whoever refuses first.
pub(crate) async fn mutate(cluster: &dyn Cluster, review: &Review<'_>) -> Result<Option<Value>, Refusal> {
    from_files::refuse(cluster, review)?;
    if review.is_exempt() {
        return Ok(None);
    }
    let Some((object, paths)) = review.object.zip(review.call.scale()) else {
        return webhook::mutate(cluster, review).await;
    };
    let (scale, old) = scales(paths, review);
    let changed = webhook::mutate(cluster, &review.seen_as(scale.as_ref(), old.as_ref())).await?;
    Ok(changed.map(|scale| paths.with_scale(object, &scale)))
}

impl Admission {
    /// Drops cached policies if a change at this storage key concerns them.
    pub(crate) fn written(&self, storage_key: &str) {
        if Policies::concerns(storage_key) {
            self.policies.forget();
        }
    }

    /// Asks everyone who has a say. Warnings go to the call.
    ///
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn admit(&self, cluster: &dyn Cluster, review: &Review<'_>) -> Result<(), Refusal> {
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
        let decide = || self.policies.admit(cluster, review);
        review.call.conversions.provide(cluster, decide).await?;
        webhook::admit(cluster, review).await
    }
}

/// The scales of both objects of a review: what a request to a scale is about.
fn scales(paths: &ScalePaths, review: &Review<'_>) -> (Option<Value>, Option<Value>) {
    let scale = |object: Option<&Value>| object.map(|object| paths.scale_of(object));
    (scale(review.object), scale(review.old_object))
}
