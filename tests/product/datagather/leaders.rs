//! Row 35: two processes of `admit controllers` under one Lease, of which the leader is stopped and goes on later, as one that knows
//! nothing of the time between. What it wakes up in the middle of is done once all the same.
//!
//! A round: a DataGather, a step of it that is waited for, SIGSTOP for the leader, its time, SIGCONT. The time is what is tried here;
//! all else waits for what happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit::controllers::datagather::crd::DataGather;
use futures::TryStreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};

use super::upload::ingress::{Answers, FakeIngress};
use crate::running::{Running, Workplace};
use crate::soak::{percent, scaled};
use crate::support::reliability::Row;

/// Longer than any step may take on a busy machine. A bound, not an expectation.
const PATIENCE: Duration = Duration::from_mins(4);
const LEASE: &str = "admit-controllers";

/// What runs gatherings.
#[derive(Clone, Copy, Debug)]
enum Runner {
    InProcess,
    Job,
}

/// When the leader is stopped.
#[derive(Clone, Copy, Debug)]
enum Step {
    Created,
    Seen,
    Running,
    Uploaded,
    Told,
}

const STEPS: [Step; 5] = [Step::Uploaded, Step::Seen, Step::Running, Step::Created, Step::Told];

/// For how long.
#[derive(Clone, Copy, Debug)]
enum Stop {
    For(Duration),
    /// Until the other process leads.
    UntilSucceeded,
}

/// A process that leads or stands by.
struct Candidate {
    name: &'static str,
    child: Child,
}

impl Candidate {
    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success(), "{}", self.name);
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that was ever seen of an object, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<String, Vec<Value>>>>);

impl Seen {
    /// Looks at all objects of a kind from now on.
    fn of<K>(api: Api<K>) -> Self
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

    fn all(&self) -> BTreeMap<String, Vec<Value>> {
        self.0.lock().unwrap().clone()
    }
}

struct Place {
    service: FakeIngress,
    workplace: Workplace,
    _server: Running,
    client: Client,
    gathers: Api<DataGather>,
    jobs: Seen,
    statuses: Seen,
    candidates: Vec<Candidate>,
}

