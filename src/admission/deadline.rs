//! Computes the deadline of a request: this server's limit, or a share of the API server's timeout if that is less.

use std::time::{Duration, Instant};

use admit_apimachinery::go::duration;

/// The share of the caller's timeout for evaluation. The rest is for the network and for writing the response.
const SHARE: f64 = 0.8;
/// The share of the caller's timeout after which the response is sent even if evaluation has not noticed its own deadline.
const LATEST: f64 = 0.85;

/// The two deadlines of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    /// Evaluation stops at this time, and what is undecided counts as failed.
    pub(super) evaluation: Instant,
    /// The response is sent at this time, decided or not.
    pub(super) answer: Instant,
}

impl Deadline {
    /// Computes the deadlines from `own` or the `timeout=10s` of the request's query, whichever is less.
    pub(super) fn new(from: Instant, own: Duration, query: Option<&str>) -> Self {
        let own_of_caller = own.div_f64(SHARE);
        let caller = query.and_then(timeout).unwrap_or(own_of_caller).min(own_of_caller);
        Self { evaluation: from + caller.mul_f64(SHARE), answer: from + caller.mul_f64(LATEST) }
    }
}

fn timeout(query: &str) -> Option<Duration> {
    let text = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    let nanoseconds = u64::try_from(duration::parse(text).ok()?).ok()?;
    Some(Duration::from_nanos(nanoseconds)).filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_of_both_limits_counts() {
        let own = Duration::from_secs(8);
        let cases = [
            (None, 8_000, 8_500),
            (Some("timeout=1s"), 800, 850),
            (Some("a=b&timeout=1m30s"), 8_000, 8_500),
            (Some("timeout=2.5s"), 2_000, 2_125),
            (Some("timeout=500ms"), 400, 425),
            (Some("timeout="), 8_000, 8_500),
            (Some("timeout=0s"), 8_000, 8_500),
            (Some("timeout=-1s"), 8_000, 8_500),
            (Some("timeout=ten"), 8_000, 8_500),
            (Some("timeout=99999999999999999999h"), 8_000, 8_500),
        ];
        let now = Instant::now();
        for (query, evaluation, answer) in cases {
            let deadline = Deadline::new(now, own, query);
            let millis = |moment: Instant| (moment - now).as_secs_f64() * 1000.0;
            assert!((millis(deadline.evaluation) - f64::from(evaluation)).abs() < 0.01, "{query:?}");
            assert!((millis(deadline.answer) - f64::from(answer)).abs() < 0.01, "{query:?}");
        }
    }
}
