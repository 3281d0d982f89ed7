//! The newest decisions, for whoever watches them: a bounded list in memory. Nothing of an object but its name, and of a rule's
//! message no secret that is easy to know, as in the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use admit_policy::{Decision, Request};
use tokio::sync::watch;

use super::log;

/// Decisions that are kept: a page of them, and what a busy second adds.
const KEPT: usize = 200;

/// Shared by those who decide and those who watch; clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    newest: Arc<Mutex<Newest>>,
    /// How many there were.
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Newest {
    /// Of the next one.
    number: u64,
    notes: VecDeque<Noted>,
}

/// One decision.
#[derive(Clone, Debug)]
pub struct Noted {
    /// Counted from 0.
    pub number: u64,
    pub at: SystemTime,
    pub operation: &'static str,
    /// `datagathers.insights.openshift.io`, with a subresource behind a slash.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub allowed: bool,
    pub warnings: usize,
    /// Why it was denied; empty where it was not.
    pub why: String,
}

impl Decisions {
    /// Those that are kept, the newest first.
    #[must_use]
    pub fn newest(&self) -> Vec<Noted> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).notes.iter().rev().cloned().collect()
    }

    /// How many there were, now and whenever that changes.
    #[must_use]
    pub fn count(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    pub(super) fn note(&self, request: &Request<'_>, decision: &Decision) {
        let mut resource = request.resource.group_resource();
        if !request.subresource.is_empty() {
            resource = format!("{resource}/{}", request.subresource);
        }
        let noted = Noted {
            number: 0,
            at: SystemTime::now(),
            operation: request.operation.as_str(),
            resource,
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            user: request.user.username.clone(),
            allowed: decision.allowed(),
            warnings: decision.warnings.len(),
            why: decision.denial.as_ref().map(|denial| log::message(request, denial)).unwrap_or_default(),
        };
        self.keep(noted);
    }

    fn keep(&self, noted: Noted) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let number = newest.number;
        newest.number = number.wrapping_add(1);
        self.count.send_replace(newest.number);
        newest.notes.push_back(Noted { number, ..noted });
        if newest.notes.len() > KEPT {
            newest.notes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use admit_apimachinery::status::Reason;
    use admit_policy::Denial;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_are_kept_and_secrets_are_not_told() {
        let decisions = Decisions::default();
        let of = |kind: &str, name: &str| {
            let resource = format!("{}s", kind.to_lowercase());
            let request = json!({
                "kind": {"group": "", "version": "v1", "kind": kind},
                "resource": {"group": "", "version": "v1", "resource": resource},
                "operation": "CREATE", "name": name, "namespace": "n", "userInfo": {"username": "eve"},
                "object": {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}},
            });
            let request = Request::from_value(&request).unwrap();
            let denial = Denial::new(&request, "hunter2 is too short".to_owned(), Reason::Invalid);
            decisions.note(&request, &Decision { denial: Some(denial), ..Decision::default() });
        };
        for number in 0..KEPT {
            of("ConfigMap", &format!("a{number}"));
        }
        of("Secret", "b");
        assert_eq!(*decisions.count().borrow(), 201);
        let newest = decisions.newest();
        assert_eq!(newest.len(), KEPT);
        assert_eq!((newest[0].name.as_str(), newest[0].why.as_str()), ("b", "[redacted]"));
        assert_eq!((newest[1].why.as_str(), newest[1].user.as_str()), ("hunter2 is too short", "eve"));
        assert_eq!(newest.last().map(|last| (last.number, last.name.as_str())), Some((1, "a1")));
        assert_eq!((newest[1].resource.as_str(), newest[1].operation), ("configmaps", "CREATE"));
    }
}
