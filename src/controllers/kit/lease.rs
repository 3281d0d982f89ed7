//! Elects a leader by a Lease of coordination.k8s.io: at most one holder works at a time.
//!
//! INVARIANT: every write of the Lease has the resourceVersion last seen, so of two candidates one fails with 409;
//! a holder that could not renew within `renew_deadline` stops its work, and ends, before the Lease
//! can be taken by others. Others measure the time since the last renewal on their own monotonic clock from when they saw
//! the last change: clocks of different machines are never compared.
//!
//! A holder that is late does no harm either: the fence blocks its writes, and resourceVersions make them conflict.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::fence::Fence;
use crate::telemetry::with_causes;

/// The settings of leader election: the Lease, the identity and the timing.
#[derive(Clone, Debug)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// Unique to this process: a pod's name, or host and process id.
    pub identity: String,
    /// How long others wait for a holder that does not renew.
    pub duration: Duration,
    /// How long a holder continues without a renewal; must be shorter than `duration`.
    pub renew_deadline: Duration,
    /// The time between renewals, and between attempts of candidates.
    pub retry: Duration,
    /// The fence, which is open while the Lease is held and others have to wait.
    pub fence: Fence,
}

impl Election {
    /// The timings that Kubernetes' own components use.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            fence: Fence::default(),
        }
    }
}

/// How a term ended.
#[derive(Debug, PartialEq)]
pub enum Term<T> {
    /// The work ended by itself, or because of the shutdown.
    Ended(T),
    /// Leadership was lost; the work was stopped.
    Lost,
    /// Shutdown was requested before this process became leader.
    NeverLed,
}

/// Waits for leadership, then runs `work` until it ends or leadership is lost. The token given to `work` is cancelled
/// on loss and on shutdown.
pub async fn lead<T, F>(
    client: Client,
    election: &Election,
    shutdown: &CancellationToken,
    work: impl FnOnce(CancellationToken) -> F,
) -> Term<T>
where
    F: Future<Output = T>,
{
    let leases: Api<Lease> = Api::namespaced(client, &election.namespace);
    let held = tokio::select! {
        held = acquire(&leases, election) => held,
        () = shutdown.cancelled() => return Term::NeverLed,
    };
    election.fence.open(held.renewed + election.duration);
    info!(lease = election.name, identity = election.identity, "leading");
    let stop = shutdown.child_token();
    let mut work = std::pin::pin!(work(stop.clone()));
    let mut held = held;
    let ended = tokio::select! {
        ended = &mut work => Some(ended),
        () = keep(&leases, election, &mut held) => None,
    };
    match ended {
        Some(ended) => {
            election.fence.close();
            release(&leases, election, held).await;
            Term::Ended(ended)
        }
        None => {
            warn!(lease = election.name, "leadership lost, stopping work");
            stop.cancel();
            let left = election.duration.saturating_sub(held.renewed.elapsed());
            if timeout(left, &mut work).await.is_err() {
                warn!(lease = election.name, "work did not stop in time and was dropped");
            }
            election.fence.close();
            Term::Lost
        }
    }
}

/// A Lease held by this process, as last written.
struct Held {
    lease: Lease,
    /// When the renewal was sent: others may count from then.
    renewed: Instant,
}

async fn acquire(leases: &Api<Lease>, election: &Election) -> Held {
    let mut seen: Option<Seen> = None;
    loop {
        match attempt(leases, election, &mut seen).await {
            Ok(Some(held)) => return held,
            Ok(None) => debug!(lease = election.name, "held by another"),
            Err(error) => {
                warn!(
                    lease = election.name,
                    error = with_causes(&error),
                    "cannot take the lease, trying again"
                );
            }
        }
        sleep(election.retry).await;
    }
}

/// The version of a Lease, and since when this process has seen it unchanged.
struct Seen {
    version: Option<String>,
    since: Instant,
}

