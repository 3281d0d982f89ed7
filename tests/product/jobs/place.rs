//! A running `admit up`, and what the tests of Jobs ask of it.

use std::future::ready;
use std::path::PathBuf;
use std::process::Command;

use futures::TryStreamExt as _;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Event, Pod, PodStatus};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::running::{Running, Workplace};
use crate::support::cluster::PATIENCE;

pub(super) struct Place {
    pub(super) place: Workplace,
    /// Ended with the value.
    running: Running,
    pub(super) client: Client,
    pub(super) jobs: Api<Job>,
    pub(super) pods: Api<Pod>,
}

impl Place {
    pub(super) async fn new() -> Self {
        Self::with(&[]).await
    }

    pub(super) async fn with(args: &[&str]) -> Self {
        let place = Workplace::new();
        let running = place.start_with(args);
        Self::on(place, running).await
    }

    /// What a command starts that runs `admit up` in the end.
    pub(super) async fn launched(mut command: Command) -> Self {
        let place = Workplace::new();
        command.current_dir(place.path());
        let running = place.launch(command);
        Self::on(place, running).await
    }

    /// Starts it again on the same folder, once `end` has ended it.
    pub(super) async fn restarted(self, end: impl FnOnce(Running)) -> Self {
        let Self { place, running, .. } = self;
        end(running);
        let running = place.start();
        Self::on(place, running).await
    }

    async fn on(place: Workplace, running: Running) -> Self {
        let client = place.client().await;
        let (jobs, pods) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        Self { place, running, client, jobs, pods }
    }

    pub(super) async fn job(&self, name: &str, spec: Value) -> Job {
        let job = json!({"metadata": {"name": name}, "spec": spec});
        self.jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap()
    }

    pub(super) async fn pod(&self, name: &str, spec: Value) -> Pod {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    pub(super) async fn put<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope> + serde::de::DeserializeOwned,
        K: serde::Serialize + Clone + std::fmt::Debug,
        <K as kube::Resource>::DynamicType: Default,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Waits until a Job's status is as wanted.
    pub(super) async fn until_job(&self, name: &str, wanted: impl Fn(&JobStatus) -> bool) -> JobStatus {
        let holds = |job: Option<&Job>| job.and_then(|job| job.status.as_ref()).is_some_and(&wanted);
        match timeout(PATIENCE, await_condition(self.jobs.clone(), name, holds)).await {
            Ok(job) => job.unwrap().unwrap().status.unwrap(),
            Err(_) => panic!("gave up waiting:\n{}\n{}", self.told().await, self.place.log()),
        }
    }

    /// The same of a Pod.
    pub(super) async fn until_pod(&self, name: &str, wanted: impl Fn(&PodStatus) -> bool) -> PodStatus {
        let holds = |pod: Option<&Pod>| pod.and_then(|pod| pod.status.as_ref()).is_some_and(&wanted);
        match timeout(PATIENCE, await_condition(self.pods.clone(), name, holds)).await {
            Ok(pod) => pod.unwrap().unwrap().status.unwrap(),
            Err(_) => panic!("gave up waiting:\n{}\n{}", self.told().await, self.place.log()),
        }
    }

    pub(super) async fn ended(&self, pod: &str) -> PodStatus {
        self.until_pod(pod, |status| ["Succeeded", "Failed"].contains(&phase(status))).await
    }

    /// The Pods of a Job by age.
    pub(super) async fn pods_of(&self, job: &str) -> Vec<Pod> {
        let label = ListParams::default().labels(&format!("job-name={job}"));
        self.pods.list(&label).await.unwrap().items
    }

    /// Waits until a Job has a Pod.
    pub(super) async fn pod_of(&self, job: &str) -> Pod {
        self.until_job(job, |status| status.active == Some(1) || status.failed.is_some()).await;
        self.pods_of(job).await.remove(0)
    }

    /// The events on an object: reason and text.
    pub(super) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let events = events.list(&about).await.unwrap().items;
        events
            .into_iter()
            .map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default()))
            .collect()
    }

    /// Waits for an event on an object.
    pub(super) async fn until_event(&self, name: &str, wanted: impl Fn(&str, &str) -> bool) {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let about = format!("involvedObject.name={name}");
        let watched = WatchParams::default().fields(&about);
        let found = async {
            let stream = events.watch(&watched, "0").await.unwrap();
            let found = stream.try_filter(|event| {
                ready(match event {
                    WatchEvent::Added(event) | WatchEvent::Modified(event) => wanted(
                        event.reason.as_deref().unwrap_or_default(),
                        event.message.as_deref().unwrap_or_default(),
                    ),
                    _ => false,
                })
            });
            futures::pin_mut!(found);
            found.try_next().await.unwrap().is_some()
        };
        let found = timeout(PATIENCE, found).await;
        assert!(matches!(found, Ok(true)), "{:?}\n{}", self.events(name).await, self.place.log());
    }

    /// Every status that a Job has, until it is over.
    pub(super) fn statuses(&self, name: &str) -> impl Future<Output = Vec<JobStatus>> + use<> {
        let (jobs, name) = (self.jobs.clone(), name.to_owned());
        async move {
            let watched = WatchParams::default().fields(&format!("metadata.name={name}"));
            let mut stream = Box::pin(jobs.watch(&watched, "0").await.unwrap());
            let mut seen: Vec<JobStatus> = Vec::new();
            while let Some(event) = stream.try_next().await.unwrap() {
                let (WatchEvent::Added(job) | WatchEvent::Modified(job)) = event else { continue };
                let status = job.status.unwrap_or_default();
                if seen.last() != Some(&status) {
                    seen.push(status);
                }
                if seen.last().is_some_and(is_over) {
                    break;
                }
            }
            seen
        }
    }

    /// The folder of a Pod in the state folder.
    pub(super) fn folder(&self, pod: &Pod) -> PathBuf {
        self.place.path().join(".admit/local/pods").join(pod.uid().unwrap())
    }

    /// Everything that is known, for a test that gives up.
    async fn told(&self) -> String {
        let jobs = self.jobs.list(&ListParams::default()).await.map(|jobs| jobs.items).unwrap_or_default();
        let pods = self.pods.list(&ListParams::default()).await.map(|pods| pods.items).unwrap_or_default();
        let jobs = jobs.iter().map(|job| json!({"job": job.name_any(), "status": job.status}));
        let pods = pods.iter().map(|pod| json!({"pod": pod.name_any(), "status": pod.status}));
        jobs.chain(pods).map(|one| format!("{one:#}")).collect::<Vec<_>>().join("\n")
    }
}

pub(super) fn phase(status: &PodStatus) -> &str {
    status.phase.as_deref().unwrap_or_default()
}

/// The conditions that hold, with their reasons.
pub(super) fn holding(status: &JobStatus) -> Vec<(&str, &str)> {
    let conditions = status.conditions.iter().flatten().filter(|condition| condition.status == "True");
    conditions.map(|one| (one.type_.as_str(), one.reason.as_deref().unwrap_or_default())).collect()
}

pub(super) fn is_over(status: &JobStatus) -> bool {
    holding(status).iter().any(|(kind, _)| ["Complete", "Failed"].contains(kind))
}

/// A Pod of one container that runs a script of this machine's shell.
pub(super) fn script(text: &str) -> Value {
    json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [{
        "name": "main", "image": "admit:0.1.0", "command": ["/bin/sh", "-c", text],
    }]})
}
