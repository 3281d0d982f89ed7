//! Who may write a status of a quota when: per namespace, so that a count in a large one keeps nobody else waiting.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::{Instant, sleep};

/// Namespaces share so many ledgers: which ones share one, nobody can choose, since places are drawn anew at each start.
const LEDGERS: u64 = 64;

/// How many times as long as its last count a ledger rests before somebody who writes has it counted again.
const REST: u32 = 4;

/// How long somebody who writes waits for the rest to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a ledger may be counted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rested {
    /// It had rested already.
    Before,
    /// It has rested by now: somebody else may have counted meanwhile.
    Now,
    NotYet,
}

#[derive(Debug)]
pub(super) struct Ledgers {
    /// All but one.
    ledgers: Vec<Ledger>,
    last: Ledger,
    places: RandomState,
}

/// What orders the charges and counts of some namespaces.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Read by who charges until the object is stored, and written by who counts.
    open: RwLock<()>,
    /// Charges come one after the other: each builds on the status that the one before left.
    turn: tokio::sync::Mutex<()>,
    /// Until when nobody who writes has it counted.
    rests: Mutex<Option<Instant>>,
}

impl Default for Ledgers {
    fn default() -> Self {
        let ledgers = (1..LEDGERS).map(|_| Ledger::default()).collect();
        Self { ledgers, last: Ledger::default(), places: RandomState::new() }
    }
}

impl Ledgers {
    /// The ledger of a namespace.
    pub(super) fn of(&self, namespace: &str) -> &Ledger {
        let place = self.places.hash_one(namespace) % LEDGERS;
        usize::try_from(place).ok().and_then(|place| self.ledgers.get(place)).unwrap_or(&self.last)
    }
}

impl Ledger {
    /// Keeps counts away.
    pub(super) async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.open.read().await
    }

    /// Keeps other charges away, too.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Keeps everybody away.
    pub(super) async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.open.write().await
    }

    /// Waits until it has rested, unless that takes long.
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

    /// Says how long the count took that ends now.
    pub(super) fn rest(&self, took: Duration) {
        let until = Instant::now().checked_add(took.saturating_mul(REST));
        *self.rests.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}
