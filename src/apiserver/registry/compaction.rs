//! Lets old states expire, as kube-apiserver's compaction of etcd does: pages of a list, and lists at an exact revision, are shown for
//! five to ten minutes.
//!
//! Watches are not affected: upstream they begin in a cache of events, which is bounded by their number, as the store's history is here.

use std::time::Duration;

use tokio::time::sleep;

use super::Registry;

/// The default of `--etcd-compaction-interval`.
const EVERY: Duration = Duration::from_secs(5 * 60);

impl Registry {
    /// Never returns.
    pub(crate) async fn expire_states(&self) {
        let mut before = 0;
        loop {
            sleep(EVERY).await;
            self.store.expire(before);
            before = self.store.revision();
        }
    }
}
