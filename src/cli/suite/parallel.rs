//! Runs work on all processors and returns results in order.
//!
//! It starts its own threads instead of using a pool, because evaluation recurses as deep as expressions nest, so
//! the stack size matters. Pieces of work are independent, so a shared counter is all the scheduling that they need.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use admit_policy::release;

/// The stack size: enough for the deepest expressions that the parser accepts.
const STACK: usize = 8 * 1024 * 1024;

/// Returns how many threads work at a time.
pub(super) fn workers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns the results of `work` for `0..count`, up to the first one for which `is_last` is true.
pub(in crate::cli) fn ordered<T: Send>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    is_last: impl Fn(&T) -> bool + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results = Mutex::new(Vec::with_capacity(count));
    // Worker threads follow the same release as the calling thread.
    let asked = release::followed();
    let piece = |index| release::following(asked, || work(index));
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let result = piece(index);
            if is_last(&result) {
                stop.store(true, Ordering::Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    let workers = workers().min(count);
    thread::scope(|scope| {
        // The calling thread does no work itself: the size of its stack is not under control.
        let spawned = (0..workers)
            .filter(|_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, worker).is_ok())
            .count();
        // If no thread can be started, this one does all the work.
        if spawned == 0 {
            worker();
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    // Indexes are taken in order, so everything before the first last one has been done.
    let end = results.iter().position(|(_, result)| is_last(result)).map_or(results.len(), |last| last + 1);
    results.into_iter().take(end).map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::ordered;

    #[test]
    fn results_come_in_order_and_end_with_the_last() {
        assert_eq!(ordered(100, |index| index * 2, |_| false), (0..200).step_by(2).collect::<Vec<_>>());
        assert_eq!(ordered(100, |index| index, |result| *result >= 7), (0..=7).collect::<Vec<_>>());
        assert_eq!(ordered(0, |index| index, |_| false), Vec::<usize>::new());
    }
}
