//! Keeps a ClusterOperator in line with what the controller states: creates it if it is missing, writes changes, and
//! checks it every minute.

use std::time::Duration;

use futures::StreamExt;
use kube::api::{ObjectMeta, PostParams};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::combine::{Aspect, Union, union};
use super::crd::{
    ClusterOperator, ClusterOperatorSpec, ClusterOperatorStatus, OperandVersion, RelatedObject,
};
use super::statements::{Said, Says};
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::conditions::{self, Truth};
use crate::controllers::kit::definition::Definition;
use crate::controllers::kit::events::{Events, Notice};
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::controllers::kit::status::{self, WriteError};
use crate::controllers::kit::wait::GrowingWait;
use crate::controllers::kit::watch;
use crate::telemetry::{Outside, Secrets, with_causes};

/// The interval of checks without a change.
const EVERY: Duration = Duration::from_mins(1);
/// The least time between two writes if only texts change: thousands of failing objects cause few writes.
const QUIET: Duration = Duration::from_secs(5);
/// The first wait after a failed write.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The first and the longest wait for ClusterOperators to be served, which in most clusters they never are.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_LOOK: Duration = Duration::from_mins(5);

/// The ClusterOperator that a controller reports as.
#[derive(Clone, Debug)]
pub struct Operator {
    pub name: &'static str,
    /// The version of the operator itself.
    pub version: String,
    /// The related objects, for people who debug it.
    pub related: Vec<RelatedObject>,
    pub clock: Clock,
}

impl Operator {
    /// Creates an operator with the version of the release that the environment names, or else of this program.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let release = std::env::var("RELEASE_VERSION").ok().filter(|version| !version.is_empty());
        let version = release.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
        Self { name, version, related: Vec::new(), clock: Clock::default() }
    }

    /// Adds all objects of a resource to the related objects.
    #[must_use]
    pub fn relating(mut self, group: &str, resource: &str) -> Self {
        let (group, resource) = (group.to_owned(), resource.to_owned());
        self.related.push(RelatedObject { group, resource, name: String::new(), namespace: None });
        self
    }

    /// Reports the statements in `says` until `stop`, where ClusterOperators are served. Nothing is written before
    /// the first statement.
    pub async fn run(self, client: Client, says: Says, stop: CancellationToken) {
        let reporting = async {
            until_served(&client).await;
            Reporter::new(self, client, says).run().await;
        };
        stop.run_until_cancelled(reporting).await;
    }
}

async fn until_served(client: &Client) {
    let definition = Definition::of::<ClusterOperator>();
    let mut wait = GrowingWait::new(FIRST_LOOK, LONGEST_LOOK);
    while !matches!(definition.is_served(client).await, Ok(true)) {
        sleep(wait.grow()).await;
    }
}

struct Reporter {
    operator: Operator,
    api: Api<ClusterOperator>,
    client: Client,
    events: Events,
    says: Says,
    /// The last known object; None before the first list, and `Some(None)` if it does not exist.
    live: Option<Option<ClusterOperator>>,
    /// The version of this process' last write until the watch reports it: earlier reports are outdated.
    awaited: Option<String>,
    wait: GrowingWait,
    /// The last error, which is logged once.
    told: String,
    written: Option<Instant>,
}

/// The update to write.
struct Wanted {
    status: ClusterOperatorStatus,
    /// Conditions whose status changes, with the old and the new status.
    turned: Vec<(Aspect, String, Truth)>,
    until: Option<Instant>,
}

impl Reporter {
    fn new(operator: Operator, client: Client, says: Says) -> Self {
        Self {
            api: Api::all(client.clone()),
            events: Events::new(client.clone(), "admit"),
            client,
            operator,
            says,
            live: None,
            awaited: None,
            wait: GrowingWait::new(FIRST_WAIT, EVERY),
            told: String::new(),
            written: None,
        }
    }

