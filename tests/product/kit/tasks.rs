//! Supervision: parts live and die together, work dies with what drives it.

use std::io;

use admit::controllers::kit::tasks::{Closed, Supervisor, TaskError, pool};
use tokio_util::sync::CancellationToken;

async fn until(stop: CancellationToken) -> Result<(), io::Error> {
    stop.cancelled().await;
    Ok(())
}

#[tokio::test]
async fn all_stop_when_told_to() {
    let stop = CancellationToken::new();
    let mut parts = Supervisor::new(stop.clone());
    parts.part("one", until(stop.clone()));
    parts.part("two", until(stop.clone()));
    stop.cancel();
    assert!(parts.join().await.is_ok());
}

#[tokio::test]
async fn a_part_that_ends_early_fails_or_panics_stops_the_others_and_is_named() {
    let stop = CancellationToken::new();
    let mut parts = Supervisor::new(stop.clone());
    parts.part("patient", until(stop.clone()));
    parts.part("hasty", async { Ok(()) });
    assert!(matches!(parts.join().await, Err(TaskError::Ended("hasty"))));

    let stop = CancellationToken::new();
    let mut parts = Supervisor::new(stop.clone());
    parts.part("patient", until(stop.clone()));
    parts.part("failing", async { Err(io::Error::other("disk")) });
    let error = parts.join().await.unwrap_err();
    assert_eq!(error.to_string(), "`failing` failed: disk");

    let stop = CancellationToken::new();
    let mut parts = Supervisor::new(stop.clone());
    parts.part("patient", until(stop.clone()));
    parts.part("broken", async { panic!("boom") });
    assert!(matches!(parts.join().await, Err(TaskError::Panicked(message)) if message.contains("boom")));
}

/// A part that follows another into its end is often heard of before it, and hides nothing.
#[tokio::test]
async fn the_part_that_failed_is_named_before_one_that_ended_with_it() {
    let mut parts = Supervisor::new(CancellationToken::new());
    parts.part("follower", async { Ok(()) });
    parts.part("failing", async { Err(io::Error::other("disk")) });
    assert_eq!(parts.join().await.unwrap_err().to_string(), "`failing` failed: disk");
}

#[tokio::test]
async fn a_panic_ends_only_its_own_work_and_a_stopped_driver_takes_none() {
    let (pool, driver) = pool();
    let stop = CancellationToken::new();
    let driving = tokio::spawn(driver.run(stop.clone()));
    let (done, waiting) = tokio::sync::oneshot::channel();
    pool.submit(async { panic!("boom") }).unwrap();
    pool.submit(async move {
        assert_eq!(done.send("done"), Ok(()));
    })
    .unwrap();
    assert_eq!(waiting.await, Ok("done"));

    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    pool.submit(async {
        std::future::pending::<()>().await;
        drop(held);
    })
    .unwrap();
    stop.cancel();
    driving.await.unwrap();
    assert!(dropped.await.is_err(), "unfinished work is dropped");
    assert_eq!(pool.submit(async {}), Err(Closed));
}
