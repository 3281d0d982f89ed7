//! Makes the ClusterOperators that a payload announces, with their three conditions Unknown, before their operators report: so that who
//! debugs an installation sees which are missing, and what belongs to them.
//!
//! ```text
//!  payload folder ──► Source ─┐
//!                             ├─ pass: for each: plan ──► create ──► prime the status (fenced)
//!  watch ──► Live ────────────┘
//!    ▲ any event, every minute, and what failed after a wait of its own
//! ```
//!
//! What is promised: a ClusterOperator is created and primed once; what an operator has written is never written over, whatever races;
//! what goes wrong with one keeps no other, and nothing here keeps anything else. One that is deleted comes back within a minute.

mod apply;
mod counts;
pub mod crd;
mod fetch;
pub mod gate;
pub mod payload;
pub mod plan;
mod status;
pub mod waiting;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use self::counts::Counts;
use self::crd::{ClusterOperator, ClusterOperatorSpec};
use self::fetch::Live;
use self::payload::{Inclusion, Payload, PayloadError, Source, Wanted};
use self::plan::{FIELD_MANAGER, Step, plan};
use super::kit::clock::Clock;
use super::kit::conditions::Truth;
use super::kit::events::{Events, Notice};
use super::kit::manager::{Definition, Member, Term};
use super::kit::operator::{Aspect, Operator, Says};
use super::kit::wait::{GrowingWait, jittered};
use super::kit::watch;
use crate::telemetry::{ControllerMetrics, with_causes};

/// Under which it is counted, logged and chosen.
const NAME: &str = "clusteroperator";
/// Time between passes when nothing happens.
const EVERY: Duration = Duration::from_mins(1);
/// How long an event waits for others, so that one pass serves a burst of them.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Waits of one that failed: twice as long each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// ClusterOperators written at a time.
const AT_ONCE: usize = 8;

/// What an operator may set about priming.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder of manifests.
    pub payload: PathBuf,
    pub inclusion: Inclusion,
    pub clock: Clock,
}

impl Settings {
    pub fn new(payload: impl Into<PathBuf>) -> Self {
        Self { payload: payload.into(), inclusion: Inclusion::default(), clock: Clock::default() }
    }
}

/// The controller as a member of a set that is managed. Its `client` is the controller's own account.
///
/// # Errors
/// At once when the payload cannot be read; later that is only told.
pub fn member(client: Client, settings: Settings) -> Result<Member, PayloadError> {
    Source::new(&settings.payload, settings.inclusion.clone()).read()?;
    let needs = vec![Definition::of::<ClusterOperator>()];
    let own = client.clone();
    let counts = Counts::default();
    let shown = counts.clone();
    let member = Member::new(NAME, client, needs, move |term| {
        let (client, settings, counts) = (own.clone(), settings.clone(), counts.clone());
        async move {
            Primer::new(client, settings, Arc::clone(&term.metrics), counts).run(term).await;
            Ok::<_, Infallible>(())
        }
    });
    let operator = Operator::new("admit-clusteroperator").relating("config.openshift.io", "clusteroperators");
    Ok(member.counting(|registry| shown.register(registry)).reporting(operator))
}

/// One term of priming.
struct Primer {
    api: Api<ClusterOperator>,
    client: Client,
    source: Source,
    events: Events,
    metrics: Arc<ControllerMetrics>,
    counts: Counts,
    clock: Clock,
    live: Live,
    /// Those whose last attempt failed, or that are waited for.
    later: BTreeMap<String, Later>,
    /// What was told of the payload, so that it is told once.
    told: Vec<String>,
}

/// When to try again, and why.
struct Later {
    wait: GrowingWait,
    at: Instant,
    told: String,
}

/// What came of one ClusterOperator.
enum Outcome {
    Primed(Box<ClusterOperator>),
    /// Another was first.
    Theirs,
    Wait(Duration),
    Failed(String),
}

