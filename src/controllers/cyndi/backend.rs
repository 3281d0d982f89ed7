//! The connector backends: Strimzi objects, or Kafka Connect itself. The decisions of a pass do not depend on which
//! is used.

use futures::future::BoxFuture;

use super::Error;
use super::connector::{Found, Wanted};
use super::crd::CyndiPipeline;
use crate::telemetry::Secrets;

/// What is done, and when that is known.
pub(super) type Done<'a, T = ()> = BoxFuture<'a, Result<T, Error>>;

/// The connectors of pipelines. All of it may be asked for any number of times, also after attempts that were cut short.
pub(super) trait Connectors: Send + Sync {
    /// Those that are the pipeline's, of whatever version.
    fn list<'a>(&'a self, pipeline: &'a CyndiPipeline) -> Done<'a, Vec<Found>>;

    /// Makes one as it is wanted. No error shows what `secrets` are.
    fn create<'a>(
        &'a self,
        pipeline: &'a CyndiPipeline,
        wanted: &'a Wanted,
        secrets: &'a Secrets,
    ) -> Done<'a>;

    /// Has one rest, or work again.
    fn pause<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str, paused: bool) -> Done<'a>;

    /// Starts again what has failed of one that is found [restartable](Found::restartable).
    fn restart<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str) -> Done<'a>;

    /// Removes one. That it is gone already is as good.
    fn delete<'a>(&'a self, pipeline: &'a CyndiPipeline, name: &'a str) -> Done<'a>;
}
