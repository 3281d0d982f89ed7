//! The InsightsDataGather `cluster` as it is shipped: what somebody types at `admit up` in any of its versions is what the controllers
//! follow, and `None` stops what comes round and nothing else.

use std::process::Command;
use std::time::Duration;

use admit::controllers::datagather::crd::DataGather;
use admit::controllers::datagather::{Settings, run};
use admit::controllers::kit::clock::Clock;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::embedded::cluster;
use crate::running::Workplace;
use crate::support::cluster::PATIENCE;
use crate::support::shipped::{create, documents};
use crate::tour::has_kubectl;

fn configurations(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("config.openshift.io", version, "InsightsDataGather");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "insightsdatagathers"))
}

fn mode(mode: &str) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "InsightsDataGather", "metadata": {"name": "cluster"},
        "spec": {"gatherConfig": {"gatherers": {"mode": mode}}},
    })
}

async fn has_ended(client: &Client, name: &str) {
    let ended = |object: Option<&DataGather>| object.is_some_and(DataGather::has_ended);
    let over = await_condition(Api::<DataGather>::all(client.clone()), name, ended);
    tokio::time::timeout(PATIENCE, over).await.unwrap().unwrap();
}

async fn ask(client: &Client, name: &str) {
    let object = DataGather::new(name, Default::default());
    Api::<DataGather>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    has_ended(client, name).await;
}

#[tokio::test]
async fn none_stops_what_comes_round_and_nothing_that_is_asked_for() {
    let client = cluster().await;
    for definition in documents("deploy/crds/insightsdatagathers.yaml") {
        create(&client, &definition).await;
    }
    create(&client, &mode("None")).await;
    let dir = tempfile::tempdir().unwrap();
    let hour = Duration::from_hours(1);
    // A gathering is due from the start: the cluster is as old as the interval.
    let settings = Settings {
        gather_every: Some(hour),
        clock: Clock::new(move || jiff::Timestamp::now() + hour),
        ..Settings::new(dir.path())
    };
    let gatherings: Api<DataGather> = Api::all(client.clone());
    let start = || {
        let stop = CancellationToken::new();
        (tokio::spawn(run(client.clone(), settings.clone(), stop.clone())), stop)
    };
    let (controller, stop) = start();
    ask(&client, "asked-for").await;
    let names =
        async || gatherings.list(&ListParams::default()).await.unwrap().into_iter().map(|it| it.name_any());
    assert_eq!(names().await.collect::<Vec<_>>(), ["asked-for"]);
    stop.cancel();
    controller.await.unwrap().unwrap();

    let all = Patch::Merge(json!({"spec": mode("All")["spec"]}));
    configurations(&client, "v1").patch("cluster", &PatchParams::default(), &all).await.unwrap();
    let (controller, stop) = start();
    let periodic = async {
        loop {
            if let Some(name) = names().await.find(|name| name.starts_with("periodic-gathering-")) {
                return name;
            }
            tokio::task::yield_now().await;
        }
    };
    let name = tokio::time::timeout(PATIENCE, periodic).await.unwrap();
    has_ended(&client, &name).await;
    stop.cancel();
    controller.await.unwrap().unwrap();
}

/// What a command prints.
fn kubectl(place: &Workplace, args: &[&str]) -> String {
    let output =
        Command::new("kubectl").arg("--kubeconfig").arg(place.kubeconfig()).args(args).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&printed));
    String::from_utf8(printed).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_says_in_an_old_version_counts_in_admit_up() {
    if !has_kubectl() {
        return;
    }
    let place = Workplace::new();
    let running = place.start();
    let old = json!({
        "apiVersion": "config.openshift.io/v1alpha1", "kind": "InsightsDataGather", "metadata": {"name": "cluster"},
        "spec": {"gatherConfig": {"disabledGatherers": ["all"], "dataPolicy": "ObfuscateNetworking"}},
    });
    let file = place.path().join("configuration.json");
    std::fs::write(&file, old.to_string()).unwrap();
    kubectl(&place, &["apply", "-f", file.to_str().unwrap()]);
    let shown = |version: &str| {
        let what = format!("insightsdatagathers.{version}.config.openshift.io");
        let spec = kubectl(&place, &["get", &what, "cluster", "-o", "jsonpath={.spec.gatherConfig}"]);
        serde_json::from_str::<Value>(&spec).unwrap()
    };
    let newest = json!({"dataPolicy": ["ObfuscateNetworking"], "gatherers": {"mode": "None"}});
    assert_eq!((shown("v1"), shown("v1alpha2")), (newest.clone(), newest));
    assert_eq!(shown("v1alpha1"), old["spec"]["gatherConfig"]);
    assert!(running.terminate().success(), "{}", place.log());

    // The controllers look anew when they start, and every ten minutes.
    let running = place.start();
    let client = place.client().await;
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterOperator");
    let operators: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let disabled = |object: Option<&DynamicObject>| {
        let conditions = object.and_then(|object| object.data.pointer("/status/conditions")?.as_array());
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == "Disabled"
                && condition["status"] == "True"
                && condition["reason"] == "ByConfiguration"
        })
    };
    let told = await_condition(operators.clone(), "insights", disabled);
    if tokio::time::timeout(PATIENCE, told).await.is_err() {
        panic!("{:#?}\n{}", operators.get("insights").await, place.log());
    }
    ask(&client, "asked-for").await;
    assert!(running.terminate().success(), "{}", place.log());
}

#[test]
fn admit_check_judges_an_object_in_the_version_that_policies_name() {
    let folder = tempfile::tempdir().unwrap();
    let of = |policy: &Value| {
        json!({
            "apiVersion": "insights.openshift.io/v1", "kind": "DataGather", "metadata": {"name": "sample"},
            "spec": {"gatherers": {"mode": "All"}, "dataPolicy": policy},
        })
    };
    let file = |name: &str, object: &Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, object.to_string()).unwrap();
        path
    };
    let old = file("old.json", &of(&json!(["ObfuscateNetworking"])));
    for (new, refused, said) in [
        (of(&json!(["ObfuscateNetworking"])), false, "unchanged"),
        (
            json!({"apiVersion": "insights.openshift.io/v1", "kind": "DataGather", "metadata": {"name": "sample"},
            "spec": {"gatherers": {"mode": "All"}}}),
            true,
            "spec is immutable",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["check", "-f"])
            .arg(file("new.json", &new))
            .arg("--old")
            .arg(&old)
            .args(["--policies", "deploy/crds/datagathers.yaml", "--policies", "policies/datagather"])
            .current_dir(crate::repository::root())
            .output()
            .unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(i32::from(refused)), "{told}");
        assert!(told.contains(said), "{told}");
    }
}
