//! Keeps the policies in force, for `admit serve` and `admit up`: loads them before anything is served, and reloads them when
//! their files or the cluster's objects change. What no longer compiles keeps its previous version: a folder as a whole, and a cluster's
//! objects one by one.

pub(super) mod changes;
mod settling;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admit_apimachinery::go;
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::Document;
use admit_policy::{GroupVersionKind, PolicySet};
use ring::digest::{Context, SHA256};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::changes::Changes;
pub(super) use self::settling::Contents;
use self::settling::{File, Settling, Stamp, Unsettled};
use self::stored::{Stored, name_of};
use super::following::{self, LOOK};
use super::load;
use super::process::Fault;
use crate::admission::{Broken, InForce};
use crate::controllers::policies::ClusterCache;
use crate::outside;
use crate::telemetry::Metrics;

/// The sources of policies: files, a cluster, or both.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    /// Folders and files.
    pub(super) paths: Vec<PathBuf>,
    /// Documents that are enforced unless a file has one of the same kind and name.
    pub(super) shipped: Arc<[Document]>,
    /// The cluster whose stored policies are enforced, too.
    pub(super) cluster: Option<Arc<ClusterCache>>,
    /// The policies stored in the cluster, as last seen.
    pub(super) stored: Arc<Mutex<Stored>>,
    /// Whether the policies and bindings of the files are shown as objects.
    pub(super) shown: bool,
    /// The contents of pipes, which can be read only once.
    pub(super) piped: Arc<Mutex<BTreeMap<PathBuf, File>>>,
}

/// The policies in force and the sources that they were made from.
pub(super) struct InUse {
    pub(super) sources: Sources,
    /// The documents of each file.
    pub(super) contents: BTreeMap<String, Contents>,
    pub(super) in_force: watch::Sender<Arc<InForce>>,
}

/// The result of reading the sources.
enum Look {
    Set(InForce, BTreeMap<String, Contents>),
    /// A file may be in the middle of being written.
    Unsettled(Unsettled),
}

