//! Tests of scheduling: work that does not end, waits, stores, panics or is plentiful, each beside work that must be
//! answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::interrupt::{checkpoint, commit};

/// Longer than a pause of a busy test machine.
const LONG: Duration = Duration::from_mins(10);

fn later(after: Duration) -> Instant {
    Instant::now() + after
}

/// Sets its flag when it goes.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

async fn until_set(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        tokio::task::yield_now().await;
    }
}

fn flags() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    Default::default()
}

#[tokio::test(flavor = "multi_thread")]
async fn work_without_an_end_is_ended_with_its_time_and_holds_nobody_up() {
    let turns = Turns::default();
    let (_, gone) = flags();
    let last = Gone(Arc::clone(&gone));
    let work = move || async move {
        let _last = last;
        loop {
            checkpoint();
        }
    };
    let ended: Result<(), Ended> =
        run(later(Duration::from_millis(50)), Some(turns.lane(0, false)), work).await;
    assert_eq!(ended, Err(Ended::TimedOut));
    until_set(&gone).await;
    assert_eq!(run(later(LONG), Some(turns.lane(0, false)), || async { 7 }).await, Ok(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_whose_client_has_gone_is_ended() {
    let (began, gone) = flags();
    let (inside, last) = (Arc::clone(&began), Gone(Arc::clone(&gone)));
    let work = move || async move {
        let _last = last;
        inside.store(true, Ordering::Release);
        loop {
            checkpoint();
        }
    };
    let client = tokio::spawn(run::<(), _>(later(LONG), None, work));
    until_set(&began).await;
    client.abort();
    until_set(&gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_ended_too_and_lets_others_compute_meanwhile() {
    let turns = Turns::default();
    let lane = Arc::new(Semaphore::new(1));
    let (began, gone) = flags();
    let (inside, last) = (Arc::clone(&began), Gone(Arc::clone(&gone)));
    let work = move || async move {
        let _last = last;
        inside.store(true, Ordering::Release);
        std::future::pending::<()>().await;
    };
    let client = tokio::spawn(run(later(LONG), Some(Arc::clone(&lane)), work));
    until_set(&began).await;
    assert_eq!(run(later(LONG), Some(lane), || async { 8 }).await, Ok(8));
    client.abort();
    until_set(&gone).await;
    assert_eq!(turns.under_way(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_stored_when_its_time_is_over_is_done_and_told() {
    let (began, over) = flags();
    let (inside, wait) = (Arc::clone(&began), Arc::clone(&over));
    let work = move || async move {
        assert!(commit());
        inside.store(true, Ordering::Release);
        while !wait.load(Ordering::Acquire) {
            checkpoint();
            thread::yield_now();
        }
        9
    };
    let mut answer = pin!(run(later(Duration::from_millis(1)), None, work));
    assert!(futures::poll!(&mut answer).is_pending());
    until_set(&began).await;
    let early = tokio::time::timeout(Duration::from_millis(100), &mut answer).await;
    assert!(early.is_err(), "{early:?}");
    over.store(true, Ordering::Release);
    assert_eq!(answer.await, Ok(9));
}

#[tokio::test]
async fn a_panic_is_told_and_ends_nothing_else() {
    let ended: Result<(), Ended> = run(later(LONG), None, || async { panic!("number {}", 7) }).await;
    assert_eq!(ended, Err(Ended::Panicked("number 7".to_owned())));
}

#[tokio::test]
async fn one_user_takes_no_more_than_a_share_of_the_places() {
    let turns = Turns::default();
    let (one, other) = (Identity::new("one", Vec::new()), Identity::new("other", Vec::new()));
    let mut places = Vec::new();
    for _ in 0..MAX_CHANGES_OF_ONE {
        places.push(turns.place(&one).await.unwrap());
    }
    assert!(futures::poll!(pin!(turns.place(&one))).is_pending());
    assert!(turns.place(&other).await.is_some());
    let masters = Identity::admin();
    for _ in 0..MAX_CHANGES - MAX_CHANGES_OF_ONE {
        places.push(turns.place(&masters).await.unwrap());
    }
    assert!(futures::poll!(pin!(turns.place(&other))).is_pending(), "there are no more for anybody");
    places.clear();
    assert!(turns.place(&one).await.is_some());
    assert_eq!(turns.changers.of_users.lock().unwrap().len(), 1, "who has nothing under way is forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_of_one_user_leave_a_thread_for_those_of_others() {
    let mut turns = Turns::default();
    (turns.lists, turns.listers) = (Arc::new(Semaphore::new(2)), Shares::of(1));
    let turns = Arc::new(turns);
    let (one, other) = (Identity::new("one", Vec::new()), Identity::new("other", Vec::new()));
    let (began, over) = flags();
    let (inside, wait, shared, of_one) =
        (Arc::clone(&began), Arc::clone(&over), Arc::clone(&turns), one.clone());
    let long = tokio::spawn(async move {
        let work = move || async move {
            inside.store(true, Ordering::Release);
            while !wait.load(Ordering::Acquire) {
                thread::yield_now();
            }
        };
        shared.list(&of_one, later(LONG), work).await
    });
    until_set(&began).await;
    let soon = later(Duration::from_millis(50));
    assert_eq!(turns.list(&one, soon, || async { 1 }).await, Err(Ended::TimedOut));
    assert_eq!(turns.list(&other, later(LONG), || async { 2 }).await, Ok(2));
    assert_eq!(turns.list(&Identity::admin(), later(LONG), || async { 3 }).await, Ok(3));
    over.store(true, Ordering::Release);
    assert_eq!(long.await.unwrap(), Ok(()));
    assert_eq!(turns.list(&one, later(LONG), || async { 4 }).await, Ok(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn small_changes_do_not_wait_for_large_ones() {
    let turns = Turns::default();
    let (_, over) = flags();
    let mut large = Vec::new();
    for _ in 0..16 {
        let over = Arc::clone(&over);
        let work = move || async move {
            while !over.load(Ordering::Acquire) {
                thread::yield_now();
            }
        };
        large.push(tokio::spawn(run(later(LONG), Some(turns.lane(3 << 20, false)), work)));
    }
    assert_eq!(run(later(LONG), Some(turns.lane(2_000, false)), || async { 1 }).await, Ok(1));
    assert_eq!(turns.list(&Identity::admin(), later(LONG), || async { 2 }).await, Ok(2));
    over.store(true, Ordering::Release);
    for work in large {
        assert_eq!(work.await.unwrap(), Ok(()));
    }
}
