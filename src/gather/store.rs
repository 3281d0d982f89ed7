//! The folder of archives, and the promise that a gathering never leaves two of them.
//!
//! INVARIANT: at most one archive exists per owner (the uid of the object that asked for it), whatever is killed when:
//! 1. the bytes go to `.partial-<uid>` and are synced; nobody takes that name for an archive;
//! 2. `.claims/<uid>` is created exclusively and synced. A second attempt for the uid fails here for ever, also
//!    after a restart and also when the API server has lost its newest writes;
//! 3. the partial file is linked, exclusively, to its final name and the partial name removed.
//!
//! Killed before 2: no archive and no claim. Between 2 and 3: a claim without an archive; the gathering has failed.
//! After 3: one archive. Partial files are removed when the folder is opened, unless their writer lives: gathering Jobs
//! may share a folder. A final name is taken once (`link` refuses an existing one); a gathering of the same second takes
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
/// How many seconds further a taken name may move a new archive's name. Archives are kept while a service that is slow has not taken them,
/// and a thousand may wait: looking for a name costs microseconds for each that is taken.
const NAME_ATTEMPTS: i64 = 3_600;

/// Who may read archives, besides their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// The group, as with the archives of the Insights operator: a volume may be shared with who collects them.
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
    /// Archives that somebody still reads; pruning leaves them.
    pinned: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// A published archive, kept from pruning for as long as this value lives.
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
    /// Opens `dir`, made where it is missing, for the owner and the group, and removes what an interrupted write left.
    ///
    /// # Errors
    /// [`StoreError::Io`] naming the folder when it cannot be made, read or written.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_for(dir, Readers::default())
    }

    /// The same for other `readers` of what is made from now on.
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

    /// Makes the archive of `owner`, named after `newest`, of what `write` writes.
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
        // For people only: which gathering an archive belongs to. The claim holds without it.
        if let Err(error) = fs::write(&claim, published.name()) {
            warn!(%error, claim = %claim.display(), "claim stays without the archive's name");
        }
        Ok(published)
    }

    /// A file that has no name and is gone when it is closed, for what an archive is made of.
    ///
    /// # Errors
    /// [`StoreError::Io`] naming the folder when it cannot be written.
    pub fn scratch(&self) -> Result<File, StoreError> {
        let path = self.dir.join(format!("{PARTIAL}{}", uuid::Uuid::new_v4()));
        let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = made.map_err(|source| self.unusable(source))?;
        match fs::remove_file(&path) {
            Ok(()) => {}
            // Taken for a leftover by another process that opens the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(self.unusable(source)),
        }
        Ok(file)
    }

    /// Removes the oldest archives beyond the newest `keep`; claims stay.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the folder cannot be read or a file not be removed.
    pub fn prune(&self, keep: usize) -> Result<(), StoreError> {
        let mut names = self.archives()?;
        // By age, not by name: archives of one second carry names ahead of their time.
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

    /// Paths of all archives.
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

    /// What it means that something in the folder failed.
    pub fn unusable(&self, source: io::Error) -> StoreError {
        StoreError::Io { path: self.dir.clone(), source }
    }
}

/// `insights-YYYY-MM-DD-HHMMSS.tar.gz`, in UTC.
pub fn file_name(at: Timestamp) -> String {
    at.strftime("insights-%Y-%m-%d-%H%M%S.tar.gz").to_string()
}

fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("insights-") && name.ends_with(".tar.gz")
}

/// A file under construction: gone when dropped, published or not.
struct Partial {
    path: PathBuf,
    mode: u32,
}

impl Partial {
    /// The file, which is locked as long as it is open: by that other processes on the folder tell it from a leftover.
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

/// Whether the process that makes the file lives: the lock of one that was killed has gone with it.
fn is_being_written(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// A new name is durable only once its folder is synced.
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
