//! Two processes of `admit controllers` under one Lease on the API server of an `admit up`, of which the leader is stopped and goes on
//! later, as one that knows nothing of the time between.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::Value;

use crate::running::{Running, Workplace};

/// Longer than any step may take on a busy machine. A bound, not an expectation.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);
const LEASE: &str = "admit-controllers";

/// For how long.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    For(Duration),
    /// Until the other process leads.
    UntilSucceeded,
}

/// A process that leads or stands by, in a group of its own: with another time of day it is the child of whoever gives it that.
pub(crate) struct Candidate {
    name: &'static str,
    child: Child,
}

impl Candidate {
    fn signal(&self, signal: &str) {
        assert!(self.kill(signal), "{}", self.name);
    }

    /// Whether there was anybody to signal.
    fn kill(&self, signal: &str) -> bool {
        let group = format!("-{}", self.child.id());
        Command::new("kill").args([signal, "--", &group]).status().unwrap().success()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        self.kill("-KILL");
        let _ = self.child.wait();
    }
}

/// All that was ever seen of an object, in order.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<BTreeMap<String, Vec<Value>>>>);

impl Seen {
    /// Looks at all objects of a kind from now on.
    pub(crate) fn of<K>(api: Api<K>) -> Self
    where
        K: Resource
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned
            + serde::Serialize
            + Send
            + 'static,
    {
        let seen = Self::default();
        let told = seen.clone();
        tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
            while let Ok(event) = events.try_next().await {
                if let Some(Event::Apply(object) | Event::InitApply(object)) = event {
                    let value = serde_json::to_value(&object).unwrap();
                    told.0.lock().unwrap().entry(object.name_any()).or_default().push(value);
                }
            }
        });
        seen
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Vec<Value>> {
        self.0.lock().unwrap().clone()
    }
}

/// An API server with a node, and two candidates.
pub(crate) struct Pair {
    pub(crate) workplace: Workplace,
    _server: Running,
    pub(crate) client: Client,
    candidates: Vec<Candidate>,
}

impl Pair {
    /// Starts `server` and, with what `dress` adds to the command, two candidates of `controllers`, of which the second has another
    /// time of day where that can be had.
    pub(crate) async fn new(
        workplace: Workplace,
        server: &[&str],
        apart: Option<&str>,
        dress: impl Fn(&mut Command),
    ) -> Self {
        let server = workplace.start_with(server);
        let client = workplace.client().await;
        let candidates =
            [("one", None), ("two", apart)].map(|(name, apart)| candidate(&workplace, name, apart, &dress));
        Self { workplace, _server: server, client, candidates: candidates.into() }
    }

    /// Waits for a leader, who is not `other`.
    pub(crate) async fn leader(&self, other: Option<&Candidate>) -> &Candidate {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "default");
        let of = |lease: Option<&Lease>| {
            let holder = lease?.spec.as_ref()?.holder_identity.clone()?;
            self.candidates.iter().find(|candidate| holder.starts_with(&format!("{}_", candidate.name)))
        };
        let is_new = |found: &Candidate| other.is_none_or(|other| other.name != found.name);
        let led = await_condition(leases, LEASE, |lease: Option<&Lease>| of(lease).is_some_and(is_new));
        let lease = tokio::time::timeout(PATIENCE, led).await;
        let lease = lease.unwrap_or_else(|_| panic!("nobody leads:\n{}", self.logs())).unwrap();
        of(lease.as_ref()).unwrap()
    }

    /// Stops `leader` for its time and lets it go on, once `meanwhile` was done; whether there was another leader then.
    pub(crate) async fn stop(&self, leader: &Candidate, stop: Stop, meanwhile: impl FnOnce()) -> bool {
        leader.signal("-STOP");
        meanwhile();
        let succeeded = match stop {
            Stop::For(length) => {
                tokio::time::sleep(length).await;
                self.leader(None).await.name != leader.name
            }
            Stop::UntilSucceeded => {
                self.leader(Some(leader)).await;
                true
            }
        };
        leader.signal("-CONT");
        succeeded
    }

    pub(crate) fn logs(&self) -> String {
        let log = |name| fs::read_to_string(self.workplace.path().join(name)).unwrap_or_default();
        format!("one:\n{}two:\n{}server:\n{}", log("one.log"), log("two.log"), self.workplace.log())
    }
}

fn candidate(
    workplace: &Workplace,
    name: &'static str,
    apart: Option<&str>,
    dress: &impl Fn(&mut Command),
) -> Candidate {
    let program = env!("CARGO_BIN_EXE_admit");
    let mut command = match apart {
        None => Command::new(program),
        Some(offset) => {
            let mut faketime = Command::new("faketime");
            faketime.args(["-f", offset, program]).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            faketime
        }
    };
    let log = fs::File::create(workplace.path().join(format!("{name}.log"))).unwrap();
    command.args(["controllers", "--kubeconfig=.admit/kubeconfig"]);
    dress(&mut command);
    command
        .current_dir(workplace.path())
        .env("HOSTNAME", name)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    Candidate { name, child: command.spawn().unwrap() }
}

/// Whether processes can be given another time of day.
pub(crate) fn has_clocks() -> bool {
    Command::new("faketime").arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// Times of 0 to 60 s, evenly spread, and in an order of their own beside that of steps.
pub(crate) fn lengths(rounds: usize) -> Vec<Duration> {
    let length = |number: usize| {
        let place = u64::try_from(number * 73 % rounds).unwrap();
        Duration::from_millis(60_000 * (2 * place + 1) / (2 * u64::try_from(rounds).unwrap()))
    };
    (0..rounds).map(length).collect()
}
