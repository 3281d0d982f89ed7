//! Which parts of a process are ready, by name. The process is ready when all of them are; a part that was never named
//! does not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by those who report and those who ask; clones are the same value.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    parts: Arc<Mutex<BTreeMap<&'static str, bool>>>,
}

impl Readiness {
    pub fn set(&self, part: &'static str, ready: bool) {
        let before = self.parts.lock().unwrap_or_else(PoisonError::into_inner).insert(part, ready);
        if before.is_some_and(|before| before != ready) {
            tracing::info!(part, ready, "readiness changed");
        }
    }

    /// Every part, in order of name.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, bool)> {
        self.parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(part, ok)| (*part, *ok))
            .collect()
    }

    /// Whether there are parts and all are ready.
    #[must_use]
    pub fn ready(&self) -> bool {
        let parts = self.parts();
        !parts.is_empty() && parts.iter().all(|(_, ready)| *ready)
    }

    /// A line for each part, as Kubernetes' own health endpoints write them.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (part, ready) in self.parts() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "[{}]{part} {}",
                if ready { '+' } else { '-' },
                if ready { "ok" } else { "failed" }
            );
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
        readiness.set("certificate", true);
        assert!(readiness.ready());
    }
}
