//! Cleans up before an object is deleted, with a finalizer of the controller and a time limit.
//!
//! The finalizer is set before anything is created that has to be cleaned up, and removed after that was done.
//! If cleaning up fails, a condition of the object and an event say so; after a time limit of the controller the
//! finalizer is removed all the same, which is reported as well. A controller without a time limit keeps its object
//! for ever.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tracing::warn;

use super::controller::{Failure, Next};
use super::events::{Events, Notice};
use super::retry::{Remedy, remedy};
use crate::telemetry::with_causes;

/// The time limit of one attempt to clean up. The next one continues.
const ATTEMPT: Duration = Duration::from_mins(1);

/// The work of a controller that has to be cleaned up. Both methods must be idempotent, also after
/// interrupted attempts, and `clean` is also called for objects for which nothing was done.
pub trait Cleanup: Sync {
    type Object: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug
        + Send
        + Sync
        + 'static;
    type Error: Failure + Sync;

    /// Reconciles an object that is not being deleted.
    fn keep(&self, object: &Self::Object) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// Removes what was created for an object that is being deleted.
    fn clean(&self, object: &Self::Object) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Sets a condition of `object` that says what is not cleaned up. Errors are ignored.
    fn tell(&self, object: &Self::Object, left: &str) -> impl Future<Output = ()> + Send;
}

/// The settings of a controller's finalizer.
#[derive(Clone, Debug)]
pub struct Finalizer {
    /// Its name in `metadata.finalizers`.
    pub name: &'static str,
    /// How long after its deletion an object is kept if it cannot be cleaned up; for ever if None.
    pub patience: Option<Duration>,
}

/// Why an object could not be reconciled or released.
#[derive(Debug, thiserror::Error)]
pub enum FinalizerError<E: std::error::Error + 'static> {
    #[error(transparent)]
    Kept(E),
    #[error("not cleaned up yet: {0}")]
    NotClean(#[source] E),
    #[error("not cleaned up yet: it took longer than {} s", ATTEMPT.as_secs())]
    TooLong,
    #[error("cannot write the finalizer: {}", with_causes(.0))]
    Write(#[source] kube::Error),
    #[error("the object has no name")]
    Unnamed,
}

impl<E: Failure + Sync> Failure for FinalizerError<E> {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Kept(error) => error.remedy(),
            // An object that is being deleted does not change any more: only another attempt helps.
            Self::NotClean(error) => match error.remedy() {
                Remedy::Change => Remedy::Wait,
                other @ (Remedy::Reread | Remedy::Wait | Remedy::After(_) | Remedy::Refused) => other,
            },
            Self::TooLong => Remedy::Wait,
            // The patch tests the list of finalizers, which fails with 422 after a concurrent write.
            Self::Write(kube::Error::Api(status)) if status.code == 422 => Remedy::Reread,
            Self::Write(error) => remedy(error),
            Self::Unnamed => Remedy::Change,
        }
    }
}

impl Finalizer {
    /// Reconciles `object`: adds the finalizer and calls `work`, or cleans up and removes the finalizer. `now` is the
    /// current time.
    ///
    /// # Errors
    /// [`FinalizerError`]; the finalizer then stays as it is.
    pub async fn look<C: Cleanup>(
        &self,
        api: &Api<C::Object>,
        object: &C::Object,
        work: &C,
        events: &Events,
        now: Timestamp,
    ) -> Result<Next, FinalizerError<C::Error>> {
        let next = Mutex::new(Next::Settled);
        let step = |event: Event<C::Object>| async {
            match event {
                Event::Apply(object) => {
                    let looked = work.keep(&object).await.map_err(FinalizerError::Kept)?;
                    *next.lock().unwrap_or_else(PoisonError::into_inner) = looked;
                }
                Event::Cleanup(object) => self.clean(object.as_ref(), work, events, now).await?,
            }
            Ok(Action::await_change())
        };
        match finalizer(api, self.name, object.clone().into(), step).await {
            Ok(_) => Ok(next.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(finalizer::Error::ApplyFailed(error) | finalizer::Error::CleanupFailed(error)) => Err(error),
            // Deleted meanwhile.
            Err(finalizer::Error::RemoveFinalizer(kube::Error::Api(status))) if status.code == 404 => {
                Ok(Next::Settled)
            }
            Err(finalizer::Error::AddFinalizer(error) | finalizer::Error::RemoveFinalizer(error)) => {
                Err(FinalizerError::Write(error))
            }
            Err(finalizer::Error::UnnamedObject | finalizer::Error::InvalidFinalizer) => {
                Err(FinalizerError::Unnamed)
            }
        }
    }

    async fn clean<C: Cleanup>(
        &self,
        object: &C::Object,
        work: &C,
        events: &Events,
        now: Timestamp,
    ) -> Result<(), FinalizerError<C::Error>> {
        let cleaned = self.attempt(object, work.clean(object), events, now).await;
        if let Err(failed) = &cleaned {
            work.tell(object, &with_causes(failed)).await;
        }
        cleaned
    }

    /// Whether the finalizer of `object` may be removed: `cleaning` succeeded, or its time limit is exceeded, which an event
    /// reports. For controllers that write their finalizer themselves.
    ///
    /// # Errors
    /// What is not cleaned up, for a condition; the caller tries again.
    pub async fn attempt<K: Resource<DynamicType = ()>, E: Failure + Sync>(
        &self,
        object: &K,
        cleaning: impl Future<Output = Result<(), E>>,
        events: &Events,
        now: Timestamp,
    ) -> Result<(), FinalizerError<E>> {
        let failed = match timeout(ATTEMPT, cleaning).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => FinalizerError::NotClean(error),
            Err(_) => FinalizerError::TooLong,
        };
        let left = with_causes(&failed);
        let deleted = object.meta().deletion_timestamp.as_ref().map_or(now, |at| at.0);
        let waited = Duration::try_from(now.duration_since(deleted)).unwrap_or_default();
        if self.patience.is_none_or(|patience| waited < patience) {
            return Err(failed);
        }
        warn!(finalizer = self.name, left, "an object is let go without having been cleaned up");
        let note = format!("let go after {} s without having been cleaned up: {left}", waited.as_secs());
        events
            .publish(object, Notice { warning: true, reason: "CleanupAbandoned", action: "Cleanup", note })
            .await;
        Ok(())
    }
}
