//! Primes ClusterOperators while this process leads: goes over the payload when it or a ClusterOperator changes, each
//! minute, and when a retry is due.

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
use super::crd::ClusterOperator;
use super::fetch::Live;
use super::notices::Notices;
use super::payload::{Payload, PayloadError, Source, Wanted};
use super::plan::{Step, plan};
use super::retries::Retries;
use super::{DEBOUNCE, EVERY, NAME, Settings, apply, status};
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::manager::Term;
use crate::controllers::kit::wait::jittered;
use crate::controllers::kit::watch;
use crate::outside::{self, Unreadable};
use crate::telemetry::{ControllerMetrics, with_causes};

/// ClusterOperators that are written at a time.
const AT_ONCE: usize = 8;

/// Why the payload cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error("the payload cannot be read: {0}")]
    TooSlow(Unreadable),
}

/// The state while this process leads.
pub(super) struct Primer {
    api: Api<ClusterOperator>,
    client: Client,
    settings: Settings,
    source: Source,
    notices: Notices,
    metrics: Arc<ControllerMetrics>,
    counts: Counts,
    clock: Clock,
    live: Live,
    retries: Retries,
}

/// The result for one ClusterOperator.
enum Outcome {
    Primed(Box<ClusterOperator>),
    /// Another client has written it first.
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
            notices: Notices::new(client.clone()),
            client,
            clock: settings.clock.clone(),
            settings,
            source,
            metrics,
            counts,
            live: Live::default(),
            retries: Retries::default(),
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
                    // A pass that was interrupted is repeated by the next leader.
                    let Some(result) = term.stop.run_until_cancelled(self.pass()).await else { return };
                    self.metrics.reconciled(NAME, result, began.elapsed());
                    term.readiness.set(NAME, true);
                    self.notices.say(&term.says, self.retries.failing());
                    let next = Instant::now() + jittered(EVERY);
                    due = self.retries.next().map_or(next, |retry| retry.min(next));
                }
            }
        }
    }

    /// Returns the data of the ConfigMap whenever it changes; nothing if none is named.
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

    /// Reads the payload on a blocking thread, since its file system may be slow.
    async fn read(&mut self) -> Result<Arc<Payload>, ReadError> {
        let mut source = std::mem::take(&mut self.source);
        let reading = outside::in_time(move || {
            let read = source.read();
            (source, read)
        });
        match reading.await {
            Ok((source, read)) => {
                self.source = source;
                Ok(read?)
            }
            Err(error) => {
                // The abandoned thread still has the old source.
                self.source = Source::new(self.settings.payload.as_deref(), self.settings.inclusion.clone());
                Err(ReadError::TooSlow(error))
            }
        }
    }

    /// Goes over the whole payload once; returns the result for metrics.
    async fn pass(&mut self) -> &'static str {
        let payload = match self.read().await {
            Ok(payload) => payload,
            Err(error) => {
                self.tell_of(vec![error.to_string()]).await;
                return "error";
            }
        };
        let Payload { operators, mistakes } = &*payload;
        self.tell_of(mistakes.clone()).await;
        self.retries.keep(|name| operators.iter().any(|wanted| wanted.name == name));
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
        let (mut result, mut primed) = ("success", Vec::new());
        for (wanted, outcome) in done {
            if let Outcome::Failed(_) = outcome {
                result = "error";
            }
            primed.extend(self.done(&wanted.name, outcome).await);
        }
        self.notices.primed(&primed).await;
        result
    }

    async fn tell_of(&mut self, mistakes: Vec<String>) {
        let new = self.notices.mistakes(mistakes).await;
        (0..new).for_each(|_| self.counts.primed("bad_manifest"));
    }

    /// Returns the step for one ClusterOperator, if there is anything to do now.
    fn todo(&self, wanted: &Wanted, now: Timestamp) -> Option<(Wanted, Step, Option<ClusterOperator>)> {
        if self.retries.is_waited_for(&wanted.name, Instant::now()) {
            return None;
        }
        let live = match self.live.get(&wanted.name) {
            None => None,
            // It cannot be parsed, so another client wrote it.
            Some(None) => return None,
            Some(Some(live)) => Some(live.clone()),
        };
        let step = plan(live.as_ref(), now);
        (step != Step::Leave).then(|| (wanted.clone(), step, live))
    }

    /// Records the result for a ClusterOperator; returns the object if it was primed.
    async fn done(&mut self, name: &str, outcome: Outcome) -> Option<ClusterOperator> {
        let (result, primed) = match outcome {
            Outcome::Primed(object) => {
                info!(name, "primed");
                self.live.wrote(object.as_ref().clone());
                self.retries.forget(name);
                ("primed", Some(*object))
            }
            Outcome::Theirs => {
                debug!(name, "another was first");
                self.live.exists(name);
                self.retries.forget(name);
                ("conflict", None)
            }
            Outcome::Wait(left) => {
                self.retries.wait(name, Instant::now() + left);
                return None;
            }
            Outcome::Failed(error) => {
                if self.retries.failed(name, &error, Instant::now()) {
                    warn!(name, error, "not primed, trying again later");
                } else {
                    debug!(name, error, "not primed, again");
                }
                self.notices.failed(name, error).await;
                ("error", None)
            }
        };
        self.counts.primed(result);
        primed
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