impl Primer {
    fn new(client: Client, settings: Settings, metrics: Arc<ControllerMetrics>, counts: Counts) -> Self {
        let Settings { payload, inclusion, clock } = settings;
        Self {
            api: Api::all(client.clone()),
            events: Events::new(client.clone(), FIELD_MANAGER),
            client,
            source: Source::new(&payload, inclusion),
            metrics,
            counts,
            clock,
            live: Live::default(),
            later: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    async fn run(mut self, term: Term) {
        let watched: Api<DeserializeGuard<ClusterOperator>> = Api::all(self.client.clone());
        let mut events = watch::events(watched, watcher::Config::default()).boxed();
        let mut due = Instant::now();
        loop {
            let ready = self.live.listed();
            tokio::select! {
                () = term.stop.cancelled() => return,
                Some(event) = events.next() => {
                    self.live.hear(event);
                    due = due.min(Instant::now() + DEBOUNCE);
                }
                () = sleep_until(due), if ready => {
                    let began = std::time::Instant::now();
                    // What is cut off by a stop is taken up by the next term.
                    let Some(result) = term.stop.run_until_cancelled(self.pass()).await else { return };
                    self.metrics.reconciled(NAME, result, began.elapsed());
                    term.readiness.set(NAME, true);
                    self.say(&term.says);
                    let later = self.later.values().map(|later| later.at).min();
                    let next = Instant::now() + jittered(EVERY);
                    due = later.map_or(next, |later| later.min(next));
                }
            }
        }
    }

    /// One look at the whole payload.
    async fn pass(&mut self) -> &'static str {
        let payload = match self.source.read() {
            Ok(payload) => payload.clone(),
            Err(error) => {
                self.tell(vec![error.to_string()]);
                return "error";
            }
        };
        let Payload { operators, mistakes } = payload;
        self.tell(mistakes);
        self.later.retain(|name, _| operators.iter().any(|wanted| wanted.name == *name));
        let now = self.clock.now();
        let todo: Vec<_> = operators.into_iter().filter_map(|wanted| self.todo(wanted, now)).collect();
        let api = self.api.clone();
        let working = futures::stream::iter(todo).map(|(wanted, step, live)| {
            let api = api.clone();
            async move {
                let outcome = step_one(&api, &wanted, step, live, now).await;
                (wanted, outcome)
            }
        });
        let done: Vec<_> = working.buffer_unordered(AT_ONCE).collect().await;
        let mut result = "success";
        for (wanted, outcome) in done {
            if let Outcome::Failed(_) = outcome {
                result = "error";
            }
            self.done(&wanted.name, outcome).await;
        }
        result
    }

    /// What is to be done about one now, if anything.
    fn todo(&self, wanted: Wanted, now: Timestamp) -> Option<(Wanted, Step, Option<ClusterOperator>)> {
        if self.later.get(&wanted.name).is_some_and(|later| later.at > Instant::now()) {
            return None;
        }
        let live = match self.live.get(&wanted.name) {
            None => None,
            // It cannot be read: somebody wrote it, and it is theirs.
            Some(None) => return None,
            Some(Some(live)) => Some(live.clone()),
        };
        let step = plan(live.as_ref(), now);
        (step != Step::Leave).then_some((wanted, step, live))
    }

    async fn done(&mut self, name: &str, outcome: Outcome) {
        let result = match outcome {
            Outcome::Primed(object) => {
                info!(name, "primed");
                let note = "created with conditions Unknown, until its operator reports".to_owned();
                let notice =
                    Notice { warning: false, reason: "ClusterOperatorPrimed", action: "Prime", note };
                self.events.publish(object.as_ref(), notice).await;
                self.live.wrote(*object);
                self.later.remove(name);
                "primed"
            }
            Outcome::Theirs => {
                debug!(name, "another was first");
                self.live.exists(name);
                self.later.remove(name);
                "conflict"
            }
            Outcome::Wait(left) => {
                let wait = GrowingWait::new(FIRST_WAIT, EVERY);
                let later = Later { wait, at: Instant::now() + left, told: String::new() };
                self.later.insert(name.to_owned(), later);
                return;
            }
            Outcome::Failed(error) => {
                self.failed(name, error).await;
                "error"
            }
        };
        self.counts.primed(result);
    }

    async fn failed(&mut self, name: &str, error: String) {
        let now = Instant::now();
        let later = self.later.entry(name.to_owned()).or_insert_with(|| Later {
            wait: GrowingWait::new(FIRST_WAIT, EVERY),
            at: now,
            told: String::new(),
        });
        later.at = now + later.wait.grow();
        if later.told == error {
            debug!(name, error, "not primed, again");
        } else {
            warn!(name, error, "not primed, trying again later");
            later.told.clone_from(&error);
        }
        let notice = Notice { warning: true, reason: "PrimingFailed", action: "Prime", note: error };
        self.events.publish(&ClusterOperator::new(name, ClusterOperatorSpec {}), notice).await;
    }

    /// How the primer is, for its own ClusterOperator.
    fn say(&self, says: &Says) {
        says.works();
        let mut failing = self.later.iter().filter(|(_, later)| !later.told.is_empty());
        if let Some((name, later)) = failing.next() {
            says.fails(failing.count() + 1, &format!("{name}: {}", later.told));
        }
        let (truth, reason) = match self.told.first() {
            Some(_) => (Truth::True, "BadManifests"),
            None => (Truth::False, "AsExpected"),
        };
        says.say("Payload", Aspect::Degraded, truth, reason, self.told.join("\n"));
    }

    /// Tells what is wrong with the payload, where that is not what was told before.
    fn tell(&mut self, mistakes: Vec<String>) {
        for mistake in mistakes.iter().filter(|mistake| !self.told.contains(mistake)) {
            warn!(mistake, "a manifest of the payload is left out");
            self.counts.primed("bad_manifest");
        }
        self.told = mistakes;
    }
}

async fn step_one(
    api: &Api<ClusterOperator>,
    wanted: &Wanted,
    step: Step,
    live: Option<ClusterOperator>,
    now: Timestamp,
) -> Outcome {
    let object = match (step, live) {
        (Step::LookAgain(left), _) => return Outcome::Wait(left),
        (Step::Leave, _) => return Outcome::Theirs,
        (Step::Prime, Some(live)) => live,
        (Step::Create | Step::Prime, _) => match apply::create(api, wanted).await {
            Ok(Some(created)) => created,
            Ok(None) => return Outcome::Theirs,
            Err(error) => return Outcome::Failed(format!("cannot be created: {}", with_causes(&error))),
        },
    };
    debug!(name = object.name_any(), "there, and not primed yet");
    match status::prime(api, &object, wanted, now).await {
        Ok(Some(primed)) => Outcome::Primed(Box::new(primed)),
        Ok(None) => Outcome::Theirs,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}
