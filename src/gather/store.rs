//! Manages the folder of archives, and guarantees that a gathering never leaves two of them.
//!
//! INVARIANT: at most one archive exists per owner (the uid of the object that requested it), whenever a process is killed:
//! 1. the bytes are written to `.partial-<uid>` and synced; nobody treats that name as an archive;
//! 2. `.claims/<uid>` is created exclusively and synced. A second attempt for the uid fails here for ever, also
//!    after a restart and also when the API server has lost its newest writes;
//! 3. the partial file is linked, exclusively, to its final name, and the partial name is removed.
//!
//! Killed before 2: no archive and no claim. Between 2 and 3: a claim without an archive; the gathering has failed.
//! After 3: one archive. Partial files are removed when the folder is opened, unless their writer is alive: gathering Jobs
//! may share a folder. A final name is taken once (`link` fails if it exists); a gathering in the same second takes
//! the next free one.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{Timestamp, ToSpan};
use tracing::{debug, info, warn};

const CLAIMS: &str = ".claims";
const PARTIAL: &str = ".partial-";
/// By how many seconds the name of a new archive may be moved past taken ones. Archives are kept while the service is slow to accept
/// them, and a thousand may wait; each taken name costs microseconds.
const NAME_ATTEMPTS: i64 = 3_600;

/// Who may read archives besides their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// The group, as with the Insights operator: others may collect archives from a shared volume.
    #[default]
    Group,
    /// Nobody.
    Owner,
}

impl Readers {
    fn folder_mode(self) -> u32 {
        match self {
            Self::Group => 0o750,
            Self::Owner => 0o700,
        }
    }

    fn file_mode(self) -> u32 {
        match self {
            Self::Group => 0o640,
            Self::Owner => 0o600,
        }
    }
}

/// An opened folder of archives.
#[derive(Clone, Debug)]
pub struct ArchiveStore {
    dir: PathBuf,
    readers: Readers,
    /// Archives that are still being read; pruning leaves them.
    pinned: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// A published archive, which is not pruned while this value exists.
#[derive(Debug)]
pub struct Published {
    path: PathBuf,
    pinned: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Published {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("an archive of this gathering exists or was begun before")]
    AlreadyClaimed,
    #[error("`{0}` cannot name a file")]
    BadOwner(String),
    #[error("no free archive name within {NAME_ATTEMPTS} seconds of {0}")]
    NoFreeName(String),
    #[error("cannot use the archive folder `{}`: {source}; make it writable, or choose another", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ArchiveStore {
    /// Opens `dir`, creating it for the owner and the group if it is missing, and removes leftovers of interrupted writes.
    ///
    /// # Errors
    /// [`StoreError::Io`] naming the folder when it cannot be created, read or written.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_for(dir, Readers::default())
    }

