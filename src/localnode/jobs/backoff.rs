//! Computes when a Job's next Pod may be created: later after each failure in a row, up to a limit.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::pods::Seen;

/// The longest wait after a failure.
const LONGEST: Duration = Duration::from_mins(10);

/// Returns how long to wait before the next Pod may be created; None if it may be now. `first` is the wait after
/// one failure, and each further one in a row doubles it.
pub(super) fn remaining(
    pods: &[Pod],
    replaces_failed_alone: bool,
    first: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let mut ended: Vec<(Timestamp, bool)> = pods
        .iter()
        .map(Seen)
        .filter(|pod| pod.succeeded() || pod.failed(replaces_failed_alone))
        .filter_map(|pod| Some((pod.ended()?, pod.succeeded())))
        .collect();
    ended.sort_unstable();
    let failures = ended.iter().rev().take_while(|(_, succeeded)| !succeeded).count();
    let (last, _) = ended.last().filter(|_| failures > 0)?;
    left(failures, *last, first, now)
}

/// Does the same for a number of failures in a row, of which the last was at `last`.
pub(super) fn left(failures: usize, last: Timestamp, first: Duration, now: Timestamp) -> Option<Duration> {
    let doubled = u32::try_from(failures.saturating_sub(1).min(16)).unwrap_or(16);
    let wait = first.saturating_mul(1 << doubled).min(LONGEST);
    let until = last.saturating_add(SignedDuration::try_from(wait).ok()?).ok()?;
    Duration::try_from(until.duration_since(now)).ok().filter(|left| !left.is_zero())
}
