//! The policies in force: loaded before anything is served, loaded again when their files change, and kept as they were
//! when what is there then does not compile.

use std::path::PathBuf;
use std::sync::Arc;

use admit_policy::PolicySet;
use admit_policy::manifest::Document;
use ring::digest::{Context, SHA256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::load;
use super::super::process::Fault;
use super::changes::Changes;
use crate::admission::InForce;
use crate::telemetry::Metrics;

/// Where policies come from.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) folder: PathBuf,
}

impl Sources {
    /// Everything the sources hold now. All or nothing: one mistake in one document, and there is no set.
    ///
    /// # Errors
    /// What cannot be read, or all that does not compile.
    pub(super) fn load(&self) -> Result<InForce, Fault> {
        let documents = load::documents(&[&self.folder])?;
        let set = PolicySet::load(&documents).map_err(|errors| load::not_compiled(&errors))?;
        Ok(InForce::new(Arc::new(set), hash(&documents)))
    }
}

/// Loads again whenever something changed, until `shutdown`.
pub(super) async fn keep(
    sources: Sources,
    in_force: watch::Sender<Arc<InForce>>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    // What was told about the last time, so that a mistake that stays is told once.
    let mut complaint = String::new();
    let mut changes = Changes::of([sources.folder.as_path()]);
    while shutdown.run_until_cancelled(changes.next()).await.is_some() {
        // Before loading, so that no change falls between: folders that came or went are watched from now on, or no longer.
        changes = Changes::of([sources.folder.as_path()]);
        let loading = sources.clone();
        let loaded = tokio::task::spawn_blocking(move || loading.load()).await;
        match loaded.unwrap_or_else(|panic| Err(Fault::internal(format!("loading ended: {panic}")))) {
            Ok(set) => {
                complaint.clear();
                publish(set, &in_force, &metrics);
            }
            Err(fault) if fault.message == complaint => {}
            Err(fault) => {
                metrics.reload("policies", false);
                let sha256 = in_force.borrow().hash.clone();
                tracing::error!(error = %fault, sha256, "policies do not load; those in force stay");
                complaint = fault.message;
            }
        }
    }
    Ok(())
}

/// Puts `set` in force, unless it is what is in force.
fn publish(set: InForce, in_force: &watch::Sender<Arc<InForce>>, metrics: &Metrics) {
    if in_force.borrow().hash == set.hash {
        return;
    }
    announce(&set, metrics);
    metrics.reload("policies", true);
    in_force.send_replace(Arc::new(set));
}

/// Says what is in force.
pub(super) fn announce(set: &InForce, metrics: &Metrics) {
    let policies = set.policies.policies().count();
    metrics.set_in_force(&set.hash, policies);
    tracing::info!(policies, sha256 = set.hash, "policies in force");
    for warning in &set.warnings {
        tracing::warn!("{warning}");
    }
}

/// Of what the documents say, not of how they are laid out in files.
fn hash(documents: &[Document]) -> String {
    let mut context = Context::new(&SHA256);
    for document in documents {
        context.update(document.value.to_string().as_bytes());
        context.update(b"\n");
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
