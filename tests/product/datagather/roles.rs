//! The roles of `deploy/` for gatherings, in the process of the controllers and as Jobs: every verb of them is used, and none is
//! missing. Both settings are played over the same cluster, in which there is something to read of all that a gathering reads.

use std::sync::Arc;
use std::time::Duration;

use admit::controllers::datagather::{JobSettings, RunnerKind, Settings, TokenSettings, member, run_one};
use admit::controllers::kit::clock::Clock;
use admit::controllers::kit::manager::Manager;
use admit_apiserver::{LogError, LogOptions, LogStream, PodLogs};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::job_crash::handed;
use super::rows_of_gatherers::{pod, running};
use super::runs::{Bench, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::mustgather::{complete, failed};
use crate::support::cluster::PATIENCE;
use crate::support::refusing::refusing;
use crate::support::rights::{exactly, exactly_by};
use crate::support::shipped::{api, api_in, documents, rights_with_jobs};
use crate::support::testcluster::{NAMESPACE, Process, TestCluster};

const CONTROLLER: &str = "admit-datagather";
const READ: &str = "openshift-dns";
/// Of each group of operators' configuration a kind, besides those that have a definition here anyway.
const OPERATORS: [&str; 5] = [
    "controlplane.operator.openshift.io",
    "imageregistry.operator.openshift.io",
    "ingress.operator.openshift.io",
    "network.operator.openshift.io",
    "samples.operator.openshift.io",
];

/// A line for each container.
#[derive(Debug)]
struct Lines;

impl PodLogs for Lines {
    fn open(&self, _pod: &Value, options: LogOptions) -> Result<LogStream, LogError> {
        let line = Bytes::from(format!("{} says so\n", options.container));
        Ok(stream::iter([Ok(line)]).boxed())
    }
}

fn definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": version, "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {"group": group, "scope": "Cluster", "names": {"kind": kind, "plural": plural}, "versions": [version]},
    })
}

/// The cluster, the service that archives go to, and a folder for them.
struct Place {
    cluster: TestCluster,
    service: FakeIngress,
    bench: Bench,
    gathers: Api<DynamicObject>,
}

