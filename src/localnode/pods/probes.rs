//! Runs the startup, readiness and liveness probes of a running container, as a kubelet does.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::super::events::Note;
use super::instance::Errands;
use super::network_probe;
use super::pod_status::Health;
use super::run::Run;

/// The purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Startup,
    Liveness,
    Readiness,
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    /// Returns the word for messages about a container's end.
    fn lower(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Liveness => "liveness",
            Self::Readiness => "readiness",
        }
    }
}

/// Returns the state of a container before any probe.
pub(super) fn at_first(container: &Container) -> Health {
    let started = container.startup_probe.is_none();
    Health { started, ready: started && container.readiness_probe.is_none() }
}

/// The number of equal results in a row.
#[derive(Debug, Default)]
struct Streak {
    passed: bool,
    length: i32,
}

impl Streak {
    /// Adds a result; returns the new state once the probe's threshold is reached.
    fn count(&mut self, passed: bool, probe: &Probe) -> Option<bool> {
        self.length = if self.passed == passed { self.length.saturating_add(1) } else { 1 };
        self.passed = passed;
        let enough = if passed { probe.success_threshold } else { probe.failure_threshold };
        let enough = enough.unwrap_or(if passed { 1 } else { 3 }).max(1);
        (self.length >= enough).then_some(passed)
    }
}

fn seconds(number: Option<i32>, usual: u64) -> Duration {
    let number = number.and_then(|number| u64::try_from(number).ok());
    Duration::from_secs(number.filter(|number| *number > 0).unwrap_or(usual))
}

/// The probes of one run of a container.
pub(super) struct Checks<'c> {
    pub(super) run: &'c Run<'c>,
    pub(super) errands: &'c Errands,
    /// Stops the container.
    pub(super) doom: &'c watch::Sender<Option<Instant>>,
    /// The grace period of the Pod.
    pub(super) grace: Duration,
}

impl Checks<'_> {
    /// Runs the probes for as long as the container runs. Never returns.
    pub(super) async fn keep(&self, begun: Option<oneshot::Sender<()>>) {
        let container = self.run.container;
        if let Some(probe) = &container.startup_probe {
            self.until_started(probe).await;
        }
        let ready = container.readiness_probe.is_none();
        self.run.health(Health { started: true, ready }).await;
        // A sidecar counts as started from now on.
        if let Some(begun) = begun {
            let _ = begun.send(());
        }
        let living = async {
            match &container.liveness_probe {
                Some(probe) => self.while_alive(probe).await,
                None => pending().await,
            }
        };
        let serving = async {
            match &container.readiness_probe {
                Some(probe) => self.while_serving(probe).await,
                None => pending().await,
            }
        };
        tokio::join!(living, serving);
    }

    async fn until_started(&self, probe: &Probe) {
        let mut asking = self.asking(Purpose::Startup, probe).await;
        loop {
            match asking.next().await {
                Some(true) => return,
                Some(false) => self.end(Purpose::Startup, probe).await,
                None => {}
            }
        }
    }

    async fn while_alive(&self, probe: &Probe) {
        let mut asking = self.asking(Purpose::Liveness, probe).await;
        loop {
            if asking.next().await == Some(false) {
                self.end(Purpose::Liveness, probe).await;
            }
        }
    }

    async fn while_serving(&self, probe: &Probe) {
        let mut asking = self.asking(Purpose::Readiness, probe).await;
        loop {
            if let Some(ready) = asking.next().await {
                self.run.health(Health { started: true, ready }).await;
            }
        }
    }

    /// Stops the container. Never returns: the caller notices the end.
    async fn end(&self, purpose: Purpose, probe: &Probe) {
        let again = if self.run.is_started_again() { ", will be restarted" } else { "" };
        let text = format!("Container {} failed {} probe{again}", self.run.container.name, purpose.lower());
        self.run.tell(Note::normal("Killing", text)).await;
        let own = probe.termination_grace_period_seconds.and_then(|own| u64::try_from(own).ok());
        let grace = own.map_or(self.grace, Duration::from_secs);
        self.doom.send_replace(Some(Instant::now() + grace));
        pending().await
    }

    async fn asking<'a>(&'a self, purpose: Purpose, probe: &'a Probe) -> Asking<'a> {
        tokio::time::sleep(seconds(probe.initial_delay_seconds, 0)).await;
        let mut every = tokio::time::interval(seconds(probe.period_seconds, 10));
        every.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Asking { checks: self, purpose, probe, every, streak: Streak::default(), told: None }
    }
}

/// A periodic probe.
struct Asking<'a> {
    checks: &'a Checks<'a>,
    purpose: Purpose,
    probe: &'a Probe,
    every: tokio::time::Interval,
    streak: Streak,
    /// The last failure that was reported; equal ones are not reported again.
    told: Option<String>,
}

impl Asking<'_> {
    /// Runs the probe once; returns the new state if a threshold is reached.
    async fn next(&mut self) -> Option<bool> {
        self.every.tick().await;
        let Checks { run, errands, .. } = self.checks;
        let within = seconds(self.probe.timeout_seconds, 1);
        let outcome = match &self.probe.exec {
            Some(exec) => run.exec(errands, exec.command.as_deref().unwrap_or_default(), within).await,
            None => network_probe::ask(self.probe, run.container, within).await,
        };
        let passed = outcome.is_ok();
        match outcome {
            Ok(()) => self.told = None,
            Err(error) if self.told.as_ref().is_some_and(|told| *told == error.to_string()) => {}
            Err(error) => {
                let why = error.to_string();
                let text = format!("{} probe failed: {why}", self.purpose.word());
                run.tell(Note::warning("Unhealthy", text)).await;
                self.told = Some(why);
            }
        }
        self.streak.count(passed, self.probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_outcomes_in_a_row_settle_as_the_probe_asks_for() {
        let probe = Probe { success_threshold: Some(2), failure_threshold: Some(3), ..Probe::default() };
        let mut streak = Streak::default();
        let settled: Vec<Option<bool>> = [false, false, true, false, false, false, false, true, true, true]
            .into_iter()
            .map(|passed| streak.count(passed, &probe))
            .collect();
        let (up, down) = (Some(true), Some(false));
        assert_eq!(settled, [None, None, None, None, None, down, down, None, up, up]);
        let mut usual = Streak::default();
        assert_eq!(usual.count(true, &Probe::default()), up);
        assert_eq!([0; 3].map(|_| usual.count(false, &Probe::default())), [None, None, down]);
    }

    #[test]
    fn a_container_is_ready_at_once_where_nothing_is_asked_of_it() {
        let of = |startup, readiness| {
            at_first(&Container {
                startup_probe: startup,
                readiness_probe: readiness,
                ..Container::default()
            })
        };
        let probe = || Some(Probe::default());
        assert_eq!(of(None, None), Health { started: true, ready: true });
        assert_eq!(of(None, probe()), Health { started: true, ready: false });
        assert_eq!(of(probe(), None), Health { started: false, ready: false });
    }
}
