//! Cancels synchronous work from outside: that of a request whose deadline has passed, or whose client has gone.
//!
//! Walks over objects are plain functions that call each other many levels deep. They call [`checkpoint`] in their
//! loops; once the work is cancelled, the next call unwinds to the thread that was started for it.
//!
//! ```text
//! running ──commit──► committing ──withdraw──► running
//!    └──────end──────► over
//! ```
//!
//! INVARIANT: a change is either done completely and reported, or not done. What has begun to be stored is not
//! cancelled any more, and what was cancelled does not begin to be stored: one atomic state decides which came first.
//!
//! INVARIANT: there is no checkpoint between the first and the last of several changes to a value that outlives the
//! work, nor while it holds a lock: whatever cancelled work leaves behind belongs to it alone.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;
use std::thread::panicking;

use futures::task::AtomicWaker;

const RUNNING: u8 = 0;
const COMMITTING: u8 = 1;
const OVER: u8 = 2;

/// A handle that cancels one piece of work.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    state: AtomicU8,
    waker: AtomicWaker,
}

/// The payload of the unwinding when work is cancelled: not a panic, so that none is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

thread_local! {
    /// The work that this thread runs, if it can be cancelled.
    static CURRENT: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
}

impl Interrupt {
    /// Cancels the work, unless it has begun to store its result. Returns whether it is over.
    pub(crate) fn end(&self) -> bool {
        let ended = self.state.compare_exchange(RUNNING, OVER, Ordering::AcqRel, Ordering::Acquire);
        self.waker.wake();
        ended.is_ok() || ended == Err(OVER)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) == OVER
    }

    /// Registers a waker that is woken when the work is cancelled.
    pub(crate) fn wake_at_end(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

/// Runs `work`, which `interrupt` may cancel.
pub(crate) fn within<T>(interrupt: &Arc<Interrupt>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous work, however this one ended.
    struct Before(Option<Arc<Interrupt>>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(Some(Arc::clone(interrupt))));
    // Evaluation in other packages calls the checkpoint, too.
    admit_policy::asking(checkpoint, work)
}

/// Returns whether the work of this thread is cancelled.
pub(crate) fn is_over() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|interrupt| interrupt.is_over()))
}

/// Unwinds if the work is cancelled. Call it in every loop whose length a client controls.
pub(crate) fn checkpoint() {
    // No second unwinding in destructors that run during a panic.
    if is_over() && !panicking() {
        resume_unwind(Box::new(Interrupted));
    }
}

/// Begins to store something: from here on the work cannot be cancelled. Does not return if it is cancelled already. Returns
/// whether this is the first call.
pub(crate) fn commit() -> bool {
    let begins = CURRENT.with_borrow(|current| {
        let exchange = |interrupt: &Arc<Interrupt>| {
            interrupt.state.compare_exchange(RUNNING, COMMITTING, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        current.as_ref().is_some_and(exchange)
    });
    checkpoint();
    begins
}

/// Returns from committing to running, because nothing is stored, or what is stored is complete by itself: the work may
/// be cancelled again.
pub(crate) fn withdraw() {
    CURRENT.with_borrow(|current| {
        if let Some(interrupt) = current {
            let _ =
                interrupt.state.compare_exchange(COMMITTING, RUNNING, Ordering::AcqRel, Ordering::Acquire);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn outcome(interrupt: &Arc<Interrupt>, work: impl FnOnce() -> u8) -> Result<u8, Interrupted> {
        let caught = catch_unwind(AssertUnwindSafe(|| within(interrupt, work)));
        caught.map_err(|payload| *payload.downcast().unwrap())
    }

    #[test]
    fn work_goes_on_until_it_is_ended_and_stops_where_it_asks_next() {
        let interrupt = Arc::<Interrupt>::default();
        checkpoint();
        let work = |ends: u8| {
            (0..ends).find(|round| {
                if *round == 7 {
                    assert!(interrupt.end());
                }
                checkpoint();
                *round == 9
            })
        };
        assert_eq!(outcome(&interrupt, || work(7).unwrap_or(7)), Ok(7));
        assert_eq!(outcome(&interrupt, || work(20).unwrap_or(20)), Err(Interrupted));
        assert_eq!(outcome(&interrupt, || u8::from(is_over())), Ok(1));
        // Outside of the cancelled work nothing is cancelled.
        assert!(!is_over());
        checkpoint();
    }

    #[test]
    fn what_begins_to_be_stored_is_not_ended_and_what_was_ended_is_not_stored() {
        let interrupt = Arc::<Interrupt>::default();
        let stored = outcome(&interrupt, || {
            assert!(commit());
            assert!(!interrupt.end(), "it is too late");
            assert!(!commit(), "a second one belongs to the first");
            checkpoint();
            1
        });
        assert_eq!(stored, Ok(1));
        let taken_back = outcome(&interrupt, || {
            withdraw();
            assert!(interrupt.end());
            u8::from(commit())
        });
        assert_eq!(taken_back, Err(Interrupted));
    }
}
