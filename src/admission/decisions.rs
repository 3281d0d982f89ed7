//! Keeps the newest decisions for whoever watches them: a bounded list in memory. It has only the names of objects, and messages of
//! rules without recognisable secrets, as in the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use admit_policy::{Decision, Request};
use tokio::sync::watch;

use super::log;

/// The number of decisions that are kept: a page of them, and what a busy second adds.
const KEPT: usize = 200;

/// The list of decisions, shared by its writers and readers; clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    newest: Arc<Mutex<Newest>>,
    /// The number of decisions since the start.
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Newest {
    /// The number of the next decision.
    number: u64,
    notes: VecDeque<Noted>,
}

/// One decision.
#[derive(Clone, Debug)]
pub struct Noted {
    /// The number of the decision, counted from 0.
    pub number: u64,
    pub at: SystemTime,
    pub operation: &'static str,
    /// The resource, `datagathers.insights.openshift.io`, with a subresource after a slash.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub allowed: bool,
    pub warnings: usize,
    /// Why it was denied; empty if it was admitted.
    pub why: String,
}

impl Decisions {
    /// Returns the kept decisions, the newest first.
    #[must_use]
    pub fn newest(&self) -> Vec<Noted> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).notes.iter().rev().cloned().collect()
    }

    /// Returns the number of decisions, which notifies about changes.
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
