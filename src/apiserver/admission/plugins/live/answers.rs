//! Caches the answers of the image policy backend until they expire.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::recent::Recent;
use crate::digest;

/// The capacity of the cache, as upstream.
const MOST: usize = 1024;

/// An answer of the image policy backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::admission::plugins) struct Verdict {
    pub(in crate::admission::plugins) allowed: bool,
    pub(in crate::admission::plugins) reason: String,
    /// For the audit log.
    pub(in crate::admission::plugins) annotations: Vec<(String, String)>,
}

/// The answers, by the request that was sent.
#[derive(Debug)]
pub(in crate::admission::plugins) struct Answers(Mutex<Recent<(Verdict, Option<Instant>)>>);

impl Default for Answers {
    fn default() -> Self {
        Self(Mutex::new(Recent::of(MOST)))
    }
}

impl Answers {
    pub(in crate::admission::plugins) fn get(&self, asked: &str, now: Instant) -> Option<Verdict> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, until) = known.get(&digest::sha256_hex(asked.as_bytes()))?;
        until.is_some_and(|until| now <= until).then(|| verdict.clone())
    }

    pub(in crate::admission::plugins) fn keep(
        &self,
        asked: &str,
        verdict: &Verdict,
        (now, holds): (Instant, Duration),
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(&digest::sha256_hex(asked.as_bytes()), (verdict.clone(), now.checked_add(holds)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_for_a_time() {
        let answers = Answers::default();
        let now = Instant::now();
        let verdict = Verdict { allowed: true, ..Verdict::default() };
        answers.keep("a", &verdict, (now, Duration::from_secs(5)));
        let at = |seconds: u64| answers.get("a", now + Duration::from_secs(seconds));
        assert_eq!([at(0), at(5), at(6)], [Some(verdict.clone()), Some(verdict), None]);
        assert_eq!(answers.get("b", now), None);
    }
}