impl Sources {
    /// Reads the files at the start. Pipes are read to their end, however long that takes, and never again.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) async fn first(self) -> Result<Vec<File>, Fault> {
        for path in &self.paths {
            let looked_at = path.clone();
            let is_pipe = outside::in_time(move || {
                let neither = |about: fs::Metadata| !about.is_dir() && !about.is_file();
                load::is_stdin(&looked_at) || fs::metadata(&looked_at).is_ok_and(neither)
            });
            if is_pipe.await.map_err(Fault::usage)? {
                let (name, pipe) = (path.display().to_string(), path.clone());
                let text = spawn_blocking(move || load::text(&pipe)).await.map_err(Fault::internal)??;
                self.piped().insert(path.clone(), File { name, text, stamp: Stamp::default() });
            }
        }
        self.read().await
    }

    /// Reads the files.
    async fn read(&self) -> Result<Vec<File>, Fault> {
        let mut files = Vec::new();
        for path in &self.paths {
            let piped = self.piped().get(path).cloned();
            if let Some(piped) = piped {
                files.push(piped);
                continue;
            }
            let (shown, path) = (path.display().to_string(), path.clone());
            let read = outside::in_time(move || settling::read(&path)).await;
            files.extend(read.map_err(|error| Fault::usage(format!("cannot read `{shown}`: {error}")))??);
        }
        Ok(files)
    }

    fn piped(&self) -> MutexGuard<'_, BTreeMap<PathBuf, File>> {
        self.piped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles all sources; `documents` are those of the folder. A mistake in one document of the folder is an error. Of a
    /// document that the cluster has too, the folder's version is used. Returns `before`'s compiled set if the documents are
    /// the same.
    ///
    /// # Errors
    /// All mistakes that prevent compilation.
    pub(super) async fn compiled(
        &self,
        documents: Vec<Document>,
        before: Arc<InForce>,
    ) -> Result<InForce, Fault> {
        let sources = self.clone();
        apart(move || sources.compile(documents, &before)).await
    }

    fn compile(&self, mut documents: Vec<Document>, before: &InForce) -> Result<InForce, Fault> {
        let mut broken = Vec::new();
        documents = self.with_shipped(documents);
        let shown = if self.shown { policies_of(&documents) } else { Vec::new() };
        if let Some(cluster) = &self.cluster {
            let known: BTreeSet<_> = documents.iter().map(|document| name_of(&document.value)).collect();
            let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
            stored.take(&cluster.policy_documents().map_err(Fault::internal)?);
            let others = stored.documents().filter(|(name, _)| !known.contains(name));
            documents.extend(others.flat_map(|(_, documents)| documents.iter().cloned()));
            broken = stored.broken();
        }
        let hash = hash(&documents);
        let set = if hash == before.hash {
            Arc::clone(&before.policies)
        } else {
            let set = PolicySet::load(&documents).map_err(|errors| load::not_compiled(&errors))?;
            // Mutating policies need the schemas of built-in kinds to merge what they apply.
            Arc::new(set.knowing(&BuiltinKinds))
        };
        Ok(InForce::new(set, hash).without(broken).showing(shown))
    }

    /// Adds the shipped documents that no file replaces.
    pub(super) fn with_shipped(&self, mut documents: Vec<Document>) -> Vec<Document> {
        let known: BTreeSet<_> = documents.iter().map(|document| name_of(&document.value)).collect();
        let shipped = self.shipped.iter().filter(|document| !known.contains(&name_of(&document.value)));
        documents.extend(shipped.cloned());
        documents
    }

    /// Rejects a folder that has become empty: a failed mount is more likely than an intention, and a restart with an
    /// empty folder is the way to enforce nothing.
    fn not_emptied(&self, set: InForce, before: &InForce) -> Result<InForce, Fault> {
        if self.paths.is_empty() || !is_empty(&set) || is_empty(before) {
            return Ok(set);
        }
        let paths: Vec<String> = self.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        let (paths, verb) = (paths.join(" and "), if paths.len() == 1 { "holds" } else { "hold" });
        Err(Fault::not_compiled(format!(
            "{paths} {verb} no policies and no definitions any more; restart to enforce none"
        )))
    }

    /// Reads and compiles the sources, unless one of their files may be in the middle of being written.
    async fn look(&self, settling: &mut Settling, before: Arc<InForce>) -> Result<Look, Fault> {
        let (documents, contents) = parsed(self.read().await?).await?;
        if let Some(unsettled) = settling.unsettled(&contents, Instant::now()) {
            return Ok(Look::Unsettled(unsettled));
        }
        let set = self.compiled(documents, Arc::clone(&before)).await?;
        Ok(Look::Set(self.not_emptied(set, &before)?, contents))
    }

    /// Returns when something may have changed.
    async fn changed(&self, files: &mut Option<Changes>) {
        let of_files = async {
            match files {
                Some(files) => files.next().await,
                None => std::future::pending().await,
            }
        };
        let of_cluster = async {
            match &self.cluster {
                // Also periodically, for param kinds that could not be watched before.
                Some(cluster) => drop(timeout(LOOK, cluster.changed()).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = of_files => {}
            () = of_cluster => {}
        }
    }

    /// Watches all paths that are not pipes.
    async fn watch(&self) -> Option<Changes> {
        let mut paths = self.paths.clone();
        paths.retain(|path| !self.piped().contains_key(path));
        if paths.is_empty() { None } else { Some(Changes::of(paths.iter().map(PathBuf::as_path)).await) }
    }
}

/// Parses `files`; also returns which documents are in which file.
///
/// # Errors
/// All mistakes that prevent compilation.
pub(super) async fn parsed(files: Vec<File>) -> Result<(Vec<Document>, BTreeMap<String, Contents>), Fault> {
    apart(move || {
        let texts = files.iter().map(|file| (file.name.as_str(), file.text.as_str()));
        let documents = load::policies_of(texts)?;
        let contents = settling::contents(&files, &documents);
        Ok((documents, contents))
    })
    .await
}

/// Runs `work` on a thread for blocking work.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let panicked = |panic| Err(Fault::internal(format!("loading ended: {panic}")));
    spawn_blocking(work).await.unwrap_or_else(panicked)
}

/// Watches the param kinds that `set` looks up in the cluster, if there is one.
pub(super) async fn want_params(set: &InForce, cluster: Option<&Arc<ClusterCache>>) {
    if let Some(cluster) = cluster {
        following::want_params(&set.policies, cluster).await;
    }
}

