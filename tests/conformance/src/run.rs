//! Runs cases on all processors; a panic in one does not affect the others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::kinds::Case;
use crate::report::{Aspect, Check};

/// The checks of one case.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) id: String,
    pub(crate) checks: Vec<Check>,
}

/// The outcomes of `cases`, in their order.
pub(crate) fn all(cases: &[Box<dyn Case>]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::with_capacity(cases.len()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, case)) = take(&next, cases) {
                    let outcome = one(case);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((index, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Box<dyn Case>]) -> Option<(usize, &'a dyn Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    cases.get(index).map(|case| (index, case.as_ref()))
}

fn one(case: &dyn Case) -> Outcome {
    let checks = catch_unwind(AssertUnwindSafe(|| case.run()))
        .unwrap_or_else(|_| vec![Check::new(Aspect::Verdict, "no panic", "panicked")]);
    Outcome { id: case.id().to_owned(), checks }
}
