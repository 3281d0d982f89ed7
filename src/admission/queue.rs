//! Implements a bounded queue of work, from which several threads take the oldest item first.
//!
//! A thread that finds the queue empty sleeps immediately. Channels that spin first are faster if items follow each other
//! within microseconds; here, the threads of the connections need the processor meanwhile, and at half
//! load spinning took a quarter of it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A bounded queue.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    more: Condvar,
    room: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    /// The items with their arrival times, the oldest first.
    work: VecDeque<(Instant, T)>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(room: usize) -> Self {
        let waiting = Waiting { work: VecDeque::with_capacity(room), closed: false };
        Self { waiting: Mutex::new(waiting), more: Condvar::new(), room }
    }

    /// Adds an item, or returns it if the queue is full.
    pub(super) fn put(&self, work: T) -> Result<(), T> {
        let mut waiting = self.locked();
        if waiting.closed || waiting.work.len() >= self.room {
            return Err(work);
        }
        waiting.work.push_back((Instant::now(), work));
        drop(waiting);
        self.more.notify_one();
        Ok(())
    }

    /// Waits for the next item; None when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<T> {
        let mut waiting = self.locked();
        loop {
            if let Some((_, work)) = waiting.work.pop_front() {
                return Some(work);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes the items that arrived before `then`; also returns whether others remain.
    pub(super) fn give_up(&self, then: Instant) -> (Vec<T>, bool) {
        let mut waiting = self.locked();
        let late = waiting.work.partition_point(|(came, _)| *came < then);
        let given_up = waiting.work.drain(..late).map(|(_, work)| work).collect();
        (given_up, !waiting.work.is_empty())
    }

    /// Closes the queue: no more items are added, and the remaining ones are still taken.
    pub(super) fn close(&self) {
        self.locked().closed = true;
        self.more.notify_all();
    }

    fn locked(&self) -> MutexGuard<'_, Waiting<T>> {
        // Nothing panics while the lock is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn what_was_put_first_is_taken_first_and_there_is_so_much_room() {
        let queue = Queue::new(2);
        assert_eq!((queue.put(1), queue.put(2), queue.put(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((queue.take(), queue.put(3)), (Some(1), Ok(())));
        queue.close();
        assert_eq!(queue.put(4), Err(4));
        assert_eq!((queue.take(), queue.take(), queue.take()), (Some(2), Some(3), None));
    }

    #[test]
    fn what_came_before_some_time_is_given_up_and_nothing_else() {
        let queue = Queue::new(3);
        assert_eq!(queue.give_up(Instant::now()), (vec![], false));
        queue.put(1).unwrap();
        queue.put(2).unwrap();
        let then = loop {
            // A clock may return the same time twice.
            let now = Instant::now();
            if queue.locked().work.back().is_some_and(|(came, _)| *came < now) {
                break now;
            }
        };
        queue.put(3).unwrap();
        assert_eq!(queue.give_up(then), (vec![1, 2], true));
        assert_eq!(queue.give_up(then), (vec![], true));
        assert_eq!(queue.take(), Some(3));
    }

    #[test]
    fn every_piece_is_taken_once_by_whichever_thread() {
        let queue = Arc::new(Queue::new(8));
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || std::iter::from_fn(|| queue.take()).collect::<Vec<u32>>())
            })
            .collect();
        for number in 0..10_000 {
            let mut work = Err(number);
            while let Err(again) = work {
                work = queue.put(again);
            }
        }
        queue.close();
        let mut taken: Vec<u32> = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..10_000));
    }
}
