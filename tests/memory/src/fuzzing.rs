//! Implements the assertions of fuzz targets.

use std::sync::LazyLock;

use crate::cluster::Cluster;
use crate::{allowed, growth};

static CLUSTER: LazyLock<Result<Cluster, String>> = LazyLock::new(Cluster::new);

/// Runs `work` on an input of `length` bytes.
///
/// # Panics
/// If it takes more memory than allowed.
pub fn within(length: usize, work: impl FnOnce()) {
    let (grown, ()) = growth(work);
    assert!(grown <= allowed(length), "{length} bytes took {grown}");
}

/// Sends `bytes` to a server as a dry run.
///
/// # Panics
/// If it takes more memory than allowed, or there is no server.
pub fn sent(method: &str, path: &str, content_type: &str, bytes: &[u8]) {
    let path = format!("{path}?dryRun=All&fieldManager=m&force=true");
    assert!(CLUSTER.is_ok(), "{:?}", CLUSTER.as_ref().err());
    within(bytes.len(), || {
        if let Ok(cluster) = &*CLUSTER {
            drop(cluster.send(method, &path, content_type, bytes.to_vec().into()));
        }
    });
}
