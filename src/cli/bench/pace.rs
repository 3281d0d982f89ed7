//! Starts requests at the rate of `--rate`: a thread wakes at each due time and releases one of the connections.
//!
//! The runtime's timers have a resolution of milliseconds: at thousands of requests a second, those of one
//! millisecond would start together, and queue up at an endpoint that could have answered them one by one.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Paces requests at even intervals.
#[derive(Debug)]
pub(super) struct Pace {
    begin: Instant,
    /// Requests per second.
    rate: u32,
    /// One permit for each request that is due.
    due: Arc<Semaphore>,
}

impl Pace {
    /// Starts the clock, which ends after `count` requests or when `stop` is cancelled.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(rate: u32, count: u64, stop: CancellationToken) -> io::Result<Self> {
        let begin = Instant::now();
        let due = Arc::new(Semaphore::new(0));
        let clock = Arc::clone(&due);
        thread::Builder::new().name("pace".to_owned()).spawn(move || {
            let mut told = 0;
            while told < count && !stop.is_cancelled() {
                // After a late wake-up, several requests are due.
                while told < count && begin + offset(told, rate) <= Instant::now() {
                    clock.add_permits(1);
                    told += 1;
                }
                thread::sleep((begin + offset(told, rate)).saturating_duration_since(Instant::now()));
            }
        })?;
        Ok(Self { begin, rate, due })
    }

    /// Waits until request `number` is due, and returns the time since when it is.
    pub(super) async fn wait(&self, number: u64) -> Instant {
        // The semaphore is never closed; waiters at the end are cancelled.
        if let Ok(permit) = self.due.acquire().await {
            permit.forget();
        }
        self.begin + offset(number, self.rate)
    }
}

fn offset(number: u64, rate: u32) -> Duration {
    Duration::from_secs_f64(number as f64 / f64::from(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_let_go_in_their_order_and_no_sooner() {
        let pace = Pace::start(2_000, 20, CancellationToken::new()).unwrap();
        for number in 0..20 {
            let due = pace.wait(number).await;
            assert!(due <= Instant::now());
            assert_eq!(due, pace.begin + Duration::from_micros(500 * number));
        }
        assert_eq!(pace.due.available_permits(), 0, "no more than were asked for");
    }
}
