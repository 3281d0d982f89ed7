//! One term of priming: hears of ClusterOperators and of the payload, and passes over the payload when either is another, each minute,
//! and when what failed is due again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use super::counts::Counts;
use super::crd::{ClusterOperator, ClusterOperatorSpec};
use super::fetch::Live;
use super::payload::{Payload, Source, Wanted};
use super::plan::{FIELD_MANAGER, Step, plan};
use super::{DEBOUNCE, NAME, Settings, apply, status};
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::conditions::Truth;
use crate::controllers::kit::events::{Events, Notice};
use crate::controllers::kit::manager::Term;
use crate::controllers::kit::operator::{Aspect, Says};
use crate::controllers::kit::wait::{GrowingWait, jittered};
use crate::controllers::kit::watch;
use crate::outside;
use crate::telemetry::{ControllerMetrics, with_causes};

/// Time between passes when nothing happens.
const EVERY: Duration = Duration::from_mins(1);
/// Waits of one that failed: twice as long each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// ClusterOperators written at a time.
const AT_ONCE: usize = 8;

/// One term of priming.
pub(super) struct Primer {
    api: Api<ClusterOperator>,
    client: Client,
    settings: Settings,
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
    /// Those that this pass has primed.
    primed: Vec<ClusterOperator>,
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
    pub(super) fn new(
        client: Client,
        settings: Settings,
        metrics: Arc<ControllerMetrics>,
        counts: Counts,
    ) -> Self {
        let source = Source::new(settings.payload.as_deref(), settings.inclusion.clone());
        Self {
            api: Api::all(client.clone()),
            events: Events::new(client.clone(), FIELD_MANAGER),
            client,
            clock: settings.clock.clone(),
            settings,
            source,
            metrics,
            counts,
            live: Live::default(),
            later: BTreeMap::new(),
            told: Vec::new(),
            primed: Vec::new(),
        }
    }

    pub(super) async fn run(mut self, term: Term) {
        let watched: Api<DeserializeGuard<ClusterOperator>> = Api::all(self.client.clone());
        let mut events = watch::events(watched, watcher::Config::default()).boxed();
        let mut keys = self.keys();
        let mut due = Instant::now();
        loop {
            let ready = self.live.listed();
            tokio::select! {
                () = term.stop.cancelled() => return,
                Some(event) = events.next() => {
                    self.hear(event);
                    due = due.min(Instant::now() + DEBOUNCE);
                }
                Some(data) = keys.next() => {
                    if let Some((namespace, name)) = &self.settings.config_map {
                        self.source.hear(&format!("{namespace}/{name}"), data);
                        due = due.min(Instant::now() + DEBOUNCE);
                    }
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

    /// The data of the ConfigMap, each time that it is another; for ever nothing where none is named.
    fn keys(&self) -> BoxStream<'static, BTreeMap<String, String>> {
        let Some((namespace, name)) = &self.settings.config_map else {
            return futures::stream::pending().boxed();
        };
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let events = watch::events(api, watcher::Config::default().fields(&format!("metadata.name={name}")));
        let data = events.filter_map(|event| async {
            match event {
                Event::Apply(map) | Event::InitApply(map) => Some(map.data.unwrap_or_default()),
                Event::Delete(_) => Some(BTreeMap::new()),
                Event::Init | Event::InitDone => None,
            }
        });
        data.boxed()
    }

    fn hear(&mut self, event: Event<DeserializeGuard<ClusterOperator>>) {
        let named = match &event {
            Event::Apply(object) | Event::Delete(object) => Some(object.name_any()),
            Event::Init | Event::InitApply(_) | Event::InitDone => None,
        };
        let listed = matches!(event, Event::InitDone);
        self.live.hear(event);
        if let Some(name) = named {
            self.counts.see(&name, self.live.get(&name).flatten());
        }
        if listed {
            self.live.all().for_each(|(name, object)| self.counts.see(name, Some(object)));
            self.counts.keep(|name| self.live.get(name).is_some());
        }
    }

    /// The payload, read apart from everything else: folders may be on anything.
    async fn read(&mut self) -> Result<Arc<Payload>, String> {
        let mut source = std::mem::take(&mut self.source);
        let reading = outside::in_time(move || {
            let read = source.read();
            (source, read)
        });
        match reading.await {
            Ok((source, read)) => {
                self.source = source;
                read.map_err(|error| error.to_string())
            }
            Err(error) => {
                // It is still being read, by a thread that nobody waits for any more.
                self.source = Source::new(self.settings.payload.as_deref(), self.settings.inclusion.clone());
                Err(format!("the payload cannot be read: {error}"))
            }
        }
    }

    /// One look at the whole payload.
    async fn pass(&mut self) -> &'static str {
        let payload = match self.read().await {
            Ok(payload) => payload,
            Err(error) => {
                self.tell(vec![error]).await;
                return "error";
            }
        };
        let Payload { operators, mistakes } = &*payload;
        self.tell(mistakes.clone()).await;
        self.later.retain(|name, _| operators.iter().any(|wanted| wanted.name == *name));
        let now = self.clock.now();
        let todo: Vec<_> = operators.iter().filter_map(|wanted| self.todo(wanted, now)).collect();
        let api = self.api.clone();
        let counts = self.counts.clone();
        let working = futures::stream::iter(todo).map(|(wanted, step, live)| {
            let (api, counts) = (api.clone(), counts.clone());
            async move {
                let outcome = step_one(&api, &counts, &wanted, step, live, now).await;
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
        self.tell_of_primed().await;
        result
    }

    /// What is to be done about one now, if anything.
    fn todo(&self, wanted: &Wanted, now: Timestamp) -> Option<(Wanted, Step, Option<ClusterOperator>)> {
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
        (step != Step::Leave).then(|| (wanted.clone(), step, live))
    }

    async fn done(&mut self, name: &str, outcome: Outcome) {
        let result = match outcome {
            Outcome::Primed(object) => {
                info!(name, "primed");
                self.live.wrote(object.as_ref().clone());
                self.primed.push(*object);
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

    /// One event for all of a pass: a payload has hundreds, and each says itself that it is primed.
    async fn tell_of_primed(&mut self) {
        let primed = std::mem::take(&mut self.primed);
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
        match primed.as_slice() {
            [alone] => self.events.publish(alone, notice).await,
            // Of several, on the ClusterOperator of the primer.
            _ => {
                self.events
                    .publish(&ClusterOperator::new(FIELD_MANAGER, ClusterOperatorSpec {}), notice)
                    .await;
            }
        }
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
    async fn tell(&mut self, mistakes: Vec<String>) {
        for mistake in mistakes.iter().filter(|mistake| !self.told.contains(mistake)) {
            warn!(mistake, "the payload, or a manifest of it, is left out");
            self.counts.primed("bad_manifest");
            let note = mistake.clone();
            let notice = Notice { warning: true, reason: "BadManifest", action: "Read", note };
            // On the ClusterOperator of the primer: what is wrong may have no name.
            self.events.publish(&ClusterOperator::new(FIELD_MANAGER, ClusterOperatorSpec {}), notice).await;
        }
        self.told = mistakes;
    }
}

async fn step_one(
    api: &Api<ClusterOperator>,
    counts: &Counts,
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
            Ok(Some(created)) => {
                counts.primed("created");
                created
            }
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
