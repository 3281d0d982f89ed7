//! Watches the params in the cluster that policies from files refer to, for every command that decides with access to a
//! cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use admit_policy::{GroupVersionKind, PolicySet};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::admission::InForce;
use crate::controllers::kit::tasks::Driver;
use crate::controllers::policies::ClusterCache;

/// The longest time between two attempts to watch param kinds that could not be watched before.
pub(super) const LOOK: Duration = Duration::from_secs(15);

/// The delay after a CRD has changed: its kind is served a moment after the event.
const SOON: Duration = Duration::from_secs(1);

/// Watches the kinds of params that `set` needs from the cluster: those of which the loaded files have no objects.
/// Call it before `set` is used, since requests that need unwatched params fail.
pub(super) async fn want_params(set: &PolicySet, cluster: &ClusterCache) {
    let files = set.documents();
    let mutating = set.mutating_policies().map(|(policy, _)| policy.common());
    let policies = set.policies().map(|(policy, _)| policy).chain(mutating);
    let kinds: BTreeSet<GroupVersionKind> = policies.filter_map(|policy| policy.param_kind.clone()).collect();
    cluster.want_params(kinds.into_iter().filter(|kind| !files.holds(kind))).await;
}

/// Repeats [`want_params`] whenever the served kinds may have changed, until `stop`.
pub(super) async fn keep_params(
    policies: watch::Receiver<Arc<InForce>>,
    cluster: Arc<ClusterCache>,
    stop: CancellationToken,
) {
    let keeping = async {
        let mut wait = LOOK;
        loop {
            let changed = timeout(wait, cluster.changed()).await.is_ok();
            let set = Arc::clone(&policies.borrow().policies);
            want_params(&set, &cluster).await;
            // Also periodically, for kinds that could not be watched the last time.
            wait = if changed { SOON } else { LOOK };
        }
    };
    stop.run_until_cancelled(keeping).await;
}

/// Does the same as [`follow`], and also watches policy exceptions.
pub(super) async fn follow_with_exceptions(
    cluster: Arc<ClusterCache>,
    params: Driver,
    stop: CancellationToken,
) {
    let exceptions = cluster.clone().follow_exceptions(stop.clone());
    tokio::join!(follow(cluster, params, stop), exceptions);
}

/// Watches what decisions of any policy may need (Namespaces, CRDs), and drives the watches of `params`, until
/// `stop`.
pub(super) async fn follow(cluster: Arc<ClusterCache>, params: Driver, stop: CancellationToken) {
    let namespaces = cluster.clone().follow_namespaces(stop.clone());
    let definitions = cluster.follow_definitions(stop.clone());
    tokio::join!(namespaces, definitions, params.run(stop));
}