/// Reloads after each change, until `shutdown`. `params` is the cluster whose params are watched, if any.
pub(super) async fn keep(
    in_use: InUse,
    params: Option<Arc<ClusterCache>>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let InUse { sources, contents, in_force } = in_use;
    // The last error, so that one that stays is logged once.
    let mut complaint = String::new();
    let mut settling = Settling::default();
    settling.put_in_force(contents);
    let mut again = None;
    let mut changes = sources.watch().await;
    loop {
        let looking = async {
            wait(&sources, &mut changes, again.take()).await;
            // Before loading, so that no change is missed: new folders are watched from now on, and removed ones
            // no longer.
            changes = sources.watch().await;
            let before = Arc::clone(&in_force.borrow());
            let look = sources.look(&mut settling, before).await;
            if let Ok(Look::Set(set, _)) = &look {
                want_params(set, params.as_ref()).await;
            }
            look
        };
        // Shutdown does not wait for a disk.
        let Some(look) = shutdown.run_until_cancelled(looking).await else { return Ok(()) };
        match look {
            Ok(Look::Set(set, contents)) => {
                complaint.clear();
                settling.put_in_force(contents);
                publish(set, &in_force, &metrics);
            }
            Ok(Look::Unsettled(Unsettled { file, lost: (kind, name), until })) => {
                tracing::info!(
                    file,
                    kind,
                    name,
                    "the file lost a document, or is gone, and may still be written; it is read again"
                );
                again = Some(until);
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
}

/// Returns when something may have changed, or at `at`.
async fn wait(sources: &Sources, changes: &mut Option<Changes>, at: Option<Instant>) {
    let due = async {
        match at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = sources.changed(changes) => {}
        () = due => {}
    }
}

/// Puts `set` in force, unless it equals the current one.
fn publish(set: InForce, in_force: &watch::Sender<Arc<InForce>>, metrics: &Metrics) {
    let now = Arc::clone(&in_force.borrow());
    if now.hash == set.hash && now.broken == set.broken {
        if !now.shows_as(&set) {
            // The same documents, but in other files.
            in_force.send_replace(Arc::new(set));
        }
        return;
    }
    let news = set.broken.iter().any(|broken| !now.broken.contains(broken));
    metrics.reload("policies", !news);
    if now.hash != set.hash {
        announce(&set, metrics);
    }
    tell_broken(&set, &now, metrics);
    in_force.send_replace(Arc::new(set));
}

/// Logs which of the cluster's policies do not compile, unless that was already logged for `before`.
pub(super) fn tell_broken(set: &InForce, before: &InForce, metrics: &Metrics) {
    metrics.broken(set.broken.iter().map(|broken| (broken.name.as_str(), broken.previous)));
    for Broken { kind, name, mistake, previous } in &set.broken {
        if !before.broken.iter().any(|told| told.mistake == *mistake) {
            let instead =
                if *previous { "its previous version stays in force" } else { "it is not enforced here" };
            tracing::error!(
                kind,
                name,
                error = mistake,
                "an object of the cluster does not compile; {instead}"
            );
        }
    }
}

/// Whether a set rejects nothing.
fn is_empty(set: &InForce) -> bool {
    set.policies.policies().next().is_none()
        && set.policies.mutating_policies().next().is_none()
        && set.policies.documents().crds().is_empty()
}

/// Logs what is in force, and updates the metrics.
pub(super) fn announce(set: &InForce, metrics: &Metrics) {
    let policies = set.policies.policies().count() + set.policies.mutating_policies().count();
    metrics.set_in_force(&set.hash, policies);
    tracing::info!(policies, sha256 = set.hash, "policies in force");
    if is_empty(set) {
        tracing::warn!("there are no policies and no definitions: everything is allowed");
    }
    for warning in &set.warnings {
        tracing::warn!("{warning}");
    }
}

/// Returns the policies and bindings among the documents.
fn policies_of(documents: &[Document]) -> Vec<Document> {
    const KINDS: [&str; 4] = [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    const GROUP: &str = "admissionregistration.k8s.io";
    let is_one = |document: &&Document| {
        let kind = GroupVersionKind::of(&document.value);
        kind.group == GROUP && KINDS.contains(&kind.kind.as_str())
    };
    let shown = |document: &Document| Document::unwritten(Arc::clone(&document.file), document.value.clone());
    documents.iter().filter(is_one).map(shown).collect()
}

/// Hashes the contents of the documents, independent of their layout in files.
fn hash(documents: &[Document]) -> String {
    let mut context = Context::new(&SHA256);
    for document in documents {
        context.update(document.value.to_string().as_bytes());
        context.update(b"\n");
    }
    go::hex::encode(context.finish())
}
