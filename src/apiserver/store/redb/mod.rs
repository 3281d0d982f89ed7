//! Stores the newest state of every object, and the revision counter, in one redb file. History is not kept, so a
//! restarted server answers 410 to watches from before.
//!
//! ```text
//! medium   where the bytes lie: a file for its owner alone, made whole or not at all
//! unsynced the same without waiting for the disk
//! format   what lies there: keys without a separator, values with a checksum, and how older files become that
//! slots    the two commits that a file holds, and which of them counts
//! caught   redb's panics over damaged files, as errors
//! ```

mod caught;
mod format;
mod medium;
mod slots;
mod unsynced;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::Database;

use self::caught::caught;
pub use self::medium::{Medium, Opened, StateFile};
use self::slots::Slots;
pub use self::unsynced::{Unsynced, UnsyncedFile};
use super::Revision;
use super::backend::{Backend, BackendError, Image, Record};

/// Bytes of pages that redb caches. All objects are in memory already, so the cache needs to hold little more than the inner
/// pages that a write walks through, a hundredth of the file; more would hold objects a second time.
const CACHE: usize = 8 << 20;

/// A backend with the objects in one redb database, on a [`Medium`]: a file except in tests.
///
/// ```
/// use admit_apiserver::store::{RedbBackend, StateFile, Store, UnsyncedFile};
///
/// let folder = tempfile::tempdir()?;
/// let store = Store::open(Box::new(RedbBackend::open(&folder.path().join("state.redb"))?))?;
/// // The same by its parts: any medium will do.
/// let backend = RedbBackend::over(StateFile::new(&folder.path().join("other.redb")))?;
/// // For tests: writes do not wait for the disk, and survive this process.
/// let fast = UnsyncedFile::new(&folder.path().join("fast.redb"));
/// let store = Store::open(Box::new(RedbBackend::over(fast)?))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RedbBackend<M: Medium = StateFile> {
    medium: M,
    /// None after reopening failed.
    database: Option<Database>,
}

impl RedbBackend<StateFile> {
    /// Opens the file, or creates one that only its owner may read. Files of older versions are converted.
    ///
    /// # Errors
    /// When it cannot be opened, is empty, is not a store, is damaged, or is in use by another process.
    pub fn open(path: &Path) -> Result<Self, BackendError> {
        Self::over(StateFile::new(path))
    }
}

impl<M: Medium> RedbBackend<M> {
    /// Opens a database on any medium.
    ///
    /// # Errors
    /// As [`RedbBackend::open`].
    pub fn over(medium: M) -> Result<Self, BackendError> {
        let database = open(&medium, true)?;
        Ok(Self { medium, database: Some(database) })
    }

    fn database(&self) -> Result<&Database, BackendError> {
        self.database.as_ref().ok_or_else(|| BackendError("it is not open".to_owned()))
    }
}

impl<M: Medium> Backend for RedbBackend<M> {
    fn load(&self) -> Result<Image, BackendError> {
        let database = self.database()?;
        caught(|| format::load(database)).map_err(|why| unreadable(&self.medium, why))
    }

    fn append(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        let database = self.database()?;
        caught(|| format::append(database, batch))
    }

    fn recover(&mut self) -> Result<Revision, BackendError> {
        self.medium.room().map_err(failed)?;
        // After an error redb refuses everything until the database is reopened, for which its lock must be released first.
        let old = self.database.take();
        caught(|| {
            drop(old);
            Ok(())
        })?;
        let database = open(&self.medium, false)?;
        let revision = caught(|| format::revision(&database))?;
        self.database = Some(database);
        Ok(revision)
    }
}

impl<M: Medium> std::fmt::Debug for RedbBackend<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbBackend").finish_non_exhaustive()
    }
}

/// Opens a database and checks every page; creates one only if `may_begin`.
fn open<M: Medium>(medium: &M, may_begin: bool) -> Result<Database, BackendError> {
    let Opened { storage, fresh } = medium.open().map_err(|error| unreadable(medium, failed(error)))?;
    if fresh && !may_begin {
        return Err(unreadable(medium, failed("it is gone")));
    }
    let opened = caught(|| prepared(medium, storage, fresh));
    let (database, found) = opened.map_err(|why| unreadable(medium, why))?;
    if fresh {
        medium.publish().map_err(|error| unreadable(medium, failed(error)))?;
    }
    // Logged only now: a database that cannot be opened is reported by one message.
    found.tell(&medium.name());
    Ok(database)
}

fn prepared<M: Medium>(
    medium: &M,
    storage: M::Storage,
    fresh: bool,
) -> Result<(Database, Found), BackendError> {
    let recovery = Arc::new(Recovery::default());
    let noted = Arc::clone(&recovery);
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE).set_repair_callback(move |session| noted.note(session.progress()));
    let mut database = builder.create_with_backend(Slots::of(storage)).map_err(failed)?;
    let mut found = Found { went_back: recovery.back.load(Ordering::Relaxed), ..Found::default() };
    if fresh {
        format::begin(&database)?;
        return Ok((database, found));
    }
    // Recovery has verified every page itself.
    if !recovery.begun.load(Ordering::Relaxed) {
        // If the newest change is damaged redb falls back to the one before it, which would lose acknowledged writes of a
        // store that was closed properly.
        let newest = caught(|| format::revision(&database)).ok();
        found.repaired = !database.check_integrity().map_err(failed)?;
        if found.repaired && newest != Some(format::revision(&database)?) {
            return Err(failed("its newest change is damaged"));
        }
    }
    found.updated = format::update(&database, &medium.name())?;
    Ok((database, found))
}

/// The progress that redb reports while it recovers a database that was not closed.
#[derive(Default)]
struct Recovery {
    begun: AtomicBool,
    /// Whether it went back to the change before the newest.
    back: AtomicBool,
}

impl Recovery {
    /// The progress that redb reports only when the pages of the newest change are incomplete.
    const GOING_BACK: f64 = 0.3;

    fn note(&self, progress: f64) {
        self.begun.store(true, Ordering::Relaxed);
        if (progress - Self::GOING_BACK).abs() < f64::EPSILON {
            self.back.store(true, Ordering::Relaxed);
        }
    }
}

/// Irregularities that were found and repaired on opening.
#[derive(Default)]
struct Found {
    went_back: bool,
    repaired: bool,
    /// Number of objects that were converted to the current format.
    updated: Option<usize>,
}

impl Found {
    fn tell(&self, store: &str) {
        if self.went_back {
            tracing::error!(
                store,
                "the newest change was not written whole before the process or the machine ended, or is damaged; it is \
                 left out"
            );
        }
        if self.repaired {
            tracing::warn!(
                store,
                "the list of free pages was damaged and has been made anew; no object is touched"
            );
        }
        if let Some(objects) = self.updated {
            tracing::info!(
                store,
                objects,
                "brought to the form of this version; older ones can no longer open it"
            );
        }
    }
}

fn unreadable<M: Medium>(medium: &M, BackendError(why): BackendError) -> BackendError {
    BackendError(format!("cannot open {}: {why}", medium.name()))
}

fn failed(error: impl std::fmt::Display) -> BackendError {
    BackendError(error.to_string())
}