    /// Does the same, with other `readers` for new files.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for(dir: impl Into<PathBuf>, readers: Readers) -> Result<Self, StoreError> {
        let store = Self { dir: dir.into(), readers, pinned: Arc::default() };
        let claims = store.dir.join(CLAIMS);
        let made = fs::DirBuilder::new().recursive(true).mode(readers.folder_mode()).create(&claims);
        made.map_err(|source| store.unusable(source))?;
        for entry in fs::read_dir(&store.dir).map_err(|source| store.unusable(source))? {
            let entry = entry.map_err(|source| store.unusable(source))?;
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) && !is_being_written(&entry.path()) {
                info!(file = %entry.path().display(), "removing an unfinished archive");
                fs::remove_file(entry.path()).map_err(|source| store.unusable(source))?;
            }
        }
        Ok(store)
    }

    /// Publishes the archive of `owner`, named after `newest`, with the bytes that `write` writes.
    ///
    /// # Errors
    /// [`StoreError::AlreadyClaimed`] when `owner` had one before, even if it was interrupted or pruned.
    pub fn publish(
        &self,
        owner: &str,
        newest: Timestamp,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Published, StoreError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if owner.is_empty() || owner.len() > 128 || !owner.chars().all(legal) {
            return Err(StoreError::BadOwner(owner.to_owned()));
        }
        let partial =
            Partial { path: self.dir.join(format!("{PARTIAL}{owner}")), mode: self.readers.file_mode() };
        let _writing = partial.fill(write).map_err(|source| self.unusable(source))?;
        let claim = self.claim(owner)?;
        let path = self.link(&partial.path, newest)?;
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        let published = Published { path, pinned: Arc::clone(&self.pinned) };
        // For people only: names the archive in the claim, which is valid without it.
        if let Err(error) = fs::write(&claim, published.name()) {
            warn!(%error, claim = %claim.display(), "claim stays without the archive's name");
        }
        Ok(published)
    }

    /// Creates a temporary file without a name, for the records of an archive.
    ///
    /// # Errors
    /// [`StoreError::Io`] naming the folder when it cannot be written.
    pub fn scratch(&self) -> Result<File, StoreError> {
        let path = self.dir.join(format!("{PARTIAL}{}", uuid::Uuid::new_v4()));
        let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = made.map_err(|source| self.unusable(source))?;
        match fs::remove_file(&path) {
            Ok(()) => {}
            // Another process that opened the folder may have removed it as a leftover.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(self.unusable(source)),
        }
        Ok(file)
    }

    /// Removes all but the newest `keep` archives; claims stay.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder cannot be read or a file cannot be removed.
    pub fn prune(&self, keep: usize) -> Result<(), StoreError> {
        let mut names = self.archives()?;
        // By age and not by name: archives of the same second have later names.
        names.sort_by_cached_key(|path| {
            (fs::metadata(path).and_then(|file| file.modified()).ok(), path.clone())
        });
        let surplus = names.len().saturating_sub(keep);
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for path in names.iter().take(surplus).filter(|path| !pinned.contains(*path)) {
            debug!(archive = %path.display(), "pruning");
            fs::remove_file(path).map_err(|source| self.unusable(source))?;
        }
        Ok(())
    }

    /// Returns the paths of all archives.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder cannot be read.
    pub fn archives(&self) -> Result<Vec<PathBuf>, StoreError> {
        let entries = fs::read_dir(&self.dir).map_err(|source| self.unusable(source))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let paths = paths.collect::<io::Result<Vec<_>>>().map_err(|source| self.unusable(source))?;
        Ok(paths.into_iter().filter(|path| is_archive(path)).collect())
    }

    fn claim(&self, owner: &str) -> Result<PathBuf, StoreError> {
        let claim = self.dir.join(CLAIMS).join(owner);
        let created =
            OpenOptions::new().write(true).create_new(true).mode(self.readers.file_mode()).open(&claim);
        match created.and_then(|file| file.sync_all()) {
            Ok(()) => sync_dir(&self.dir.join(CLAIMS)).map_err(|source| self.unusable(source))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::AlreadyClaimed);
            }
            Err(source) => return Err(self.unusable(source)),
        }
        Ok(claim)
    }

    fn link(&self, partial: &Path, newest: Timestamp) -> Result<PathBuf, StoreError> {
        for later in 0..NAME_ATTEMPTS {
            let at = newest.checked_add(later.seconds()).unwrap_or(newest);
            let path = self.dir.join(file_name(at));
            match fs::hard_link(partial, &path) {
                Ok(()) => {
                    sync_dir(&self.dir).map_err(|source| self.unusable(source))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(self.unusable(source)),
            }
        }
        Err(StoreError::NoFreeName(file_name(newest)))
    }

    /// Creates the error about an operation in the folder that failed.
    pub fn unusable(&self, source: io::Error) -> StoreError {
        StoreError::Io { path: self.dir.clone(), source }
    }
}

/// Returns `insights-YYYY-MM-DD-HHMMSS.tar.gz`, in UTC.
pub fn file_name(at: Timestamp) -> String {
    at.strftime("insights-%Y-%m-%d-%H%M%S.tar.gz").to_string()
}

fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("insights-") && name.ends_with(".tar.gz")
}

/// A file under construction, removed when dropped, published or not.
struct Partial {
    path: PathBuf,
    mode: u32,
}

impl Partial {
    /// Writes the file, which is locked while it is open, so that other processes do not take it for a leftover.
    fn fill(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
        let file = OpenOptions::new().write(true).create_new(true).mode(self.mode).open(&self.path)?;
        if let Err(error) = file.try_lock() {
            debug!(%error, "the folder of archives knows no locks: it is for one process at a time");
        }
        let mut buffer = BufWriter::new(file);
        write(&mut buffer)?;
        let file = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            warn!(%error, file = %self.path.display(), "unfinished archive stays until the next start");
        }
    }
}

/// Whether the writer of the file is alive: the lock of a killed process is released.
fn is_being_written(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Syncs a folder: only then is a new name in it durable.
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