async fn attempt(
    leases: &Api<Lease>,
    election: &Election,
    seen: &mut Option<Seen>,
) -> Result<Option<Held>, kube::Error> {
    let renewed = Instant::now();
    let Some(lease) = leases.get_opt(&election.name).await? else {
        let metadata = ObjectMeta { name: Some(election.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(claim(election, &LeaseSpec::default())) };
        return taken(leases.create(&PostParams::default(), &lease).await, renewed);
    };
    let version = lease.resource_version();
    let unchanged = seen.take().filter(|seen| seen.version == version);
    let silent = unchanged.as_ref().map_or(Duration::ZERO, |seen| seen.since.elapsed());
    *seen = Some(unchanged.unwrap_or(Seen { version, since: Instant::now() }));
    let spec = lease.spec.clone().unwrap_or_default();
    if !claimable(&spec, &election.identity, silent) {
        return Ok(None);
    }
    let wanted = Lease { spec: Some(claim(election, &spec)), ..lease };
    taken(leases.replace(&election.name, &PostParams::default(), &wanted).await, renewed)
}

/// Converts the result of a write: 409 means that another candidate was faster.
fn taken(written: Result<Lease, kube::Error>, renewed: Instant) -> Result<Option<Held>, kube::Error> {
    match written {
        Ok(lease) => Ok(Some(Held { lease, renewed })),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether `identity` may take a Lease that was seen unchanged for `silent`.
fn claimable(spec: &LeaseSpec, identity: &str, silent: Duration) -> bool {
    match spec.holder_identity.as_deref() {
        None | Some("") => true,
        // Left by this identity before a restart.
        Some(holder) if holder == identity => true,
        Some(_) => {
            let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            silent >= Duration::from_secs(seconds.unwrap_or(0))
        }
    }
}

fn claim(election: &Election, old: &LeaseSpec) -> LeaseSpec {
    let now = MicroTime(Timestamp::now());
    let ours = old.holder_identity.as_deref() == Some(&election.identity);
    LeaseSpec {
        holder_identity: Some(election.identity.clone()),
        lease_duration_seconds: i32::try_from(election.duration.as_secs().max(1)).ok(),
        acquire_time: if ours { old.acquire_time.clone() } else { Some(now.clone()) },
        renew_time: Some(now),
        lease_transitions: Some(old.lease_transitions.unwrap_or(0).saturating_add(i32::from(!ours))),
        ..old.clone()
    }
}

/// Renews the Lease until that fails; returns when leadership must be considered lost.
async fn keep(leases: &Api<Lease>, election: &Election, held: &mut Held) {
    loop {
        sleep(election.retry).await;
        let sent = Instant::now();
        let left = election.renew_deadline.saturating_sub(held.renewed.elapsed());
        let spec = claim(election, &held.lease.spec.clone().unwrap_or_default());
        let wanted = Lease { spec: Some(spec), ..held.lease.clone() };
        let params = PostParams::default();
        match timeout(left, leases.replace(&election.name, &params, &wanted)).await {
            Ok(Ok(lease)) => {
                *held = Held { lease, renewed: sent };
                election.fence.open(sent + election.duration);
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => return,
            Ok(Err(error)) => warn!(lease = election.name, error = with_causes(&error), "renewal failed"),
            Err(_) => return,
        }
    }
}

/// Releases the Lease, so that the next holder need not wait. Errors only cost that wait.
async fn release(leases: &Api<Lease>, election: &Election, held: Held) {
    let spec = held.lease.spec.clone().unwrap_or_default();
    let freed = LeaseSpec { holder_identity: Some(String::new()), ..spec };
    let lease = Lease { spec: Some(freed), ..held.lease };
    let written =
        timeout(election.retry, leases.replace(&election.name, &PostParams::default(), &lease)).await;
    if !matches!(written, Ok(Ok(_))) {
        debug!(lease = election.name, "lease not given back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_from_nobody_oneself_or_the_silent() {
        let held = |holder: &str| LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        let second = Duration::from_secs(1);
        assert!(claimable(&LeaseSpec::default(), "me", Duration::ZERO));
        assert!(claimable(&held(""), "me", Duration::ZERO));
        assert!(claimable(&held("me"), "me", Duration::ZERO));
        assert!(!claimable(&held("other"), "me", 14 * second));
        assert!(claimable(&held("other"), "me", 15 * second));
    }

    #[test]
    fn only_a_change_of_holder_is_a_transition() {
        let election = Election::new("ns", "l", "me");
        let first = claim(&election, &LeaseSpec::default());
        assert_eq!(first.lease_transitions, Some(1));
        let renewed = claim(&election, &first);
        assert_eq!((renewed.lease_transitions, &renewed.acquire_time), (Some(1), &first.acquire_time));
        let other = Election::new("ns", "l", "other");
        assert_eq!(claim(&other, &renewed).lease_transitions, Some(2));
    }
}
