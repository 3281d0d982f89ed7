//! Provides the locks for quota statuses, by namespace, so that a count in a large one blocks no other.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::{Instant, sleep};

/// The number of ledgers that namespaces share. Their assignment is random at each start, so that nobody can choose it.
const LEDGERS: u64 = 64;

/// The pause of a ledger before a write has it counted again, in multiples of the last count's time.
const REST: u32 = 4;

/// How long a write waits for the pause to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says whether a ledger may be counted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rested {
    /// The pause was over already.
    Before,
    /// The pause ended while waiting: another write may have counted meanwhile.
    Now,
    NotYet,
}

#[derive(Debug)]
pub(super) struct Ledgers {
    /// One less than the number of ledgers.
    ledgers: Vec<Ledger>,
    last: Ledger,
    places: RandomState,
}

/// Serialises the charges and counts of some namespaces.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Held for reading by a charge until its object is stored, and for writing by a count.
    open: RwLock<()>,
    /// Held by one charge at a time: each builds on the status that the previous one left.
    turn: tokio::sync::Mutex<()>,
    /// The time before which no write has it counted.
    rests: Mutex<Option<Instant>>,
}

impl Default for Ledgers {
    fn default() -> Self {
        let ledgers = (1..LEDGERS).map(|_| Ledger::default()).collect();
        Self { ledgers, last: Ledger::default(), places: RandomState::new() }
    }
}

impl Ledgers {
    /// Returns the ledger of a namespace.
    pub(super) fn of(&self, namespace: &str) -> &Ledger {
        let place = self.places.hash_one(namespace) % LEDGERS;
        usize::try_from(place).ok().and_then(|place| self.ledgers.get(place)).unwrap_or(&self.last)
    }
}

impl Ledger {
    /// Locks out counts.
    pub(super) async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.open.read().await
    }

    /// Locks out other charges, too.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Locks out charges and counts.
    pub(super) async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.open.write().await
    }

    /// Waits until the pause is over, unless that takes long.
    pub(super) async fn rested(&self) -> Rested {
        let until = *self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match until.and_then(|until| until.checked_duration_since(now)).filter(|rest| !rest.is_zero()) {
            None => Rested::Before,
            Some(rest) if rest > PATIENCE => Rested::NotYet,
            Some(rest) => {
                sleep(rest).await;
                Rested::Now
            }
        }
    }

    /// Begins the pause after a count that took this long.
    pub(super) fn rest(&self, took: Duration) {
        let until = Instant::now().checked_add(took.saturating_mul(REST));
        *self.rests.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}
