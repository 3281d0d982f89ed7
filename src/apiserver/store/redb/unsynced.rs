//! Implements a state file without syncs: writes survive a crash of the process, but not one of the
//! machine. For tests, which would otherwise wait for the disk most of the time.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::medium::{Medium, Opened, StateFile};

/// A [`StateFile`] whose changes the operating system writes at a time of its choice.
///
/// [`RedbBackend`](super::RedbBackend) has an example.
#[derive(Clone, Debug)]
pub struct UnsyncedFile(StateFile);

/// The storage of an [`UnsyncedFile`].
pub struct Unsynced(FileBackend);

impl UnsyncedFile {
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(StateFile::new(path))
    }
}

impl Medium for UnsyncedFile {
    type Storage = Unsynced;

    fn name(&self) -> String {
        self.0.name()
    }

    fn open(&self) -> io::Result<Opened<Unsynced>> {
        let Opened { storage, fresh } = self.0.open()?;
        Ok(Opened { storage: Unsynced(storage), fresh })
    }

    fn publish(&self) -> io::Result<()> {
        self.0.publish()
    }

    fn room(&self) -> io::Result<()> {
        self.0.room()
    }
}

impl fmt::Debug for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unsynced")
    }
}

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.query_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }
}
