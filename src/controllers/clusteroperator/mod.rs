//! Creates the ClusterOperators that a payload announces, with their three conditions Unknown, before their operators
//! report, so that during an installation people see which are missing, and which objects are related to them.
//!
//! ```text
//!  payload: folder, keys of a ConfigMap ──► Source ─┐
//!                                                   ├─ pass: for each: plan ──► create ──► prime the status (fenced)
//!  watch ──► Live ──────────────────────────────────┘
//!    ▲ any event, every minute, and what failed after a wait of its own
//! ```
//!
//! Guarantees: a ClusterOperator is created and primed once; what an operator has written is never overwritten,
//! whatever races; a failure with one does not delay the others, and nothing waits for this controller. A deleted
//! ClusterOperator is created again within a minute.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `crd` | the Rust type of ClusterOperator, which the kit reports in | none of these |
//! | `payload` | which ClusterOperators a payload announces | crd |
//! | `fetch` | first stage: the payload from disk, and the ClusterOperators as last watched | crd |
//! | `plan` | the next step for one ClusterOperator. Pure | crd, payload |
//! | `apply` | how a ClusterOperator is created | crd, payload, plan |
//! | `status` | its first status, written once | crd, payload, plan |
//! | `retries` | when an object that failed is tried again | none of these |
//! | `notices` | events and log lines, each once | crd, plan |
//! | `counts` | metrics, under the names of the cluster version operator | crd, plan |
//! | `primer` | the pass over the payload, while this process leads | apply, counts, crd, fetch, notices, payload, plan, retries, status |
//! | `health` | whether the ClusterOperators of a payload are healthy | crd, payload |
//! | `wait` | how long a command waits for that | crd, fetch, health, payload |

mod apply;
pub mod counts;
pub mod crd;
mod fetch;
pub mod health;
mod notices;
pub mod payload;
pub mod plan;
mod primer;
mod retries;
mod status;
pub mod wait;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use self::counts::Counts;
use self::crd::ClusterOperator;
use self::payload::{Inclusion, PayloadError, Source};
use self::primer::Primer;
use super::kit::clock::Clock;
use super::kit::definition::Definition;
use super::kit::manager::Member;
use super::kit::operator::Operator;

/// The name of the controller in metrics, logs and flags.
const NAME: &str = "clusteroperator";
/// Time between passes when nothing happens.
const EVERY: Duration = Duration::from_mins(1);
/// How long to wait for more events after one, so that one pass handles a burst of them.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// The settings of priming.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder with manifests.
    pub payload: Option<PathBuf>,
    /// Namespace and name of a ConfigMap whose keys are manifests.
    pub config_map: Option<(String, String)>,
    pub inclusion: Inclusion,
    pub clock: Clock,
}

impl Settings {
    /// Settings with a folder of manifests.
    pub fn new(payload: impl Into<PathBuf>) -> Self {
        Self { payload: Some(payload.into()), ..Self::of_config_map(None) }
    }

    /// Settings with manifests in the keys of a ConfigMap.
    #[must_use]
    pub fn of_config_map(config_map: Option<(String, String)>) -> Self {
        Self { payload: None, config_map, inclusion: Inclusion::default(), clock: Clock::default() }
    }
}

/// Creates the controller as a member of a manager. Its `client` has the controller's own account.
///
/// # Errors
/// When the payload cannot be read now; later errors are only reported.
pub fn member(client: Client, settings: Settings) -> Result<Member, PayloadError> {
    Source::new(settings.payload.as_deref(), settings.inclusion.clone()).read()?;
    let needs = vec![Definition::of::<ClusterOperator>()];
    let own = client.clone();
    let counts = Counts::default();
    let shown = counts.clone();
    let member = Member::new(NAME, client, needs, move |term| {
        let (client, settings, counts) = (own.clone(), settings.clone(), counts.clone());
        async move {
            Primer::new(client, settings, Arc::clone(&term.metrics), counts).run(term).await;
            Ok::<_, Infallible>(())
        }
    });
    let operator = Operator::new("admit-clusteroperator").relating("config.openshift.io", "clusteroperators");
    Ok(member.counting(|registry| shown.register(registry)).reporting(operator))
}
