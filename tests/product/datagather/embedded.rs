//! A gathering against the embedded API server with the shipped definition: its schema and transition rules judge
//! every status that the controller writes, and refuse what users must not do to one.

use std::time::Duration;

use admit::controllers::datagather::crd::{DataGather, DataGatherSpec, State};
use admit::controllers::datagather::{Settings, run};
use admit::controllers::kit::clock::Clock;
use admit_apiserver::Server;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, ObjectList, Patch, PatchParams, PostParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::repository::root;
use crate::support::cluster::PATIENCE;

pub(super) async fn cluster() -> Client {
    let server = Server::builder().build().await.unwrap();
    let client = Client::new(server.router(), "default");
    let text = std::fs::read_to_string(root().join("deploy/crds/datagathers.yaml")).unwrap();
    let definition: Value = serde_saphyr::from_str(&text).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let established = await_condition(definitions, "datagathers.insights.openshift.io", is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
    client
}

async fn ended(api: &Api<DataGather>, name: &str) -> DataGather {
    let over = |object: Option<&DataGather>| {
        let state = object.and_then(|object| object.status.as_ref()?.data_gather_state);
        matches!(state, Some(State::Completed | State::Failed))
    };
    tokio::time::timeout(PATIENCE, await_condition(api.clone(), name, over)).await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn dg_07_the_server_takes_every_status_and_refuses_to_turn_one_back() {
    let client = cluster().await;
    let dir = tempfile::tempdir().unwrap();
    let shutdown = CancellationToken::new();
    let controller = tokio::spawn(run(client.clone(), Settings::new(dir.path()), shutdown.clone()));

    let api: Api<DataGather> = Api::all(client);
    api.create(&PostParams::default(), &DataGather::new("first", DataGatherSpec::default())).await.unwrap();
    let first = ended(&api, "first").await;
    let status = first.status.unwrap();
    assert_eq!(status.data_gather_state, Some(State::Completed), "{status:#?}");
    assert!(status.gatherers.len() >= 8);
    let with_data = status.gatherers.iter().filter(|row| row.conditions[0].status == "True").count();
    assert!(with_data >= 2, "{}", serde_json::to_string(&status.gatherers).unwrap());

    for (patch, refusal) in [
        (json!({"dataGatherState": "Pending"}), "state cannot be changed backwards"),
        (json!({"startTime": "2020-01-01T00:00:00Z"}), "startTime is immutable once set"),
        (json!({"finishTime": null}), "cannot remove attributes from status"),
    ] {
        let patch = Patch::Merge(json!({"status": patch}));
        let error = api.patch_status("first", &PatchParams::default(), &patch).await.unwrap_err();
        assert!(error.to_string().contains(refusal), "{error}");
    }
    api.delete("first", &DeleteParams::default()).await.unwrap();

    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(30), controller).await.unwrap().unwrap().unwrap();
}

/// The server names what comes round, and lets go of it by the uid that was meant.
#[tokio::test]
async fn the_server_takes_a_periodic_gathering_and_gives_it_up_a_day_later() {
    let client = cluster().await;
    let dir = tempfile::tempdir().unwrap();
    let api: Api<DataGather> = Api::all(client.clone());
    let until = async |look: fn(&ObjectList<DataGather>) -> bool| {
        let looking = async {
            loop {
                let found = api.list(&ListParams::default()).await.unwrap();
                if look(&found) {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap()
    };
    let hour = Duration::from_hours(1);
    // The first is due once the cluster is as old as the interval.
    let settings = Settings {
        gather_every: Some(hour),
        clock: Clock::new(move || jiff::Timestamp::now() + hour),
        ..Settings::new(dir.path())
    };
    let (shutdown, tomorrow) = (CancellationToken::new(), CancellationToken::new());
    let controller = tokio::spawn(run(client.clone(), settings, shutdown.clone()));
    let found = until(|found| found.iter().any(DataGather::has_ended)).await;
    assert!(found.items[0].name_any().starts_with("periodic-gathering-"), "{:?}", found.items);
    shutdown.cancel();
    controller.await.unwrap().unwrap();

    let settings = Settings {
        prune_after: Some(24 * hour),
        clock: Clock::new(move || jiff::Timestamp::now() + 25 * hour),
        ..Settings::new(dir.path())
    };
    let controller = tokio::spawn(run(client, settings, tomorrow.clone()));
    until(|found| found.items.is_empty()).await;
    tomorrow.cancel();
    controller.await.unwrap().unwrap();
}
