//! What policies from files ask of a cluster besides: their params, followed by kind, for every command that decides with
//! a cluster at hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use admit_policy::PolicySet;
use admit_policy::request::GroupVersionKind;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::controllers::kit::tasks::Driver;
use crate::controllers::policies::ClusterCache;

/// The longest time between two tries to follow kinds of params that could not be followed before.
pub(super) const LOOK: Duration = Duration::from_secs(15);

/// How soon they are tried again after a definition has changed: its kind is served a moment after that is told.
const SOON: Duration = Duration::from_secs(1);

/// Follows the params that `set` asks the cluster for: those of kinds that it holds no objects of itself. Comes before
/// the set does, whose requests would fail otherwise.
pub(super) async fn want_params(set: &PolicySet, cluster: &ClusterCache) {
    let files = set.documents();
    let kinds: BTreeSet<GroupVersionKind> =
        set.policies().filter_map(|(policy, _)| policy.param_kind.clone()).collect();
    cluster.want_params(kinds.into_iter().filter(|kind| !files.holds(kind))).await;
}

/// The same again whenever kinds may have come or gone, until `stop`.
pub(super) async fn keep_params(set: Arc<PolicySet>, cluster: Arc<ClusterCache>, stop: CancellationToken) {
    let keeping = async {
        let mut wait = LOOK;
        loop {
            let changed = timeout(wait, cluster.changed()).await.is_ok();
            want_params(&set, &cluster).await;
            // In any case now and then, for what could not be had the last time.
            wait = if changed { SOON } else { LOOK };
        }
    };
    stop.run_until_cancelled(keeping).await;
}

/// Follows what decisions of any policy may ask for, and lets `params` follow theirs, until `stop`.
pub(super) async fn follow(cluster: Arc<ClusterCache>, params: Driver, stop: CancellationToken) {
    let namespaces = cluster.clone().follow_namespaces(stop.clone());
    let definitions = cluster.follow_definitions(stop.clone());
    tokio::join!(namespaces, definitions, params.run(stop));
}
