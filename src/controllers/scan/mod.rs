//! Maintains reports about the objects in the cluster: decides about all objects periodically, and writes the results.
//!
//! ```text
//! every hour ──► Scanner ──► reports ──► apply: those that a cluster has the definitions of, and none of ours beside them
//! ```
//!
//! The scan function, with its policies, is passed in: this module knows nothing of either. No state is kept between rounds.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `apply` | which reports are written, and which are deleted | none of these |

pub mod apply;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;
use tokio::sync::Notify;

use self::apply::ApplyError;
use super::kit::manager::Member;
use super::kit::operator::Operator;
use super::kit::periodic::rounds;

/// The name of the controller in metrics, logs and flags.
const NAME: &str = "scan";

/// Scans the cluster of a client, and returns the reports as objects.
pub type Scanner = Arc<dyn Fn(Client) -> BoxFuture<'static, Result<Vec<Value>, ScanError>> + Send + Sync>;

/// Why there are no reports.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ScanError(pub String);

/// Why a round failed.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("the reports cannot be written: {0}")]
    Apply(#[from] ApplyError),
}

/// The settings of scans.
#[derive(Clone)]
pub struct Settings {
    /// The function that scans.
    pub scanner: Scanner,
    /// The time from the end of one scan to the start of the next.
    pub every: Duration,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("every", &self.every).finish_non_exhaustive()
    }
}

/// Creates the controller as a member of a manager. Its `client` has the controller's own account.
#[must_use]
pub fn member(client: Client, settings: Settings) -> Member {
    let own = client.clone();
    let member = Member::new(NAME, client, Vec::new(), move |term| {
        let (client, settings) = (own.clone(), settings.clone());
        async move {
            rounds(NAME, term.stop.clone(), Arc::new(Notify::new()), || {
                let (client, settings, term) = (client.clone(), settings.clone(), term.clone());
                async move {
                    let began = std::time::Instant::now();
                    let came = round(&client, &settings).await;
                    let result = if came.is_ok() { "success" } else { "error" };
                    term.metrics.reconciled(NAME, result, began.elapsed());
                    term.readiness.set(NAME, came.is_ok());
                    came.map(|()| settings.every)
                }
            })
            .await
        }
    });
    member.reporting(Operator::new("admit-scan"))
}

async fn round(client: &Client, settings: &Settings) -> Result<(), RoundError> {
    let reports = (settings.scanner)(client.clone()).await?;
    let written = apply::write(client, &reports).await?;
    tracing::info!(written = written.written, removed = written.removed, "scanned");
    Ok(())
}
