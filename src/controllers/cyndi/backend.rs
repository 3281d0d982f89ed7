//! Defines what connector backends do: Strimzi objects, or Kafka Connect itself. The decisions of a pass do not depend on which
//! is used.

use futures::future::BoxFuture;

use super::Error;
use super::connector::{Found, Wanted};
use super::crd::CyndiPipeline;
use crate::telemetry::Secrets;

/// The result of an operation, as a future.
pub(super) type Done<'a, T = ()> = BoxFuture<'a, Result<T, Error>>;

/// Manages the connectors of pipelines. Operations are idempotent, also after interrupted attempts.
pub(super) trait Connectors: Send + Sync {
    /// Lists the pipeline's connectors of any version.
    fn list<'a>(&'a self, pipeline: &'a CyndiPipeline) -> Done<'a, Vec<Found>>;

    /// Creates a connector. Errors do not contain any of `secrets`.
    fn create<'a>(
        &'a self,
        pipeline: &'a CyndiPipeline,
        wanted: &'a Wanted,
        secrets: &'a Secrets,
    ) -> Done<'a>;

    /// Pauses or resumes a connector.
    fn pause<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str, paused: bool) -> Done<'a>;

    /// Restarts the failed parts of a connector that is [restartable](Found::restartable).
    fn restart<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str) -> Done<'a>;

    /// Deletes a connector; a missing one is no error.
    fn delete<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str) -> Done<'a>;
}
