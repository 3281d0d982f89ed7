//! Tracks which parts of a process are ready, by name. The process is ready when all of them are; a part that was never set
//! does not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;

/// The readiness of a process, shared by writers and readers; clones are the same value.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    parts: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

/// Whether a part is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Not ready, with the reason; it is empty if the name of the part says enough.
    Failed(String),
}

impl Readiness {
    pub fn set(&self, part: &'static str, ready: bool) {
        self.put(part, if ready { State::Ready } else { State::Failed(String::new()) });
    }

    /// Sets the reason why `part` is not ready; None if it is.
    pub fn set_trouble(&self, part: &'static str, trouble: Option<String>) {
        self.put(part, trouble.map_or(State::Ready, State::Failed));
    }

    fn put(&self, part: &'static str, state: State) {
        let ready = state == State::Ready;
        let before = self.parts.lock().unwrap_or_else(PoisonError::into_inner).insert(part, state);
        if before.is_some_and(|before| (before == State::Ready) != ready) {
            tracing::info!(part, ready, "readiness changed");
        }
    }

    /// Returns every part, sorted by name.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, bool)> {
        self.states().into_iter().map(|(part, state)| (part, state == State::Ready)).collect()
    }

    /// Returns every part with its state, sorted by name.
    #[must_use]
    pub fn states(&self) -> BTreeMap<&'static str, State> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there are parts and all are ready.
    #[must_use]
    pub fn ready(&self) -> bool {
        let parts = self.parts();
        !parts.is_empty() && parts.iter().all(|(_, ready)| *ready)
    }

    /// Returns the state of `part`; None if there is no such part.
    #[must_use]
    pub fn state(&self, part: &str) -> Option<State> {
        self.states().remove(part)
    }

    /// Returns the response to a probe: 200 or 503, and [`Self::text`].
    #[must_use]
    pub fn answer(&self) -> (StatusCode, String) {
        let code = if self.ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (code, self.text())
    }

    /// Returns a line for each part, in the format of Kubernetes' health endpoints.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (part, state) in self.states() {
            // Writing to a string cannot fail.
            let _ = match state {
                State::Ready => writeln!(text, "[+]{part} ok"),
                State::Failed(reason) if reason.is_empty() => writeln!(text, "[-]{part} failed"),
                State::Failed(reason) => writeln!(text, "[-]{part} failed: {reason}"),
            };
        }
        let _ = writeln!(text, "readyz check {}", if self.ready() { "passed" } else { "failed" });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_must_be_ready() {
        let readiness = Readiness::default();
        assert!(!readiness.ready(), "nothing has been said yet");
        readiness.set("policies", true);
        readiness.set("certificate", false);
        assert!(!readiness.ready());
        assert_eq!(readiness.text(), "[-]certificate failed\n[+]policies ok\nreadyz check failed\n");
        readiness.set_trouble("certificate", Some("expired".to_owned()));
        assert!(readiness.text().starts_with("[-]certificate failed: expired\n"), "{}", readiness.text());
        readiness.set_trouble("certificate", None);
        assert!(readiness.ready());
    }
}
