//! Row 35 for MustGathers: the leader of two processes is stopped in the middle of one and goes on later, as one that knows nothing of
//! the time between. There is one Job for each all the same, and one archive at OpenSSH's server; what is final stays so; nothing is
//! left behind.

use std::collections::BTreeSet;
use std::time::Duration;

use admit::controllers::mustgather::FINALIZER;
use admit::controllers::mustgather::crd::MustGather;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::up::prepare;
use crate::running::Workplace;
use crate::soak::{percent, scaled};
use crate::support::leaders::{PATIENCE, Pair, Seen, Stop, has_clocks, lengths};
use crate::support::reliability::Row;
use crate::support::sshd::{Sshd, Wanted};

const NAMESPACE: &str = "support";

/// When the leader is stopped.
#[derive(Clone, Copy, Debug)]
enum Step {
    Created,
    /// It has taken the object on.
    Seen,
    Running,
    /// The Job has ended; the leader may not know.
    Ended,
    /// It has said how it ended, and may be cleaning up.
    Told,
}

const STEPS: [Step; 5] = [Step::Running, Step::Ended, Step::Seen, Step::Told, Step::Created];

struct Place {
    sshd: Sshd,
    pair: Pair,
    gathers: Api<MustGather>,
    jobs: Api<Job>,
    seen_jobs: Seen,
    statuses: Seen,
}

impl Place {
    async fn new(sshd: Sshd, apart: Option<&str>) -> Self {
        let pair = Pair::new(Workplace::new(), &["--controllers=observability"], apart, |command| {
            command.arg("--controllers=mustgather");
        })
        .await;
        prepare(&pair.client, &sshd).await;
        let gathers = Api::namespaced(pair.client.clone(), NAMESPACE);
        let jobs = Api::namespaced(pair.client.clone(), NAMESPACE);
        let (seen_jobs, statuses) = (Seen::of(jobs.clone()), Seen::of(gathers.clone()));
        Self { sshd, pair, gathers, jobs, seen_jobs, statuses }
    }

