//! Publishes events and log lines about priming, each once.

use kube::{Client, ResourceExt};
use tracing::warn;

use super::crd::{ClusterOperator, ClusterOperatorSpec};
use super::plan::FIELD_MANAGER;
use crate::controllers::kit::conditions::Truth;
use crate::controllers::kit::events::{Events, Notice};
use crate::controllers::kit::operator::{Aspect, Says};

pub(super) struct Notices {
    events: Events,
    /// The mistakes in the payload that were reported last.
    mistakes: Vec<String>,
}

impl Notices {
    pub(super) fn new(client: Client) -> Self {
        Self { events: Events::new(client, FIELD_MANAGER), mistakes: Vec::new() }
    }

    /// Publishes one event for all of a pass: a payload has hundreds, and each one's status says that it is primed.
    pub(super) async fn primed(&self, primed: &[ClusterOperator]) {
        let names: Vec<String> = primed.iter().map(ResourceExt::name_any).collect();
        let note = match names.as_slice() {
            [] => return,
            [_] => "created with conditions Unknown, until its operator reports".to_owned(),
            _ => format!(
                "{} created with conditions Unknown, until their operators report: {}",
                names.len(),
                names.join(", ")
            ),
        };
        let notice = Notice { warning: false, reason: "ClusterOperatorPrimed", action: "Prime", note };
        match primed {
            [alone] => self.events.publish(alone, notice).await,
            // For several, the event is about the controller's own ClusterOperator.
            _ => self.events.publish(&named(FIELD_MANAGER), notice).await,
        }
    }

    pub(super) async fn failed(&self, name: &str, error: String) {
        let notice = Notice { warning: true, reason: "PrimingFailed", action: "Prime", note: error };
        self.events.publish(&named(name), notice).await;
    }

    /// Reports mistakes in the payload if they have changed; returns how many are new.
    pub(super) async fn mistakes(&mut self, mistakes: Vec<String>) -> usize {
        let mut new = 0;
        for mistake in mistakes.iter().filter(|mistake| !self.mistakes.contains(mistake)) {
            new += 1;
            warn!(mistake, "the payload, or a manifest of it, is left out");
            let note = mistake.clone();
            let notice = Notice { warning: true, reason: "BadManifest", action: "Read", note };
            // About the controller's own ClusterOperator, since the mistake may have no object.
            self.events.publish(&named(FIELD_MANAGER), notice).await;
        }
        self.mistakes = mistakes;
        new
    }

    /// Reports the controller's state for its own ClusterOperator.
    pub(super) fn say<'f>(&self, says: &Says, mut failing: impl Iterator<Item = (&'f str, &'f str)>) {
        says.works();
        if let Some((name, error)) = failing.next() {
            says.fails(failing.count() + 1, &format!("{name}: {error}"));
        }
        let (truth, reason) = match self.mistakes.first() {
            Some(_) => (Truth::True, "BadManifests"),
            None => (Truth::False, "AsExpected"),
        };
        says.say("Payload", Aspect::Degraded, truth, reason, self.mistakes.join("\n"));
    }
}

/// Creates a reference for an event, whether or not the object exists.
fn named(name: &str) -> ClusterOperator {
    ClusterOperator::new(name, ClusterOperatorSpec {})
}
