//! Limits the bytes that are held in memory for clients, per user and in total; reservations beyond wait until others
//! are released.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of one permit: semaphores count in 32 bits, so single bytes would not fit.
const UNIT: usize = 1024;
/// The number of entries at which those of users that hold nothing are removed.
const SWEEP: usize = 1024;

/// A budget of bytes, per user and in total. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all: Arc<Semaphore>,
    in_all: usize,
    of_user: usize,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Reserved bytes, which are released when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    own: Option<OwnedSemaphorePermit>,
    of_all: Option<OwnedSemaphorePermit>,
    // Dropped after the permits, which belong to it.
    _user: Arc<Semaphore>,
}

impl Budget {
    pub(crate) fn new(of_user: usize, in_all: usize) -> Self {
        let (of_user, in_all) = (of_user / UNIT, in_all / UNIT);
        Self(Arc::new(Inner {
            all: Arc::new(Semaphore::new(in_all)),
            in_all,
            of_user,
            users: Mutex::default(),
        }))
    }

    /// Reserves so many bytes for the user, waiting if necessary. A request beyond the user's limit reserves the limit.
    pub(crate) async fn reserve(&self, user: &str, bytes: usize) -> Reservation {
        let own = self.of(user);
        let units = u32::try_from(bytes.div_ceil(UNIT).clamp(1, self.0.of_user.max(1))).unwrap_or(u32::MAX);
        // The user's share first: waiting for it holds up nobody else. Neither semaphore is ever closed.
        let permit = Arc::clone(&own).acquire_many_owned(units).await.ok();
        let of_all = Arc::clone(&self.0.all).acquire_many_owned(units).await.ok();
        Reservation { own: permit, of_all, _user: own }
    }

    /// Returns whether the user's own limit forbids so many bytes more, however few others hold.
    pub(crate) fn is_used_up(&self, user: &str, bytes: usize) -> bool {
        self.of(user).available_permits() < bytes.div_ceil(UNIT)
    }

    /// Returns the bytes that are reserved now.
    pub(crate) fn held(&self) -> usize {
        self.0.in_all.saturating_sub(self.0.all.available_permits()) * UNIT
    }

    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = users.get(user).and_then(Weak::upgrade) {
            return known;
        }
        if users.len() >= SWEEP {
            users.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let own = Arc::new(Semaphore::new(self.0.of_user));
        users.insert(user.to_owned(), Arc::downgrade(&own));
        own
    }
}

impl Reservation {
    /// Releases what exceeds so many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        for permit in [&mut self.own, &mut self.of_all].into_iter().flatten() {
            let more = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(more));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn nobody_takes_the_share_of_others() {
        let budget = Budget::new(4 * UNIT, 10 * UNIT);
        let reserve = |user: &str, bytes: usize| budget.reserve(user, bytes).now_or_never();
        let first = reserve("ann", 3 * UNIT).unwrap();
        assert!(reserve("ann", 2 * UNIT).is_none());
        assert!(budget.is_used_up("ann", 2 * UNIT) && !budget.is_used_up("bob", 2 * UNIT));
        let others = [reserve("bob", 100 * UNIT).unwrap(), reserve("eve", 1).unwrap()];
        assert_eq!(budget.held(), 8 * UNIT);
        assert!(reserve("joe", 3 * UNIT).is_none(), "all is used up");
        drop(first);
        assert!(reserve("joe", 3 * UNIT).is_some());
        let [mut bob, eve] = others;
        bob.shrink(UNIT + 1);
        assert_eq!(budget.held(), 3 * UNIT);
        drop((bob, eve));
        assert_eq!(budget.held(), 0);
        for user in 0..2 * SWEEP {
            assert!(reserve(&user.to_string(), UNIT).is_some());
        }
        assert!(budget.0.users.lock().unwrap().len() <= SWEEP);
    }
}
