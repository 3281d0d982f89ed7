//! Limits the time of work: deadlines, and a callback that long work calls between its steps. The caller supplies the clock, since this
//! package reads none.

use std::cell::Cell;
use std::fmt;

use thiserror::Error;

/// A check for whether the time is over. It is called before every expression, at least every hundred iterations
/// within one, and now and then while an object is read, defaulted, pruned and validated. What is not decided by then
/// fails with the error `operation interrupted`: for a policy, its failurePolicy applies; a write is refused.
///
/// ```
/// use admit_policy::{Deadline, Interrupted, Pace};
///
/// let late = || true;
/// let deadline = Deadline::new(&late);
/// assert!(deadline.has_passed());
///
/// // Work of many small steps looks at the clock now and then.
/// let pace = Pace::new(Some(deadline));
/// assert!((0..100_000).any(|_| pace.is_over()));
/// assert_eq!(pace.outcome(), Err(Interrupted));
/// ```
#[derive(Clone, Copy)]
pub struct Deadline<'a> {
    passed: &'a (dyn Fn() -> bool + 'a),
}

impl<'a> Deadline<'a> {
    /// Creates a deadline from a function that returns whether it has passed. Once it returns true it must continue
    /// to.
    pub const fn new(passed: &'a (dyn Fn() -> bool + 'a)) -> Self {
        Self { passed }
    }

    pub fn has_passed(self) -> bool {
        (self.passed)()
    }

    pub(crate) const fn as_fn(self) -> &'a (dyn Fn() -> bool + 'a) {
        self.passed
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").finish_non_exhaustive()
    }
}

thread_local! {
    /// The function that the work on this thread calls between its steps.
    static ASKED: Cell<fn()> = const { Cell::new(nothing) };
}

fn nothing() {}

/// Runs `work` with interruption checks disabled: its result is shared with other work, and a lock may be held.
///
/// [`asking`] has an example.
pub fn unasked<T>(work: impl FnOnce() -> T) -> T {
    asking(nothing, work)
}

/// Runs `work`, which calls `ask` between its steps wherever no [`Deadline`] is passed as an argument: while CRDs and
/// policies are compiled, and patches applied. `ask` returns, or unwinds to the caller that ends the work in this
/// way; nothing is left half done except the result of `work` itself.
///
/// ```
/// use std::cell::Cell;
///
/// use admit_policy::{Policy, asking, unasked};
/// use serde_json::json;
///
/// thread_local! {
///     static ASKED: Cell<u32> = const { Cell::new(0) };
/// }
///
/// let policy = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicy",
///     "metadata": {"name": "a"},
///     "spec": {
///         "matchConstraints": {"resourceRules": [
///             {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
///         ]},
///         "validations": [{"expression": "true"}, {"expression": "object != null"}],
///     },
/// });
/// let count = || ASKED.set(ASKED.get() + 1);
/// assert!(asking(count, || Policy::compile(&policy)).is_ok());
/// assert!(ASKED.replace(0) > 0);
/// assert!(asking(count, || unasked(|| Policy::compile(&policy))).is_ok());
/// assert_eq!(ASKED.get(), 0);
/// ```
pub fn asking<T>(ask: fn(), work: impl FnOnce() -> T) -> T {
    /// Restores the previous function, however the work ends.
    struct Before(fn());
    impl Drop for Before {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }
    let _before = Before(ASKED.replace(ask));
    work()
}

/// Ends the work if its time is over. Call it between steps that may take long, such as the compilation of an
/// expression or a pattern, while no lock is held.
pub(crate) fn checkpoint() {
    ASKED.get()();
}

/// The time was over before the work was done; a partial result must not be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("operation interrupted")]
pub struct Interrupted;

/// Checks a [`Deadline`] at intervals, for work of many small steps. Once the time is over it stays so, and every
/// walk that shares the pace ends at its next step.
///
/// [`Deadline`] has an example.
#[derive(Debug, Default)]
pub struct Pace<'a> {
    deadline: Option<Deadline<'a>>,
    steps: Cell<u32>,
    over: Cell<bool>,
}

impl<'a> Pace<'a> {
    /// Steps between two looks at the clock. A step is a node of a document against a node of its schema, far below a
    /// microsecond but for the longest of patterns, so that a stop is noticed within a millisecond or so; a look at a clock is
    /// some 30 ns.
    const EVERY: u32 = 256;

    #[must_use]
    pub const fn new(deadline: Option<Deadline<'a>>) -> Self {
        Self { deadline, steps: Cell::new(0), over: Cell::new(false) }
    }

    /// Counts a step. Whether it is the one after the last: the time is over.
    pub fn is_over(&self) -> bool {
        if !self.over.get() {
            let steps = self.steps.get().wrapping_add(1);
            self.steps.set(steps);
            if steps.is_multiple_of(Self::EVERY) {
                checkpoint();
                self.over.set(self.deadline.is_some_and(Deadline::has_passed));
            }
        }
        self.over.get()
    }

    /// Whether the work was done in time.
    ///
    /// # Errors
    /// [`Interrupted`] when a step found that the time was over.
    pub fn outcome(&self) -> Result<(), Interrupted> {
        if self.over.get() { Err(Interrupted) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, resume_unwind};

    use super::*;

    thread_local! {
        static STEPS: Cell<u32> = const { Cell::new(0) };
    }

    fn ask() {
        STEPS.set(STEPS.get() + 1);
        if STEPS.get() > 3 {
            resume_unwind(Box::new(()));
        }
    }

    #[test]
    fn work_is_asked_until_it_is_ended_and_nobody_is_afterwards() {
        let steps = |count: u32| {
            let pace = Pace::default();
            (0..count * Pace::EVERY).filter(|_| pace.is_over()).count()
        };
        assert_eq!(catch_unwind(|| asking(ask, || steps(3))).ok(), Some(0));
        assert!(catch_unwind(|| asking(ask, || steps(1))).is_err());
        assert_eq!((steps(9), STEPS.get()), (0, 4));
    }
}