    async fn create(&self, name: &str) {
        let sftp = json!({
            "caseID": "04123456", "host": self.sshd.address.to_string(),
            "caseManagementAccountSecretRef": {"name": "account"},
        });
        let spec = json!({
            "serviceAccountRef": {"name": "gatherer"}, "mustGatherTimeout": "3m",
            "uploadTarget": {"type": "SFTP", "sftp": sftp},
        });
        let object = json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
        self.gathers.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    async fn until(&self, name: &str, so: impl Fn(&Value) -> bool + Send) {
        let wanted = |object: Option<&MustGather>| {
            object.is_some_and(|object| so(&serde_json::to_value(object).unwrap()))
        };
        let waiting = tokio::time::timeout(PATIENCE, await_condition(self.gathers.clone(), name, wanted));
        if waiting.await.is_err() {
            panic!("{name}: {:#?}\n{}", self.gathers.get(name).await, self.pair.logs());
        }
    }

    /// Until the Job has ended, or is gone already.
    async fn until_job_ended(&self, name: &str) {
        let ended = |job: Option<&Job>| {
            let status = job.and_then(|job| job.status.as_ref());
            let conditions = status.and_then(|status| status.conditions.as_ref());
            job.is_none() || conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Complete"))
        };
        let waiting = tokio::time::timeout(PATIENCE, await_condition(self.jobs.clone(), name, ended));
        assert!(waiting.await.is_ok(), "{name}: {:#?}\n{}", self.jobs.get(name).await, self.pair.logs());
    }

    /// One stop of the leader, at `step` of an object of its own; whether there was another leader then.
    async fn round(&self, name: &str, step: Step, stop: Stop) -> bool {
        let leader = self.pair.leader(None).await;
        self.create(name).await;
        let runs = |object: &Value| rank(object) > 0;
        let taken_on = |object: &Value| object["metadata"]["finalizers"].to_string().contains(FINALIZER);
        match step {
            Step::Created => {}
            Step::Seen => self.until(name, taken_on).await,
            Step::Running => self.until(name, runs).await,
            Step::Ended => {
                self.until(name, runs).await;
                self.until_job_ended(name).await;
            }
            Step::Told => self.until(name, |object| rank(object) == 2).await,
        }
        let succeeded = self.pair.stop(leader, stop, || {}).await;
        self.until(name, |object| rank(object) == 2).await;
        succeeded
    }

    /// What must be true of all that was seen, and of what is left.
    async fn judge(&self, names: &[String]) {
        for name in names {
            let gone = await_condition(self.jobs.clone(), name, |job: Option<&Job>| job.is_none());
            let gone = tokio::time::timeout(PATIENCE, gone).await;
            assert!(gone.is_ok(), "the Job {name} stays\n{}", self.pair.logs());
        }
        let pods: Api<Pod> = Api::namespaced(self.pair.client.clone(), NAMESPACE);
        let emptied = async {
            while !pods.list(&ListParams::default()).await.unwrap().items.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, emptied).await.is_ok(), "Pods stay\n{}", self.pair.logs());
        let jobs = self.seen_jobs.all();
        for name in names {
            let uids: BTreeSet<_> = jobs[name].iter().map(|job| job["metadata"]["uid"].to_string()).collect();
            assert_eq!(uids.len(), 1, "{name} had several Jobs\n{}", self.pair.logs());
        }
        let statuses = self.statuses.all();
        for name in names {
            let seen = &statuses[name];
            for pair in seen.windows(2) {
                let [old, new] = pair else { continue };
                let changed = rank(old) == 2 && old["status"]["status"] != new["status"]["status"];
                assert!(rank(old) <= rank(new) && !changed, "{name} went back: {old:#} {new:#}");
            }
            let last = &seen.last().unwrap()["status"];
            assert_eq!(last["status"], "Completed", "{name}: {last:#}\n{}", self.pair.logs());
        }
        let files = self.sshd.files();
        assert_eq!(files.len(), names.len(), "{files:?}");
    }
}

fn rank(object: &Value) -> u8 {
    match object["status"]["status"].as_str() {
        Some("Running") => 1,
        Some("Completed" | "Failed") => 2,
        _ => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_35_a_leader_that_stands_still_gathers_nothing_twice() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let mut row = Row::short(35, "leaders stopped in the middle of a MustGather");
    let place = Place::new(sshd, None).await;
    let short = place.round("g0", Step::Seen, Stop::For(Duration::from_millis(200))).await;
    let long = place.round("g1", Step::Running, Stop::UntilSucceeded).await;
    // Who was stopped hears of it, and whoever leads now goes on.
    let after = place.round("g2", Step::Ended, Stop::For(Duration::ZERO)).await;
    place.judge(&["g0", "g1", "g2"].map(str::to_owned)).await;
    let successions = u8::from(short) + u8::from(long) + u8::from(after);
    row.measured(json!({"stops": 3, "successions": successions, "secondJobs": 0, "secondUploads": 0}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "hours: scripts/soak runs it"]
async fn row_35_at_full_length() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let mut row = Row::full(35, "leaders of MustGathers stopped for 0 to 60 s", percent());
    let (rounds, clocks) = (scaled(200), has_clocks());
    let place = Place::new(sshd, Some("-30s").filter(|_| clocks)).await;
    let (mut names, mut successions) = (Vec::new(), 0);
    for (number, length) in lengths(rounds).into_iter().enumerate() {
        let name = format!("g{number}");
        let step = STEPS[number % STEPS.len()];
        successions += usize::from(place.round(&name, step, Stop::For(length)).await);
        names.push(name);
    }
    place.judge(&names).await;
    row.measured(json!({"stops": rounds, "successions": successions, "secondJobs": 0, "secondUploads": 0,
        "clocksApart": if clocks { "30 s" } else { "no faketime: none" }}));
}
