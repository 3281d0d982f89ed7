//! Runs a set of controllers as one part of a process: under one Lease, each as soon as the kinds that it needs are
//! served, stopped in reverse order, with status and metrics by controller name.
//!
//! ```text
//! stand by ──Lease──► term: member ── served? ──► its work ─┐
//!    ▲                      member ── served? ──► its work ─┼─ one ends by itself ──► the rest is stopped, the process ends
//!    └── Lease lost ────────────────────────────────────────┘
//! ```
//!
//! Nothing is restarted silently: a controller that ends, fails or panics ends the process, and is named in the
//! error. A lost Lease ends a term; the next one starts without any of its state.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::definition::Definition;
use super::lease::{Election, Term as LeaseTerm, lead};
use super::operator::{Operator, Says};
use super::wait::GrowingWait;
use crate::telemetry::{ControllerMetrics, Readiness, panic_text, with_causes};

/// The first and the longest wait for a CRD: the delay after a kind becomes served. Discovery cannot be
/// watched, and CRDs only with permission to read them.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const LONGEST_LOOK: Duration = Duration::from_secs(15);

/// The time limit for stopping all members: below that of the process, and of Kubernetes for a Pod.
const STOPPING: Duration = Duration::from_secs(20);

/// What a controller gets for one term of leadership.
#[derive(Clone, Debug)]
pub struct Term {
    /// Cancelled when the work has to end soon.
    pub stop: CancellationToken,
    pub metrics: Arc<ControllerMetrics>,
    pub readiness: Readiness,
    /// Collects the controller's state for its ClusterOperator.
    pub says: Says,
}

impl Term {
    /// Creates a term for a controller that runs without a manager.
    #[must_use]
    pub fn alone(stop: CancellationToken) -> Self {
        Self { stop, metrics: Arc::default(), readiness: Readiness::default(), says: Says::default() }
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// A controller of a manager.
pub struct Member {
    name: &'static str,
    client: Client,
    needs: Vec<Definition>,
    work: Box<dyn Fn(Term) -> BoxFuture<'static, Result<(), Failed>> + Send + Sync>,
    counts: Registry,
    operator: Option<Operator>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("needs", &self.needs).finish_non_exhaustive()
    }
}

impl Member {
    /// Creates a controller that runs once the kinds in `needs` are served to `client`. Each term begins with a call of
    /// `work`, whose future runs until it is told to stop, and must then end soon.
    pub fn new<F, E>(
        name: &'static str,
        client: Client,
        needs: Vec<Definition>,
        work: impl Fn(Term) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let work = Box::new(move |term| work(term).map(|ended| ended.map_err(Into::into)).boxed());
        Self { name, client, needs, work, counts: Registry::default(), operator: None }
    }

    /// Reports the controller's state as that ClusterOperator, if ClusterOperators are served.
    #[must_use]
    pub fn reporting(self, operator: Operator) -> Self {
        Self { operator: Some(operator), ..self }
    }

