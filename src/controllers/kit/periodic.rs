//! Runs periodic work when it is due or when something has changed, based on the current state of the cluster.
//! No state is kept between rounds, so a restart, or another replica, continues where the last one was.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::telemetry::{Outside, Secrets};

/// The wait before a failed round is repeated.
const RETRY: Duration = Duration::from_mins(1);

/// The result of a round that only has to run again after a change.
pub const UNTIL_WOKEN: Duration = Duration::MAX;

/// Calls `round` until `stop`; each returns how long to wait for the next, unless `woken` is notified before.
///
/// # Errors
/// Never: a failed round is logged and repeated.
pub async fn rounds<E: Display, F: Future<Output = Result<Duration, E>>>(
    what: &'static str,
    stop: CancellationToken,
    woken: Arc<Notify>,
    mut round: impl FnMut() -> F,
) -> Result<(), Infallible> {
    let looking = async {
        loop {
            let wait = round().await.unwrap_or_else(|error| {
                let error = Outside::of(error.to_string(), &Secrets::default());
                warn!(what, %error, "failed, trying again later");
                RETRY
            });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = woken.notified() => {}
            }
        }
    };
    stop.run_until_cancelled_owned(looking).await;
    Ok(())
}
