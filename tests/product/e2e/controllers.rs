//! `admit controllers` with the rights of the manifests: two replicas under one Lease.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::apiserver::ApiServer;
use super::cluster::{Cluster, data_gather, shipped};

/// A replica; killed when the value goes, if it still runs.
pub(super) struct Replica {
    child: Child,
    archives: String,
}

/// One gathers, is told to stop, and the other goes on.
pub(super) fn follow_one_another(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    let kubeconfig = cluster.as_account("admit-controllers", &shipped("deploy/rbac.yaml"));
    let mut replicas = ["one", "two"].map(|name| Some(Replica::start(&cluster, &kubeconfig, name, &[])));
    gathers(&cluster, "first");
    let led = leader(&replicas);
    replicas[led].take().unwrap().terminated();
    gathers(&cluster, "second");
    let other = replicas[1 - led].take().unwrap();
    assert_eq!(other.archived(), 1);
    other.terminated();
    cluster.works(&["delete", "datagathers", "--all"]);

    // With Jobs, and the rights of manifests for them: what is created there is complete, though nobody runs it here.
    let manifests = cluster.place.path("jobs").display().to_string();
    let generate = ["generate", "manifests", "--set", "runner=job", "--out", &manifests];
    assert!(Command::new(env!("CARGO_BIN_EXE_admit")).args(generate).status().unwrap().success());
    cluster.works(&["apply", "-f", &format!("{manifests}/rbac.yaml")]);
    let jobs = ["--runner", "job", "--job-image", "registry.example/admit:1"];
    let replica = Replica::start(&cluster, &kubeconfig, "three", &jobs);
    create(&cluster, "third");
    let jobs = cluster.until(|| listed(&cluster, "jobs"), |jobs| !jobs.is_empty());
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    assert_eq!(jobs[0]["spec"]["template"]["spec"]["serviceAccountName"], "gather");
    replica.terminated();
    cluster.works(&["delete", "datagathers", "--all"]);
    cluster.works(&["delete", "jobs", "--all", "--namespace=admit-system"]);
}

fn create(cluster: &Cluster<'_>, name: &str) {
    cluster.works(&["create", "-f", &cluster.file(&format!("{name}.json"), &data_gather(name))]);
}

/// Completes, with nothing that it was not allowed to read.
fn gathers(cluster: &Cluster<'_>, name: &str) {
    create(cluster, name);
    let state = "--for=jsonpath={.status.dataGatherState}=Completed";
    cluster.works(&["wait", state, &format!("datagather/{name}"), "--timeout=60s"]);
    let object = cluster.works(&["get", "datagather", name, "--output=json"]);
    let object: Value = serde_json::from_str(&object).unwrap();
    let gatherers = object["status"]["gatherers"].as_array().unwrap();
    assert!(gatherers.len() >= 8, "{gatherers:#?}");
    for gatherer in gatherers {
        let condition = &gatherer["conditions"][0];
        assert!(
            ["GatheredOK", "NoData", "AsExpected"].contains(&condition["reason"].as_str().unwrap()),
            "{gatherer:#}"
        );
    }
    let events = listed(cluster, "events");
    let completed = |event: &&Value| event["reason"] == "DataGatherCompleted";
    assert!(events.iter().any(|event| completed(&event)), "{events:#?}");
}

/// Objects of our namespace, or, of events, of the default one: where those about cluster-scoped objects are.
fn listed(cluster: &Cluster<'_>, plural: &str) -> Vec<Value> {
    let namespace = if plural == "events" { "default" } else { "admit-system" };
    let list = cluster.works(&["get", plural, "--namespace", namespace, "--output=json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// The replica that has kept an archive.
fn leader(replicas: &[Option<Replica>; 2]) -> usize {
    let archived = replicas.each_ref().map(|replica| replica.as_ref().map_or(0, Replica::archived));
    assert!([[0, 1], [1, 0]].contains(&archived), "{archived:?}");
    usize::from(archived == [0, 1])
}

impl Replica {
    pub(super) fn start(cluster: &Cluster<'_>, kubeconfig: &str, name: &str, args: &[&str]) -> Self {
        let archives = cluster.place.path(name).display().to_string();
        let log = fs::File::create(cluster.place.path(&format!("{name}.log"))).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args([
                "controllers",
                "--kubeconfig",
                kubeconfig,
                "--lease-namespace=admit-system",
                "--impersonate=admit-system",
            ])
            .args(["--archive-dir", &archives])
            .args(args)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, archives }
    }

    fn archived(&self) -> usize {
        let entries = Path::new(&self.archives).read_dir().map(Iterator::flatten);
        let names = entries.into_iter().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".tar.gz")).count()
    }

    /// SIGTERM: it gives the Lease up.
    pub(super) fn terminated(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
