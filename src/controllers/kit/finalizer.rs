//! Clean-up before an object is deleted, by a finalizer of the controller, within a time limit.
//!
//! The finalizer is set before anything is created that would have to be cleaned up, and removed when that is done.
//! If cleaning up fails, a condition of the object and an event say so; after a time that the controller sets the
//! object is released all the same, which is reported as well. A controller that would rather keep its object for
//! ever sets no time.

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

/// How long one attempt to clean up may take. The next one begins from what it left.
const ATTEMPT: Duration = Duration::from_mins(1);

/// The work of a controller that has to be cleaned up. Both methods may be called any number of times, also after
/// attempts that were cut short, and `clean` for objects for which nothing was done.
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

    /// Looks at an object that stays.
    fn keep(&self, object: &Self::Object) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// Removes what was made for an object that is to go.
    fn clean(&self, object: &Self::Object) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Says in a condition of `object` what is not cleaned up. Failing to costs only that.
    fn tell(&self, object: &Self::Object, left: &str) -> impl Future<Output = ()> + Send;
}

/// The settings of a controller's finalizer.
#[derive(Clone, Debug)]
pub struct Finalizer {
    /// Its name in `metadata.finalizers`.
    pub name: &'static str,
    /// How long after its deletion an object is kept that cannot be cleaned up; for ever without.
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
            // An object that is to go does not change any more: only another attempt helps.
            Self::NotClean(error) => match error.remedy() {
                Remedy::Change => Remedy::Wait,
                other @ (Remedy::Reread | Remedy::Wait | Remedy::After(_) | Remedy::Refused) => other,
            },
            Self::TooLong => Remedy::Wait,
            // The test on the finalizers that the patch makes fails with 422 where somebody else wrote first.
            Self::Write(kube::Error::Api(status)) if status.code == 422 => Remedy::Reread,
            Self::Write(error) => remedy(error),
            Self::Unnamed => Remedy::Change,
        }
    }
}

impl Finalizer {
    /// Reconciles `object`: adds the finalizer, or calls `work`, or cleans up and removes the finalizer. `now` is the
    /// time of day.
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
            // Gone meanwhile, with whatever else it waited for.
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

    /// Whether the finalizer of `object` may be removed: `cleaning` succeeded, or its time is over, which an event
    /// reports. For controllers that write their finalizer themselves.
    ///
    /// # Errors
    /// What is not cleaned up: to be said in a condition, and tried again.
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
