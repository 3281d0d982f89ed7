//! Reads, modifies and writes objects with retries on conflict, for lists without keys that have several writers.
//!
//! A writer that changes one element writes the whole list, so every attempt begins with reading; an attempt that is
//! based on an older object fails with 409 and is repeated.

use std::time::Duration;

use crate::controllers::kit::retry::{Remedy, remedy};

/// The number of attempts. Enough for some concurrent writers; with more, the caller has to try again later.
const ATTEMPTS: u32 = 4;
/// Wait before the second attempt; each further one is [`FACTOR`] times as long.
const FIRST: Duration = Duration::from_millis(10);
const FACTOR: u32 = 5;
/// The random part of a wait, so that writers do not collide again.
const JITTER: f64 = 0.1;

/// Calls `attempt`, which reads and writes, until there is no conflict.
///
/// # Errors
/// The error of the last attempt: a conflict after four of them, anything else at once.
pub async fn on_conflict<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let mut wait = FIRST;
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(error) if remedy(&error) == Remedy::Reread => {
                tokio::time::sleep(wait.mul_f64(1.0 + JITTER * share())).await;
                wait = wait.saturating_mul(FACTOR);
            }
            ended => return ended,
        }
    }
    attempt().await
}

/// Returns a random number between 0 and 1.
fn share() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let seed = RandomState::new().hash_one(std::time::Instant::now());
    f64::from(u16::try_from(seed & 0xffff).unwrap_or(0)) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use kube::core::Status;

    use super::*;

    fn failed(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status { code, ..Status::default() }))
    }

    #[tokio::test(start_paused = true)]
    async fn conflicts_are_met_with_new_attempts_and_nothing_else_is() {
        let attempts = Cell::new(0);
        let attempt = |until: u32, code: u16| {
            let attempts = &attempts;
            move || async move {
                attempts.set(attempts.get() + 1);
                if attempts.get() < until { Err(failed(code)) } else { Ok(attempts.get()) }
            }
        };
        let started = tokio::time::Instant::now();
        assert_eq!(on_conflict(attempt(3, 409)).await.unwrap(), 3);
        let waited = started.elapsed();
        assert!(waited >= Duration::from_millis(60) && waited <= Duration::from_millis(68), "{waited:?}");
        attempts.set(0);
        assert!(on_conflict(attempt(5, 409)).await.is_err());
        assert_eq!(attempts.replace(0), ATTEMPTS);
        assert!(on_conflict(attempt(2, 500)).await.is_err());
        assert_eq!(attempts.get(), 1);
    }
}