impl Place {
    /// An API server with a node, and two candidates, of which the second has another time of day where that can be had.
    async fn new(runner: Runner, apart: Option<&str>) -> Self {
        let mut answers = Answers::accept("abc");
        answers.report = (200, r#"{"requestID":"abc","report":[]}"#.to_owned());
        let service = FakeIngress::start(answers).await;
        let workplace = Workplace::new();
        fs::write(workplace.path().join("token"), "canary-4711").unwrap();
        fs::write(workplace.path().join("ca.pem"), &service.ca_pem).unwrap();
        let server = workplace.start_with(&["--controllers=observability", "--runner=job"]);
        let client = workplace.client().await;
        let candidates = [("one", None), ("two", apart)]
            .map(|(name, apart)| Self::candidate(&workplace, &service, runner, name, apart))
            .into();
        let jobs = Seen::of(Api::<Job>::namespaced(client.clone(), "admit-system"));
        let statuses = Seen::of(Api::<DataGather>::all(client.clone()));
        let gathers = Api::all(client.clone());
        Self { service, workplace, _server: server, client, gathers, jobs, statuses, candidates }
    }

    fn candidate(
        workplace: &Workplace,
        service: &FakeIngress,
        runner: Runner,
        name: &'static str,
        apart: Option<&str>,
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
        let runner = if let Runner::Job = runner { "job" } else { "in-process" };
        let log = fs::File::create(workplace.path().join(format!("{name}.log"))).unwrap();
        command
            .args(["controllers", "--kubeconfig=.admit/kubeconfig", "--controllers=datagather"])
            .args([
                "--gather-every=never",
                "--prune-after=never",
                "--archive-dir=archives",
                "--cluster-id=c-1",
            ])
            .args(["--upload-token-file=token", "--upload-ca=ca.pem", "--allow-upload-to=127.0.0.0/8"])
            .args(["--upload-url", &service.upload_url, "--runner", runner])
            .current_dir(workplace.path())
            .env("HOSTNAME", name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        Candidate { name, child: command.spawn().unwrap() }
    }

    /// Waits for a leader, who is not `other`.
    async fn leader(&self, other: Option<&Candidate>) -> &Candidate {
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

    fn logs(&self) -> String {
        let log = |name| fs::read_to_string(self.workplace.path().join(name)).unwrap_or_default();
        format!("one:\n{}two:\n{}server:\n{}", log("one.log"), log("two.log"), self.workplace.log())
    }

    async fn until(&self, name: &str, so: impl Fn(&Value) -> bool + Send) -> Value {
        let wanted = |object: Option<&DataGather>| {
            object.is_some_and(|object| so(&serde_json::to_value(&object.status).unwrap()))
        };
        match tokio::time::timeout(PATIENCE, await_condition(self.gathers.clone(), name, wanted)).await {
            Ok(found) => serde_json::to_value(found.unwrap().unwrap().status).unwrap(),
            Err(_) => panic!("{name}: {:#?}\n{}", self.gathers.get(name).await, self.logs()),
        }
    }

    /// One stop of the leader, at `step` of a gathering of its own; whether there was another leader then.
    async fn round(&self, name: &str, step: Step, stop: Stop) -> bool {
        let leader = self.leader(None).await;
        let object = json!({"metadata": {"name": name}, "spec": {}});
        let before = self.service.uploads().len();
        // Whoever uploads hears of it only once the leader stands still.
        self.service.hold(matches!(step, Step::Uploaded));
        self.gathers.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        let state = |status: &Value| rank(status["dataGatherState"].as_str());
        match step {
            Step::Created => {}
            Step::Seen => drop(self.until(name, |status| state(status) > 0).await),
            Step::Running => drop(self.until(name, |status| state(status) > 1).await),
            Step::Uploaded => {
                let come = tokio::time::timeout(PATIENCE, self.service.until(before + 1)).await;
                come.unwrap_or_else(|_| panic!("{name}: no upload\n{}", self.logs()));
            }
            Step::Told => drop(self.until(name, told).await),
        }
        leader.signal("-STOP");
        self.service.hold(false);
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
        // The next round begins when this one is over, or waits for nothing but the service.
        self.until(name, told).await;
        succeeded
    }

    /// What must be true of all that was seen.
    fn judge(&self, names: &[String]) {
        let (jobs, statuses) = (self.jobs.all(), self.statuses.all());
        for (name, seen) in jobs {
            let uids: BTreeSet<_> = seen.iter().map(|job| job["metadata"]["uid"].to_string()).collect();
            assert_eq!(uids.len(), 1, "{name} had several Jobs\n{}", self.logs());
        }
        for name in names {
            let seen = &statuses[name];
            for pair in seen.windows(2) {
                let [old, new] = pair else { continue };
                let (old, new) = (&old["status"], &new["status"]);
                let ranks = [old, new].map(|status| rank(status["dataGatherState"].as_str()));
                let goes_back =
                    ranks[0] > ranks[1] || ranks[0] == 3 && old["dataGatherState"] != new["dataGatherState"];
                assert!(!goes_back, "{name} went back: {old:#} {new:#}\n{}", self.logs());
                for once in ["startTime", "finishTime", "insightsRequestID"] {
                    assert!(old[once].is_null() || old[once] == new[once], "{name}: {once}: {old:#} {new:#}");
                }
            }
        }
        let uploads = self.service.uploads().len();
        let accepted = names.iter().filter(|name| {
            statuses[*name].last().is_some_and(|object| uploaded(&object["status"]) == "True")
        });
        assert!(
            uploads <= names.len() && uploads >= accepted.count(),
            "{uploads} uploads of {}",
            names.len()
        );
    }
}

fn rank(state: Option<&str>) -> u8 {
    match state {
        Some("Pending") => 1,
        Some("Running") => 2,
        Some("Completed" | "Failed") => 3,
        _ => 0,
    }
}

fn uploaded(status: &Value) -> &str {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut uploaded = conditions.filter(|condition| condition["type"] == "DataUploaded");
    uploaded.find_map(|condition| condition["status"].as_str()).unwrap_or("Unknown")
}

/// Whether it is over, or uploaded: that it was processed may take minutes.
fn told(status: &Value) -> bool {
    rank(status["dataGatherState"].as_str()) == 3 || uploaded(status) != "Unknown"
}

#[tokio::test(flavor = "multi_thread")]
async fn row_35_a_leader_that_stands_still_does_nothing_twice() {
    let mut row = Row::short(35, "leaders stopped in the middle of a gathering");
    let play = async |runner| {
        let place = Place::new(runner, None).await;
        let short = place.round("g0", Step::Running, Stop::For(Duration::from_millis(200))).await;
        let long = place.round("g1", Step::Uploaded, Stop::UntilSucceeded).await;
        // Who was stopped hears of it, and whoever leads now goes on.
        let after = place.round("g2", Step::Told, Stop::For(Duration::ZERO)).await;
        place.judge(&["g0", "g1", "g2"].map(str::to_owned));
        u8::from(short) + u8::from(long) + u8::from(after)
    };
    let (in_process, jobs) = tokio::join!(play(Runner::InProcess), play(Runner::Job));
    row.measured(json!({"stops": 6, "successions": in_process + jobs, "secondJobs": 0, "secondUploads": 0}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "hours: scripts/soak runs it"]
async fn row_35_at_full_length() {
    let mut row = Row::full(35, "leaders stopped for 0 to 60 s", percent());
    let rounds = scaled(200);
    let clocks = Command::new("faketime").arg("--version").stdout(Stdio::null()).status().is_ok();
    // Evenly spread, and in an order of its own beside that of the steps.
    let stop = |number: usize| {
        let place = u64::try_from(number * 73 % rounds).unwrap();
        Duration::from_millis(60_000 * (2 * place + 1) / (2 * u64::try_from(rounds).unwrap()))
    };
    let stops: Vec<_> = (0..rounds).map(stop).collect();
    // Both at a time: each sleeps most of its time.
    let play = async |runner, offset| {
        let place = Place::new(runner, Some(offset).filter(|_| clocks)).await;
        let (mut names, mut successions) = (Vec::new(), 0);
        for (number, length) in stops.iter().enumerate() {
            let name = format!("g{number}");
            let step = STEPS[number % STEPS.len()];
            successions += usize::from(place.round(&name, step, Stop::For(*length)).await);
            names.push(name);
        }
        for name in &names {
            place.until(name, |status| rank(status["dataGatherState"].as_str()) == 3).await;
        }
        place.judge(&names);
        successions
    };
    let (in_process, jobs) = tokio::join!(play(Runner::InProcess, "-30s"), play(Runner::Job, "+30s"));
    row.measured(
        json!({"stops": 2 * rounds, "successions": in_process + jobs, "secondJobs": 0, "secondUploads": 0,
        "clocksApart": if clocks { "30 s" } else { "no faketime: none" }}),
    );
}