    async fn run(mut self) {
        let watched: Api<DeserializeGuard<ClusterOperator>> = Api::all(self.client.clone());
        let own = watcher::Config::default().fields(&format!("metadata.name={}", self.operator.name));
        let mut events = watch::events(watched, own).boxed();
        let mut changes = self.says.changes();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.hear(event),
                    None => return,
                },
                Ok(()) = changes.changed() => {}
                () = sleep_until(due) => {}
            }
            due = self.look().await;
        }
    }

    fn hear(&mut self, event: Event<DeserializeGuard<ClusterOperator>>) {
        if let (Event::Apply(object), Some(awaited)) = (&event, &self.awaited) {
            if object.resource_version().as_ref() != Some(awaited) {
                return;
            }
            self.awaited = None;
        }
        match event {
            // An object that cannot be parsed is left alone.
            Event::Apply(object) | Event::InitApply(object) => match object.0 {
                Ok(object) => self.live = Some(Some(object)),
                Err(error) => {
                    self.live = None;
                    let error = Outside::of(&error.error, &Secrets::default());
                    warn!(name = self.operator.name, %error, "the ClusterOperator cannot be understood");
                }
            },
            Event::Delete(_) => (self.live, self.awaited) = (Some(None), None),
            Event::Init => (self.live, self.awaited) = (None, None),
            Event::InitDone => self.live = Some(self.live.take().flatten()),
        }
    }

    /// Writes the status if it has changed; returns when to check again.
    async fn look(&mut self) -> Instant {
        let (now, said) = (Instant::now(), self.says.all());
        let Some(live) = self.live.clone().filter(|_| said != Said::default()) else { return now + EVERY };
        let stored = live.as_ref().map(ClusterOperator::report).unwrap_or_default();
        let wanted = self.wanted(&stored, &said, now);
        let next = wanted.until.map_or(now + EVERY, |until| until.min(now + EVERY));
        if live.is_some() && wanted.status == stored {
            return next;
        }
        let quiet = self.written.map(|written| written + QUIET).filter(|quiet| *quiet > now);
        if let (Some(quiet), true) = (quiet, wanted.turned.is_empty()) {
            return quiet.min(next);
        }
        match self.write(live, &wanted).await {
            Ok(written) => {
                self.awaited = written.resource_version();
                self.tell(&written, &wanted).await;
                (self.live, self.written) = (Some(Some(written)), Some(now));
                self.wait.reset();
                self.told.clear();
                next
            }
            Err(error) => now + self.failed(&error),
        }
    }

    fn wanted(&self, stored: &ClusterOperatorStatus, said: &Said, now: Instant) -> Wanted {
        let mut status = stored.clone();
        let (time, mut turned, mut next) = (self.operator.clock.now(), Vec::new(), None::<Instant>);
        for aspect in Aspect::ALL {
            let words = said.words.iter().filter(|((of, _), _)| *of == aspect);
            let before = stored.conditions.iter().find(|condition| condition.type_ == aspect.name());
            let before = before.map_or("", |condition| condition.status.as_str()).to_owned();
            let was_bad = aspect == Aspect::Degraded && before == Truth::True.as_str();
            let Union { statement, until } =
                union(aspect, words.map(|((_, part), word)| (*part, word)), was_bad, now);
            next = next.into_iter().chain(until).min();
            if before != statement.truth.as_str() {
                turned.push((aspect, before, statement.truth));
            }
            conditions::set(&mut status.conditions, statement, None, time);
        }
        for statement in said.shown.values() {
            conditions::set(&mut status.conditions, statement.clone(), None, time);
        }
        let own = OperandVersion { name: "operator".to_owned(), version: self.operator.version.clone() };
        match status.versions.iter_mut().find(|version| version.name == own.name) {
            Some(version) => *version = own,
            None => status.versions.push(own),
        }
        for related in &self.operator.related {
            if !status.related_objects.contains(related) {
                status.related_objects.push(related.clone());
            }
        }
        Wanted { status, turned, until: next }
    }

    async fn write(
        &self,
        live: Option<ClusterOperator>,
        wanted: &Wanted,
    ) -> Result<ClusterOperator, WriteError> {
        let name = self.operator.name;
        let object = match live {
            Some(live) => live,
            None => {
                let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
                let new = ClusterOperator { metadata, spec: ClusterOperatorSpec {}, status: None };
                let made = self.api.create(&PostParams::default(), &new).await;
                made.map_err(|source| WriteError::Api { name: name.to_owned(), source: Box::new(source) })?
            }
        };
        status::write(&self.api, &object, &wanted.status).await
    }

    async fn tell(&self, object: &ClusterOperator, wanted: &Wanted) {
        for (aspect, before, after) in &wanted.turned {
            let before = if before.is_empty() { "nothing" } else { before };
            let note = format!(
                "Status for clusteroperator/{} changed: {} set from {before} to {}",
                self.operator.name,
                aspect.name(),
                after.as_str()
            );
            info!(operator = self.operator.name, "{note}");
            let action = turned(*aspect, *after);
            let notice = Notice { warning: false, reason: "OperatorStatusChanged", action, note };
            self.events.publish(object, notice).await;
        }
    }

    /// Returns how long to wait: for the watch after a conflict, or for the cause of the error to pass.
    fn failed(&mut self, error: &WriteError) -> Duration {
        let conflict = match error {
            WriteError::Api { source, .. } => remedy(source) == Remedy::Reread,
            WriteError::Unfenced(_) | WriteError::Unreadable { .. } => false,
        };
        let error = with_causes(error);
        if conflict || self.told == error {
            debug!(operator = self.operator.name, error, "the ClusterOperator is not written");
        } else {
            warn!(operator = self.operator.name, error, "the ClusterOperator is not written, trying again");
            self.told = error;
        }
        self.wait.grow()
    }
}

/// Returns the action of the event: events that differ only in their notes would be aggregated, so each change has its own.
fn turned(aspect: Aspect, truth: Truth) -> &'static str {
    match (aspect, truth) {
        (Aspect::Available, Truth::True) => "BecomesAvailable",
        (Aspect::Available, Truth::False) => "BecomesUnavailable",
        (Aspect::Progressing, Truth::True) => "Progresses",
        (Aspect::Progressing, Truth::False) => "Settles",
        (Aspect::Degraded, Truth::True) => "Degrades",
        (Aspect::Degraded, Truth::False) => "Recovers",
        (Aspect::Available | Aspect::Progressing | Aspect::Degraded, Truth::Unknown) => "BecomesUnknown",
    }
}
