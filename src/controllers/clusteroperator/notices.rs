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
    /// What is wrong with the payload, as it was told.
    mistakes: Vec<String>,
}

impl Notices {
    pub(super) fn new(client: Client) -> Self {
        Self { events: Events::new(client, FIELD_MANAGER), mistakes: Vec::new() }
    }

    /// One event for all of a pass: a payload has hundreds, and each says itself that it is primed.
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
            // Of several, on the ClusterOperator of the primer.
            _ => self.events.publish(&named(FIELD_MANAGER), notice).await,
        }
    }

    pub(super) async fn failed(&self, name: &str, error: String) {
        let notice = Notice { warning: true, reason: "PrimingFailed", action: "Prime", note: error };
        self.events.publish(&named(name), notice).await;
    }

    /// Tells what is wrong with the payload where that is not what was told before; how much of it is new.
    pub(super) async fn mistakes(&mut self, mistakes: Vec<String>) -> usize {
        let mut new = 0;
        for mistake in mistakes.iter().filter(|mistake| !self.mistakes.contains(mistake)) {
            new += 1;
            warn!(mistake, "the payload, or a manifest of it, is left out");
            let note = mistake.clone();
            let notice = Notice { warning: true, reason: "BadManifest", action: "Read", note };
            // On the ClusterOperator of the primer: what is wrong may have no name.
            self.events.publish(&named(FIELD_MANAGER), notice).await;
        }
        self.mistakes = mistakes;
        new
    }

    /// How the primer is, for its own ClusterOperator.
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

/// Whom an event is about; whether it is there does not matter.
fn named(name: &str) -> ClusterOperator {
    ClusterOperator::new(name, ClusterOperatorSpec {})
}
