//! Row 35: two processes of `admit controllers` under one Lease, of which the leader is stopped and goes on later, as one that knows
//! nothing of the time between. What it wakes up in the middle of is done once all the same.
//!
//! A round: a DataGather, a step of it that is waited for, SIGSTOP for the leader, its time, SIGCONT. The time is what is tried here;
//! all else waits for what happens.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use admit::controllers::datagather::crd::DataGather;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::upload::ingress::{Answers, FakeIngress};
use crate::running::Workplace;
use crate::soak::{percent, scaled};
use crate::support::leaders::{PATIENCE, Pair, Seen, Stop, has_clocks, lengths};
use crate::support::reliability::Row;

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

struct Place {
    service: FakeIngress,
    pair: Pair,
    gathers: Api<DataGather>,
    jobs: Seen,
    statuses: Seen,
}

impl Place {
    async fn new(runner: Runner, apart: Option<&str>) -> Self {
        let mut answers = Answers::accept("abc");
        answers.report = (200, r#"{"requestID":"abc","report":[]}"#.to_owned());
        let service = FakeIngress::start(answers).await;
        let workplace = Workplace::new();
        fs::write(workplace.path().join("token"), "canary-4711").unwrap();
        fs::write(workplace.path().join("ca.pem"), &service.ca_pem).unwrap();
        let runner = if let Runner::Job = runner { "job" } else { "in-process" };
        let pair = Pair::new(workplace, &["--controllers=observability", "--runner=job"], apart, |command| {
            command
                .args(["--controllers=datagather", "--gather-every=never", "--prune-after=never"])
                .args(["--archive-dir=archives", "--cluster-id=c-1"])
                .args(["--upload-token-file=token", "--upload-ca=ca.pem", "--allow-upload-to=127.0.0.0/8"])
                .args(["--upload-url", &service.upload_url, "--runner", runner]);
        })
        .await;
        let jobs = Seen::of(Api::<Job>::namespaced(pair.client.clone(), "admit-system"));
        let statuses = Seen::of(Api::<DataGather>::all(pair.client.clone()));
        let gathers = Api::all(pair.client.clone());
        Self { service, pair, gathers, jobs, statuses }
    }

    fn logs(&self) -> String {
        self.pair.logs()
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
        let leader = self.pair.leader(None).await;
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
        let succeeded = self.pair.stop(leader, stop, || self.service.hold(false)).await;
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
    let clocks = has_clocks();
    let stops = lengths(rounds);
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
