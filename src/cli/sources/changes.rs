//! Signals that files may have changed: immediately after a file system event or SIGHUP, and periodically in any case, for
//! file systems without events. Callers find out what changed, and whether it matters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::outside::{self, Unreadable};

/// How long no event must arrive: one write is several events, and one deployment several files.
const SETTLED: Duration = Duration::from_millis(50);
/// After this many pauses, files that keep changing are reported all the same.
const PATIENCE: usize = 20;
/// The longest time between two reports.
const POLL: Duration = Duration::from_secs(15);

/// Watches paths for changes.
#[derive(Debug)]
pub(in crate::cli) struct Changes {
    told: mpsc::Receiver<()>,
    /// Keeps the watch alive; None if the system provides no watch.
    watcher: Option<RecommendedWatcher>,
    /// None if no signal handler can be installed.
    hangup: Option<Signal>,
}

impl Changes {
    /// Watches folders with all subfolders, and files through their folder: a file that is replaced, as Kubernetes
    /// replaces the links of mounted volumes, is another file.
    pub(in crate::cli) async fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().map(Path::to_owned).collect();
        let (sender, told) = mpsc::channel(1);
        let tell = move |event: Result<notify::Event, notify::Error>| {
            if event.as_ref().map_or(true, |event| is_change(event.kind)) {
                // If the channel is full, a change is already reported.
                let _ = sender.try_send(());
            }
        };
        // Links in a folder may lead to slow file systems.
        let watching = outside::in_time(move || {
            let mut watcher = notify::recommended_watcher(tell)?;
            for path in paths {
                let (folder, mode) = folder_of(&path);
                watcher.watch(&folder, mode)?;
            }
            Ok(watcher)
        });
        let unwatched = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "files are not watched, and looked at every {} s", POLL.as_secs());
        };
        let watcher = match watching.await {
            Ok(watched) => watched.inspect_err(|error: &notify::Error| unwatched(error)).ok(),
            // The process is ending.
            Err(Unreadable::Ended) => None,
            Err(stuck) => {
                unwatched(&stuck);
                None
            }
        };
        Self { told, watcher, hangup: signal(SignalKind::hangup()).ok() }
    }

    /// Waits until files may have changed.
    pub(in crate::cli) async fn next(&mut self) {
        let Self { told, watcher, hangup } = self;
        let changed = async {
            match watcher {
                Some(_) => told.recv().await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = changed => {}
            _ = asked => return,
            () = tokio::time::sleep(POLL) => return,
        }
        for _ in 0..PATIENCE {
            if timeout(SETTLED, self.told.recv()).await.is_err() {
                return;
            }
        }
    }
}

fn folder_of(path: &Path) -> (PathBuf, RecursiveMode) {
    if path.is_dir() {
        return (path.to_owned(), RecursiveMode::Recursive);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    (folder.unwrap_or(Path::new(".")).to_owned(), RecursiveMode::NonRecursive)
}

/// Whether an event changes a file; reading causes open and close events.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const PATIENT: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn writing_renaming_and_swapping_links_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("v1")).unwrap();
        fs::write(at("v1/policy.yaml"), "a").unwrap();
        symlink("v1", at("..data")).unwrap();
        symlink("..data/policy.yaml", at("policy.yaml")).unwrap();
        let mut changes = Changes::of([folder.path(), at("policy.yaml").as_path()]).await;
        assert!(changes.watcher.is_some());

        let steps: [&dyn Fn(); 3] = [
            &|| fs::write(at("other.yaml"), "b").unwrap(),
            &|| fs::rename(at("other.yaml"), at("third.yaml")).unwrap(),
            &|| {
                symlink("v2", at("..data_tmp")).unwrap();
                fs::rename(at("..data_tmp"), at("..data")).unwrap();
            },
        ];
        for step in steps {
            step();
            assert!(timeout(PATIENT, changes.next()).await.is_ok());
        }
        fs::read(at("third.yaml")).unwrap();
        assert!(timeout(SETTLED * 4, changes.next()).await.is_err(), "reading is no change");
    }
}