    /// Adds the controller's own metrics to those of the kit. They live as long as the process:
    /// all terms share them.
    #[must_use]
    pub fn counting(mut self, register: impl FnOnce(&mut Registry)) -> Self {
        register(&mut self.counts);
        self
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Why the controllers stopped without a request.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    #[error("the controller `{0}` ended unexpectedly")]
    Ended(&'static str),
    #[error("the controller `{name}` failed: {source}")]
    Failed {
        name: &'static str,
        #[source]
        source: Failed,
    },
    #[error("the controller `{name}` panicked: {text}")]
    Panicked { name: &'static str, text: String },
}

/// A set of controllers.
pub struct Manager {
    client: Client,
    election: Option<Election>,
    members: Vec<Arc<Member>>,
    metrics: Arc<ControllerMetrics>,
    readiness: Readiness,
    reports: bool,
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("members", &self.members).finish_non_exhaustive()
    }
}

impl Manager {
    /// Runs controllers while holding the Lease of `election`, taken with `client`; without one it assumes a single replica.
    #[must_use]
    pub fn new(client: Client, election: Option<Election>) -> Self {
        Self {
            client,
            election,
            members: Vec::new(),
            metrics: Arc::default(),
            readiness: Readiness::default(),
            reports: true,
        }
    }

    /// Sets whether controllers report as ClusterOperators; they do by default.
    #[must_use]
    pub fn reports(self, reports: bool) -> Self {
        Self { reports, ..self }
    }

    /// Adds a controller. Those that others depend on come first: the last one is stopped first.
    #[must_use]
    pub fn with(mut self, mut member: Member) -> Self {
        member.operator = member.operator.filter(|_| self.reports);
        self.metrics.include(std::mem::take(&mut member.counts));
        self.readiness.set_trouble(member.name, Some("not started".to_owned()));
        self.members.push(Arc::new(member));
        self
    }

    #[must_use]
    pub fn metrics(&self) -> Arc<ControllerMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Returns the readiness of each controller: ready when its objects are known, or while another process leads.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Runs the controllers until `shutdown`.
    ///
    /// # Errors
    /// [`ManagerError`] when one of them ends before that.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ManagerError> {
        let Some(election) = &self.election else { return self.term(shutdown).await };
        while !shutdown.is_cancelled() {
            self.members.iter().for_each(|member| self.readiness.set(member.name, true));
            self.metrics.leading(&election.name, false);
            let led = lead(self.client.clone(), election, &shutdown, |stop| {
                self.metrics.leading(&election.name, true);
                self.term(stop)
            });
            let ended = led.await;
            self.metrics.leading(&election.name, false);
            match ended {
                LeaseTerm::Ended(ended) => return ended,
                LeaseTerm::Lost | LeaseTerm::NeverLed => {}
            }
        }
        Ok(())
    }

    /// Runs one term: starts all members, and waits until the last one has ended.
    async fn term(&self, stop: CancellationToken) -> Result<(), ManagerError> {
        let mut running = Running::default();
        let mut stops = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            let stop = CancellationToken::new();
            stops.push(stop.clone());
            let (metrics, readiness) = (self.metrics(), self.readiness());
            let term = Term { stop, metrics, readiness, says: Says::default() };
            let member = Arc::clone(member);
            running.left.insert(at);
            running.tasks.spawn(async move { (at, member.name, member.reported(term).await) });
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = running.one(false) => {}
        }
        let until = Instant::now() + STOPPING;
        for (at, stop) in stops.iter().enumerate().rev() {
            stop.cancel();
            while running.left.contains(&at) {
                if timeout_at(until, running.one(true)).await.is_err() {
                    warn!("controllers did not stop in time and were dropped");
                    stops.iter().for_each(CancellationToken::cancel);
                    return running.ended();
                }
            }
        }
        running.ended()
    }
}

/// The running members of a term, and why the first of them ended unexpectedly.
#[derive(Default)]
struct Running {
    tasks: JoinSet<(usize, &'static str, Result<(), ManagerError>)>,
    left: BTreeSet<usize>,
    first: Option<ManagerError>,
}

impl Running {
    /// Waits for the end of a member; for ever if there is none.
    async fn one(&mut self, asked: bool) {
        let Some(ended) = self.tasks.join_next().await else { return std::future::pending().await };
        // Their panics are caught, and they are never aborted.
        let Ok((at, name, ended)) = ended else { return };
        self.left.remove(&at);
        let unexpected = match ended {
            Ok(()) if asked => return info!(controller = name, "stopped"),
            Ok(()) => ManagerError::Ended(name),
            Err(error) => error,
        };
        error!(error = %unexpected, "stopping all controllers");
        self.first.get_or_insert(unexpected);
    }

    fn ended(self) -> Result<(), ManagerError> {
        self.first.map_or(Ok(()), Err)
    }
}

impl Member {
    /// Runs a term together with its ClusterOperator reporter. A panic of the reporter does not stop the controller.
    async fn reported(&self, term: Term) -> Result<(), ManagerError> {
        let Some(operator) = self.operator.clone() else { return self.term(term).await };
        let ended = CancellationToken::new();
        let reporting = operator.run(self.client.clone(), term.says.clone(), ended.clone());
        let reporting = async {
            if let Err(panic) = AssertUnwindSafe(reporting).catch_unwind().await {
                let text = panic_text(panic.as_ref());
                error!(controller = self.name, text, "the report as ClusterOperator panicked and has ended");
            }
        };
        let working = async {
            let worked = self.term(term).await;
            ended.cancel();
            worked
        };
        tokio::join!(working, reporting).0
    }

    async fn term(&self, term: Term) -> Result<(), ManagerError> {
        let name = self.name;
        let stop = term.stop.clone();
        if stop.run_until_cancelled(self.until_served(&term)).await.is_none() {
            return Ok(());
        }
        term.readiness.set_trouble(name, Some("its objects are not listed yet".to_owned()));
        info!(controller = name, "started");
        match AssertUnwindSafe((self.work)(term)).catch_unwind().await {
            Ok(ended) => ended.map_err(|source| ManagerError::Failed { name, source }),
            Err(panic) => Err(ManagerError::Panicked { name, text: panic_text(panic.as_ref()) }),
        }
    }

    /// Waits until all needed kinds are served. Each missing one is logged once.
    async fn until_served(&self, term: &Term) {
        for definition in &self.needs {
            let mut wait = GrowingWait::new(FIRST_LOOK, LONGEST_LOOK);
            let mut told = String::new();
            loop {
                let missing = match definition.is_served(&self.client).await {
                    Ok(true) => break,
                    Ok(false) => format!("{definition} is not served"),
                    Err(error) => {
                        format!("it is not known whether {definition} is served: {}", with_causes(&error))
                    }
                };
                if missing == told {
                    debug!(controller = self.name, missing, "still waiting");
                } else {
                    warn!(controller = self.name, missing, "waiting for what the controller works for");
                    term.readiness.set_trouble(self.name, Some(missing.clone()));
                    term.says.cannot_work("NotServed", missing.clone());
                    told = missing;
                }
                sleep(wait.grow()).await;
            }
        }
    }
}