impl Place {
    async fn new(cluster: TestCluster) -> Self {
        cluster.set_pod_logs(Arc::new(Lines));
        let rule = json!({"namespace": READ, "pod_name_regex": ".", "messages": ["says"], "previous": false});
        let asked = json!({"version": "1", "conditional_gathering_rules": [], "container_logs": [rule]});
        let answers = Answers {
            report: (200, r#"{"requestID":"abc","report":[]}"#.to_owned()),
            gathering: (200, asked.to_string()),
            ..Answers::accept("abc")
        };
        let service = FakeIngress::start(answers).await;
        let gathers = cluster.objects("insights.openshift.io", "v1alpha1", "DataGather");
        let place = Self { cluster, service, bench: Bench::new(), gathers };
        place.define().await;
        place.fill().await;
        place
    }

    async fn define(&self) {
        let others = OPERATORS.map(|group| (group, "v1", "Config", "configs"));
        for (group, version, kind, plural) in [
            ("operator.openshift.io", "v1", "InsightsOperator", "insightsoperators"),
            ("image.openshift.io", "v1", "Image", "images"),
        ]
        .into_iter()
        .chain(others)
        {
            self.cluster.define(&definition(group, version, kind, plural)).await;
        }
        self.cluster.define(&documents("deploy/crds/insightsdatagathers.yaml")[0]).await;
    }

    /// Something of all that is read, beside what a gathering finds to be missing.
    async fn fill(&self) {
        for namespace in [READ, "kube-system"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let namespaces = api(&self.cluster.admin, "v1", "Namespace");
            if namespaces.get_opt(namespace).await.unwrap().is_none() {
                self.cluster.create(&object).await;
            }
        }
        let system = api(&self.cluster.admin, "v1", "Namespace").get("kube-system").await.unwrap();
        self.service.know(&system.metadata.uid.unwrap());
        let operator = json!({"apiVersion": "operator.openshift.io/v1", "kind": "InsightsOperator",
            "metadata": {"name": "cluster"}, "spec": {}});
        self.cluster.create(&operator).await;
        let of = |group: &str, resource: &str, name: &str| json!({"group": group, "resource": resource, "name": name});
        let mut related: Vec<_> = OPERATORS.iter().map(|group| of(group, "configs", "cluster")).collect();
        related.push(of("operator.openshift.io", "insightsoperators", "cluster"));
        related.push(of("", "namespaces", READ));
        let says = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "m",
            "lastTransitionTime": "2026-11-22T10:00:00Z"})
        };
        let ails = [says("Available", "True"), says("Progressing", "False"), says("Degraded", "True")];
        let versions = json!([{"name": "operator", "version": "4.18.0"}]);
        self.put(
            "config.openshift.io/v1",
            "ClusterOperator",
            None,
            &json!({"metadata": {"name": "dns"}, "spec": {},
            "status": {"conditions": ails, "relatedObjects": related, "versions": versions}}),
        )
        .await;
        self.put("v1", "Pod", Some(READ), &pod(READ, "bad", &["panics"], &running(&["panics"], 3))).await;
        let address = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "net", "namespace": "kube-system"}, "data": {"ip": "10.1.2.3"}});
        self.cluster.create(&address).await;
        let login = json!({"auths": {"cloud.openshift.com": {"auth": "canary-4711"}}}).to_string();
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "pull-secret", "namespace": "openshift-config"},
            "data": {".dockerconfigjson": STANDARD.encode(login)}});
        self.cluster.create(&secret).await;
        for document in refused() {
            self.cluster.create(&document).await;
        }
    }

    /// With its status.
    async fn put(&self, version: &str, kind: &str, namespace: Option<&str>, object: &Value) {
        let mut whole = json!({"apiVersion": version, "kind": kind});
        whole.as_object_mut().unwrap().extend(object.as_object().unwrap().clone());
        self.cluster.create(&whole).await;
        let objects = match namespace {
            Some(namespace) => api_in(&self.cluster.admin, version, kind, namespace),
            None => api(&self.cluster.admin, version, kind),
        };
        let patch = Patch::Merge(json!({"status": object["status"]}));
        let name = object["metadata"]["name"].as_str().unwrap();
        objects.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// What a gathering is to do, three hours from now.
    fn settings(&self) -> Settings {
        let mut settings = uploading(&self.bench, &self.service);
        settings.namespace = NAMESPACE.to_owned();
        settings.namespace_prefix = "openshift-".to_owned();
        settings.cluster_id = None;
        settings.release = Some("4.18.0".to_owned());
        settings.upload.as_mut().unwrap().token = TokenSettings::PullSecret;
        settings.obfuscation.networks = vec!["10.0.0.0/8".parse().unwrap()];
        settings.obfuscation.always = true;
        let rules = format!("https://{}/api/gathering/v2/%s/gathering_rules", self.service.address);
        settings.remote = Some(rules.parse().unwrap());
        settings.clock = Clock::new(|| Timestamp::now() + Duration::from_hours(3));
        settings
    }

    /// The controller, with its ClusterOperator, while `play` is under way.
    async fn run(&self, account: &Process, settings: Settings, play: impl Future<Output = ()>) {
        let recorder = member(account.client.clone(), settings).unwrap();
        let stop = CancellationToken::new();
        let running =
            tokio::spawn(Manager::new(account.client.clone(), None).with(recorder).run(stop.clone()));
        play.await;
        stop.cancel();
        timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    }

    async fn ask(&self, name: &str) {
        let object = json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": name}, "spec": {}});
        self.cluster.create(&object).await;
    }

    async fn until_state(&self, name: &str, state: &str) {
        let so = |object: &Value| object["status"]["dataGatherState"] == state;
        self.cluster.until(&self.gathers, name, so).await;
    }

    async fn until_copied(&self) {
        let operators = api(&self.cluster.admin, "operator.openshift.io/v1", "InsightsOperator");
        let copied = |object: &Value| object["status"]["gatherStatus"].is_object();
        self.cluster.until(&operators, "cluster", copied).await;
    }

    async fn until_reported(&self) {
        let operators = self.cluster.objects("config.openshift.io", "v1", "ClusterOperator");
        self.cluster.until(&operators, "insights", |it| it["status"]["conditions"].is_array()).await;
    }

    /// Whose gathering is the periodic one, once it was asked for.
    async fn periodic(&self) -> String {
        let named = |list: Vec<DynamicObject>| {
            list.into_iter()
                .filter_map(|object| object.metadata.name)
                .find(|name| name.starts_with("periodic-gathering-"))
        };
        let found = timeout(PATIENCE, async {
            loop {
                let listed = self.gathers.list(&ListParams::default()).await.unwrap();
                if let Some(name) = named(listed.items) {
                    return name;
                }
                tokio::task::yield_now().await;
            }
        });
        found.await.unwrap()
    }

    async fn end_refusal(&self) {
        let bindings =
            api(&self.cluster.admin, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding");
        bindings.delete("refusing", &DeleteParams::default()).await.unwrap();
    }
}

/// Denies all that is said of one gathering, and of another that it runs: the event that tells it is told again.
fn refused() -> [Value; 2] {
    let expression = "object.metadata.name != 'refused' && (object.metadata.name != 'unsaid' || object.status.dataGatherState != 'Running')";
    refusing("insights.openshift.io", "datagathers/status", "UPDATE", expression)
}

/// Waits until the process has asked for it.
async fn asked(process: &Process, verb: &str, resource: &str) {
    let waiting = async {
        while !process.wire.asked().iter().any(|it| (it.verb, &*it.resource) == (verb, resource)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| {
        panic!("nobody asked to {verb} {resource}: {:#?}", process.wire.asked());
    });
}

/// Gatherings that come round and that are asked for, one of which is interrupted, and what becomes of them when they are old.
#[tokio::test(flavor = "multi_thread")]
async fn every_verb_of_the_roles_is_used_in_process_and_none_is_missing() {
    let place = Place::new(TestCluster::new().await).await;
    let account = place.cluster.process(CONTROLLER);
    let periodic = Settings { gather_every: Some(Duration::from_hours(2)), ..place.settings() };
    place
        .run(&account, periodic, async {
            place.ask("refused").await;
            asked(&account, "patch", "events").await;
            place.end_refusal().await;
            let name = place.periodic().await;
            place.until_state(&name, "Completed").await;
            place.until_copied().await;
            place.until_reported().await;
        })
        .await;
    let later = place.settings();
    place
        .run(&account, later, async {
            place.service.hold(true);
            place.ask("interrupted").await;
            place.until_state("interrupted", "Running").await;
        })
        .await;
    place.service.hold(false);
    let old = Settings { prune_after: Some(Duration::from_hours(1)), ..place.settings() };
    place.run(&account, old, place.cluster.gone(&place.gathers, "interrupted")).await;
    exactly(CONTROLLER, &[&account]);
}

impl Place {
    /// A Job of the controller, once it is there.
    async fn job(&self, name: &str) -> Job {
        let jobs: Api<Job> = Api::namespaced(self.cluster.admin.clone(), NAMESPACE);
        let there = await_condition(jobs, name, |job: Option<&Job>| job.is_some());
        timeout(PATIENCE, there).await.unwrap().unwrap().unwrap()
    }

    async fn says(&self, name: &str, status: Value) {
        let jobs: Api<Job> = Api::namespaced(self.cluster.admin.clone(), NAMESPACE);
        let patch = Patch::Merge(json!({"status": status}));
        jobs.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// What the container of a Job does, until `over`.
    async fn contained(&self, container: &Process, name: &str, over: impl Future<Output = ()>) {
        let job = self.job(name).await;
        let settings = handed(&self.cluster, &self.bench, &job, self.settings()).await;
        let stop = CancellationToken::new();
        let (client, wanted, stopping) = (container.client.clone(), name.to_owned(), stop.clone());
        let working = tokio::spawn(async move { run_one(client, settings, &wanted, stopping).await });
        over.await;
        stop.cancel();
        timeout(PATIENCE, working).await.unwrap().unwrap().unwrap();
    }
}

/// The same as Jobs: the rights are those of two accounts, of which the controller's does not read the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn every_verb_of_the_roles_is_used_by_jobs_and_none_is_missing() {
    let place = Place::new(TestCluster::with_jobs().await).await;
    let (account, container) = (place.cluster.process(CONTROLLER), place.cluster.process("gather"));
    let by_jobs = || Settings { runner: RunnerKind::Job(JobSettings::new("admit")), ..place.settings() };
    let periodic = Settings { gather_every: Some(Duration::from_hours(2)), ..by_jobs() };
    place
        .run(&account, periodic, async {
            place.ask("refused").await;
            asked(&account, "patch", "events").await;
            place.ask("unsaid").await;
            place.contained(&container, "unsaid", asked(&container, "patch", "events")).await;
            place.end_refusal().await;
            let name = place.periodic().await;
            place.contained(&container, &name, place.until_state(&name, "Completed")).await;
            place.says(&name, complete()).await;
            place.until_copied().await;
            place.until_reported().await;
            place.ask("interrupted").await;
            place.service.hold(true);
            place.contained(&container, "interrupted", place.until_state("interrupted", "Running")).await;
            place.service.hold(false);
            place.says("interrupted", failed()).await;
        })
        .await;
    // One that no DataGather takes along.
    let left = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "left", "namespace": NAMESPACE, "labels": {"insights-gathering": ""}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    place.cluster.create(&left).await;
    let old = Settings { prune_after: Some(Duration::from_hours(1)), ..by_jobs() };
    place
        .run(&account, old, async {
            place.cluster.gone(&place.gathers, "interrupted").await;
            asked(&account, "delete", "jobs").await;
        })
        .await;
    let rights = rights_with_jobs();
    exactly_by(&rights, (NAMESPACE, CONTROLLER), &[&account]);
    exactly_by(&rights, (NAMESPACE, "gather"), &[&container]);
}
