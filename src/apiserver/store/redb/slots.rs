//! Looks at the commit slots of a database that was not closed, before redb does.
//!
//! A database has two commit slots, and a bit that says which of them is in force. After a two-phase commit redb takes that bit's word and
//! never looks at the other slot, so that one flipped bit would quietly bring back what was in force before: an acknowledged change would
//! be gone. No checksum covers the bit. If the other slot is newer and both are whole, either that bit is damaged or a commit ended
//! between its two phases. redb is told that the commit had one phase then: it takes the newer slot if all its pages verify, else the
//! one in force.

use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{BackendError, StorageBackend};
use xxhash_rust::xxh3::xxh3_128;

const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// The byte of the flags.
const FLAGS: usize = MAGIC.len();
/// The second slot is in force.
const SECOND: u8 = 1;
/// The database was not closed.
const IN_USE: u8 = 2;
const TWO_PHASES: u8 = 4;
const SLOTS: [usize; 2] = [64, 192];
/// The version of the format, as the first byte of a slot.
const VERSION: u8 = 3;
/// The number of the transaction, and the checksum of all before it: their places in a slot.
const TRANSACTION: usize = 104;
const CHECKSUM: usize = 112;

/// Storage whose header lets redb choose the newer slot, until it is written.
#[derive(Debug)]
pub(super) struct Slots<S> {
    storage: S,
    is_written: AtomicBool,
}

impl<S> Slots<S> {
    pub(super) const fn of(storage: S) -> Self {
        Self { storage, is_written: AtomicBool::new(false) }
    }
}

impl<S: StorageBackend> StorageBackend for Slots<S> {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read(offset, out)?;
        if offset == 0 && !self.is_written.load(Ordering::Relaxed) {
            choose_newer(out);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.storage.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset == 0 {
            self.is_written.store(true, Ordering::Relaxed);
        }
        self.storage.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.storage.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_shared_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.query_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.unlock_range(start, end)
    }
}

/// Says in a header in which the older slot is in force that the commit had one phase.
fn choose_newer(header: &mut [u8]) {
    let Some(flags) = header.get(FLAGS).copied().filter(|_| header.starts_with(MAGIC)) else { return };
    let [Some(first), Some(second)] = SLOTS.map(|at| transaction(header, at)) else { return };
    let (in_force, other) = if flags & SECOND == 0 { (first, second) } else { (second, first) };
    if flags & (IN_USE | TWO_PHASES) == IN_USE | TWO_PHASES
        && other > in_force
        && let Some(byte) = header.get_mut(FLAGS)
    {
        *byte = flags & !TWO_PHASES;
    }
}

/// Returns the number of a slot's transaction; none of a damaged slot.
fn transaction(header: &[u8], slot: usize) -> Option<u64> {
    let (slot, checksum) = header.get(slot..)?.split_at_checked(CHECKSUM)?;
    let is_whole = xxh3_128(slot) == u128::from_le_bytes(*checksum.first_chunk()?);
    let number = slot.get(TRANSACTION..)?.first_chunk()?;
    (is_whole && slot.first() == Some(&VERSION)).then(|| u64::from_le_bytes(*number))
}
