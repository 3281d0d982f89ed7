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
pub use review::{Operation, Review};

use serde_json::Value;

use crate::registry::{Call, Registry, ScalePaths, WriteOptions};
use crate::status::Refusal;

use self::policies::Policies;

/// The state of admission beside the registry.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    policies: Policies,
}

impl Admission {
    /// Drops cached policies if a change at this storage key concerns them.
    pub(crate) fn written(&self, storage_key: &str) {
        if Policies::concerns(storage_key) {
            self.policies.forget();
        }
    }
}

impl Registry {
    /// Calls mutating webhooks with the object that is to be written; none when none of them changes it. Every write
    /// comes by here first.
    ///
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn mutate(&self, review: &Review<'_>) -> Result<Option<Value>, Refusal> {
        from_files::refuse(self, review)?;
        if review.is_exempt() {
            return Ok(None);
        }
        let Some((object, paths)) = review.object.zip(review.call.scale()) else {
            return webhook::mutate(self, review).await;
        };
        let (scale, old) = scales(paths, review);
        let changed = webhook::mutate(self, &review.seen_as(scale.as_ref(), old.as_ref())).await?;
        Ok(changed.map(|scale| paths.with_scale(object, &scale)))
    }

    /// Asks everyone who has a say. Warnings go to the call.
    ///
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn admit(&self, review: &Review<'_>) -> Result<(), Refusal> {
        if review.is_exempt() {
            return Ok(());
        }
        match review.call.scale() {
            None => self.ask(review).await,
            Some(paths) => {
                let (scale, old) = scales(paths, review);
                self.ask(&review.seen_as(scale.as_ref(), old.as_ref())).await
            }
        }
    }

    /// Applies admission to an object that is sent to a subresource and not stored.
    ///
    /// # Errors
    /// The refusal of whoever refuses first.
    pub(crate) async fn admitted(
        &self,
        call: &Call,
        name: &str,
        sent: Value,
        options: &WriteOptions,
    ) -> Result<Value, Refusal> {
        let review = Review::create(call, name, &sent, options.dry_run, options.to_value());
        let changed = self.mutate(&review).await?;
        let Some(changed) = changed else { return self.admit(&review).await.map(|()| sent) };
        self.admit(&review.with_object(&changed)).await.map(|()| changed)
    }

    async fn ask(&self, review: &Review<'_>) -> Result<(), Refusal> {
        let decide = || self.admission.policies.admit(self, review);
        self.converting(&review.call.conversions, decide).await?;
        webhook::admit(self, review).await
    }
}

/// The scales of both objects of a review: what a request to a scale is about.
fn scales(paths: &ScalePaths, review: &Review<'_>) -> (Option<Value>, Option<Value>) {
    let scale = |object: Option<&Value>| object.map(|object| paths.scale_of(object));
    (scale(review.object), scale(review.old_object))
}
