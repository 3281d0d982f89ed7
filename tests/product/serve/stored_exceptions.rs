//! Exceptions that lie in a cluster, at the webhook: in force when they are made, over when they end or are gone, and never what a
//! definition refuses. The embedded API server stands for the cluster, and is one that serves them where `admit up` is asked.

use std::fs;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client as KubeClient;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::server::{Place, Serving, policy, review};
use crate::repository::root;
use crate::running::Workplace;
use crate::support::cluster::{FakeCluster, PATIENCE};
use crate::support::https::Client;

const IN_NAMESPACES: &str = "/apis/policies.admit.dev/v1/policyexceptions";
const OF_CLUSTER: &str = "/apis/policies.admit.dev/v1/clusterpolicyexceptions";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn exception(name: &str, namespace: &str, until: &str) -> Value {
    json!({
        "apiVersion": "policies.admit.dev/v1", "kind": "PolicyException",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"policies": ["a"], "names": ["c*"], "until": until, "reason": "it is being moved"},
    })
}

fn exceptions(client: &KubeClient, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("policies.admit.dev", "v1", "PolicyException");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

async fn create(api: &Api<DynamicObject>, object: Value) -> Result<DynamicObject, kube::Error> {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
}

async fn ask(client: &mut Client) -> Value {
    let answered = client.post("/validate", review("u", &json!({"v": "bad"}))).await.unwrap();
    answered.json()["response"].clone()
}

/// The first answer that is wanted.
async fn until(serving: &Serving, client: &mut Client, wanted: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let answer = ask(client).await;
            if wanted(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    let found = timeout(PATIENCE, asking).await;
    found.unwrap_or_else(|_| panic!("the answer does not change:\n{}", serving.log()))
}

fn is_allowed(answer: &Value) -> bool {
    answer["allowed"] == true
}

/// Installs the definitions that the program ships.
async fn define(client: &KubeClient) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for plural in ["policyexceptions", "clusterpolicyexceptions"] {
        let text = fs::read_to_string(root().join(format!("deploy/crds/{plural}.yaml"))).unwrap();
        let definition = serde_saphyr::from_str(&text).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exceptions_of_a_cluster_begin_when_they_are_made_and_end() {
    let cluster = Workplace::new();
    let _running = cluster.start_with(&["--crds", "deploy/crds/mustgathers.yaml"]);
    let kube = cluster.client().await;
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    let kubeconfig = cluster.kubeconfig().display().to_string();
    // Nothing is defined yet, and the webhook serves.
    let serving = place.start(&["--kubeconfig", &kubeconfig, "--cluster-exceptions"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let denied = ask(&mut client).await;
    assert!(!is_allowed(&denied) && denied.get("warnings").is_none(), "{denied}");

    define(&kube).await;
    let (elsewhere, here) = (exceptions(&kube, "default"), exceptions(&kube, "n"));
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(kube.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    create(&elsewhere, exception("elsewhere", "default", "2999-12-31")).await.unwrap();
    serving.until("/metrics", |text| text.contains("admit_exceptions{state=\"in_force\"} 1\n")).await;
    assert!(!is_allowed(&ask(&mut client).await), "it is about requests of its own namespace");

    create(&here, exception("move", "n", "2999-12-31")).await.unwrap();
    let answer = until(&serving, &mut client, is_allowed).await;
    let told = "exception 'n/move' lets it through until 3000-01-01T00:00:00Z: it is being moved";
    assert!(answer["warnings"][0].as_str().unwrap().ends_with(told), "{answer}");
    assert_eq!(answer["auditAnnotations"]["exception.admit.dev.a"], told, "{answer}");
    let metrics = serving.observed("/metrics").await.1;
    assert!(metrics.contains("admit_excepted_total{policy=\"a\"}"), "{metrics}");

    // It ends at its time, and nothing else happens.
    let soon = Timestamp::try_from(SystemTime::now() + Duration::from_secs(1)).unwrap();
    let shorter = Patch::Merge(json!({"spec": {"until": format!("{soon:.0}")}}));
    here.patch("move", &PatchParams::default(), &shorter).await.unwrap();
    let ended = until(&serving, &mut client, |answer| !is_allowed(answer)).await;
    assert!(ended["warnings"][0].as_str().unwrap().contains("its exception has ended"), "{ended}");

    let longer = Patch::Merge(json!({"spec": {"until": "2999-12-31"}}));
    here.patch("move", &PatchParams::default(), &longer).await.unwrap();
    until(&serving, &mut client, is_allowed).await;
    here.delete("move", &DeleteParams::default()).await.unwrap();
    let gone = until(&serving, &mut client, |answer| !is_allowed(answer)).await;
    assert!(gone.get("warnings").is_none(), "{gone}");
    assert!(serving.terminate().success());
}

/// Without the flag nothing in the cluster is an exception.
#[tokio::test(flavor = "multi_thread")]
async fn exceptions_of_a_cluster_are_asked_for() {
    let cluster = FakeCluster::new(&[IN_NAMESPACES, OF_CLUSTER, DEFINITIONS]);
    cluster.put(IN_NAMESPACES, exception("move", "n", "2999-12-31"));
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    place.write("kubeconfig", &cluster.serve().await);
    let serving = place.start(&["--kubeconfig", "kubeconfig"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    assert!(!is_allowed(&ask(&mut client).await));
    assert_eq!(cluster.count(&http::Method::GET, IN_NAMESPACES), 0);
    let without = place.fails(&["--cluster-exceptions"]);
    assert_eq!(without.status.code(), Some(2));
    let told = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(told.contains("--cluster-exceptions needs --kubeconfig or --in-cluster"), "{told}");
}

/// Of too many the newest are left out, and what another definition let in is told; both are counted.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_and_malformed_exceptions_let_nothing_through() {
    let cluster = FakeCluster::new(&[IN_NAMESPACES, OF_CLUSTER, DEFINITIONS]);
    for number in 0..205 {
        let mut one = exception(&format!("e{number:03}"), "n", "2999-12-31");
        one["metadata"]["creationTimestamp"] =
            format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60).into();
        // Only the very last is about the request.
        one["spec"]["names"] = json!([if number == 204 { "c" } else { "other" }]);
        cluster.put(IN_NAMESPACES, one);
    }
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    place.write("kubeconfig", &cluster.serve().await);
    let serving = place.start(&["--kubeconfig", "kubeconfig", "--cluster-exceptions"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    serving.until("/metrics", |text| text.contains("admit_exceptions{state=\"left_out\"} 5\n")).await;
    assert!(!is_allowed(&ask(&mut client).await));
    assert!(serving.log().contains("the newest let nothing through"), "{}", serving.log());

    // Room is made by those that are gone, and what is malformed takes none.
    cluster.change(IN_NAMESPACES, "e000", |object| object["spec"]["until"] = "never".into());
    for number in 1..5 {
        cluster.delete(IN_NAMESPACES, &format!("e{number:03}"));
    }
    until(&serving, &mut client, is_allowed).await;
    serving.until("/metrics", |text| text.contains("admit_exceptions{state=\"malformed\"} 1\n")).await;
    let told = "an exception of the cluster cannot be read and lets nothing through";
    assert_eq!(serving.log().matches(told).count(), 1, "{}", serving.log());
}

/// What `admit up` decides by its files, exceptions in its server let through; what its definitions refuse never comes there.
#[tokio::test(flavor = "multi_thread")]
async fn admit_up_serves_exceptions_and_honours_them() {
    let place = Workplace::new();
    fs::write(place.path().join("a.yaml"), policy("a", "object.data.v != 'bad'")).unwrap();
    let _running = place.start_with(&["--policies", "a.yaml"]);
    let kube = place.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(kube.clone(), "default");
    let map = |name: &str| {
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"v": "bad"}})).unwrap()
    };
    let post = PostParams::default();
    let refused = maps.create(&post, &map("c-1")).await.unwrap_err().to_string();
    assert!(refused.contains("a says no"), "{refused}");

    let here = exceptions(&kube, "default");
    for (field, value, told) in [
        ("until", json!("soon"), "must be a date (2026-12-31, which it includes, in UTC) or a time"),
        ("until", json!("2027-02-30"), "must be in the calendar"),
        ("policies", json!(["*"]), "must be the name of a policy; patterns are for names and users"),
        ("reason", json!(" "), "must say why, which every report shows"),
        ("names", json!([]), "should have at least 1 items"),
    ] {
        let mut malformed = exception("malformed", "default", "2999-12-31");
        malformed["spec"][field] = value;
        let refused = create(&here, malformed).await.unwrap_err().to_string();
        assert!(refused.contains(told), "{field}: {refused}");
    }

    create(&here, exception("move", "default", "2999-12-31")).await.unwrap();
    let letting = async {
        while maps.create(&post, &map("c-1")).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, letting).await.unwrap();
    assert!(maps.create(&post, &map("d-1")).await.is_err(), "it names others");
    // One of the cluster is about all namespaces.
    let kind = GroupVersionKind::gvk("policies.admit.dev", "v1", "ClusterPolicyException");
    let anywhere: Api<DynamicObject> = Api::all_with(kube.clone(), &ApiResource::from_gvk(&kind));
    let mut for_all = exception("all", "", "2999-12-31");
    for_all["kind"] = "ClusterPolicyException".into();
    for_all["metadata"] = json!({"name": "all"});
    for_all["spec"]["names"] = json!(["d-*"]);
    for_all["spec"]["namespaces"] = json!(["def*"]);
    create(&anywhere, for_all).await.unwrap();
    let letting = async {
        while maps.create(&post, &map("d-1")).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, letting).await.unwrap();

    here.delete("move", &DeleteParams::default()).await.unwrap();
    let refusing = async {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        while maps.create(&dry, &map("c-2")).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, refusing).await.unwrap();
}
