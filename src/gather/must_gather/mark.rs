//! Tells the uploading container how the gathering container has ended, through a folder that both mount.
//!
//! INVARIANT: the lock is held from before the lock file gets its name until after the mark was written. So a reader that finds the
//! file and gets a shared lock either finds the mark, or the writer was killed, which frees the lock and leaves no mark. No
//! timeout is needed, however long pulling an image takes, and no process namespace is shared.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use notify::{RecursiveMode, Watcher as _};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

const LOCK: &str = "gather.lock";
const MARK: &str = "gather.json";
/// How often the folder is also polled, for file systems that report no changes by other machines.
const LOOK: Duration = Duration::from_secs(10);
/// The largest mark in bytes; a real one has a hundred.
const MAX_MARK: u64 = 4_096;

/// The result of a gathering.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// The exit code of the command; 128 plus the signal number if a signal ended it.
    pub code: i32,
    /// Whether it was stopped because of its time limit.
    pub timed_out: bool,
    pub finished: Timestamp,
}

/// The exit codes of commands that ran out of time: that of `timeout`, and that of a killed command.
const OUT_OF_TIME: [i32; 2] = [124, 137];

impl Ended {
    /// Whether the results are used: the command succeeded, or ran out of time.
    pub fn is_kept(&self) -> bool {
        self.code == 0 || self.is_out_of_time()
    }

    pub fn is_out_of_time(&self) -> bool {
        self.timed_out || OUT_OF_TIME.contains(&self.code)
    }
}

/// The gathering side.
#[derive(Debug)]
pub struct Gathering {
    folder: PathBuf,
    /// The lock is held until this is dropped.
    _lock: File,
}

impl Gathering {
    /// Marks that gathering has begun.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let nameless = folder.join(format!("{LOCK}.{}", std::process::id()));
        let lock = File::create(&nameless)?;
        lock.lock()?;
        fs::rename(nameless, folder.join(LOCK))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Marks how it ended.
    ///
    /// # Errors
    /// When the folder cannot be written: the other side then assumes that this one was killed.
    pub fn end(self, ended: &Ended) -> io::Result<()> {
        let nameless = self.folder.join(format!("{MARK}.{}", std::process::id()));
        let mut file = File::create(&nameless)?;
        file.write_all(serde_json::to_string(ended)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(nameless, self.folder.join(MARK))
    }
}

/// Why the result of a gathering is unknown.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("the gathering was killed: it left no word of how it ended")]
    Killed,
    #[error("cannot wait for the gathering in {}: {source}", folder.display())]
    Folder {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Waits until the gathering of `folder` has begun and has ended, however long that takes.
///
/// # Errors
/// [`WaitError`]; [`WaitError::Killed`] when its process ended without a mark.
pub async fn ended(folder: &Path) -> Result<Ended, WaitError> {
    let failed = |source| WaitError::Folder { folder: folder.to_owned(), source };
    begun(folder).await.map_err(failed)?;
    let path = folder.join(LOCK);
    let locked = tokio::task::spawn_blocking(move || File::open(path)?.lock_shared());
    locked.await.map_err(|error| failed(io::Error::other(error)))?.map_err(failed)?;
    let mark = folder.join(MARK);
    match tokio::task::spawn_blocking(move || crate::outside::text(&mark, MAX_MARK)).await {
        Ok(Ok(text)) => serde_json::from_str(&text).map_err(|error| failed(error.into())),
        Ok(Err(unreadable)) if unreadable.is_missing() => Err(WaitError::Killed),
        Ok(Err(unreadable)) => Err(failed(unreadable.into_io())),
        Err(error) => Err(failed(io::Error::other(error))),
    }
}

/// Waits until the lock file exists.
async fn begun(folder: &Path) -> io::Result<()> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let told_of = move |_| {
        // The receiver may be gone.
        let _ = tell.send(());
    };
    let mut watcher = notify::recommended_watcher(told_of).map_err(io::Error::other)?;
    // The watch starts before the first check, so that no change is missed.
    watcher.watch(folder, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
    while !tokio::fs::try_exists(folder.join(LOCK)).await? {
        let _ = tokio::time::timeout(LOOK, told.recv()).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Ended = Ended { code: 0, timed_out: false, finished: Timestamp::constant(1_763_692_206, 0) };

    #[tokio::test]
    async fn the_other_side_waits_for_the_word() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_owned();
        let waiting = tokio::spawn({
            let folder = folder.clone();
            async move { ended(&folder).await }
        });
        let gathering = Gathering::begin(&folder).unwrap();
        // The result is not known while the lock is held.
        assert!(!waiting.is_finished());
        let code = Ended { code: 3, ..WELL };
        gathering.end(&code).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap(), code);
        assert!(!code.is_kept() && WELL.is_kept());
        for code in OUT_OF_TIME {
            assert!(Ended { code, ..WELL }.is_kept());
        }
    }

    #[tokio::test]
    async fn a_gathering_that_is_killed_leaves_the_lock_and_no_word() {
        let dir = tempfile::tempdir().unwrap();
        drop(Gathering::begin(dir.path()).unwrap());
        assert!(matches!(ended(dir.path()).await, Err(WaitError::Killed)));
        let absent = ended(&dir.path().join("absent")).await;
        assert!(matches!(absent, Err(WaitError::Folder { .. })), "{absent:?}");
    }
}
