//! `admit up --demo`: each state of the status keepers can be watched, and nothing is left over when it has ended.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::TcpStream;
use std::time::Duration;

use admit::controllers::clusteroperator::crd::ClusterOperator;
use admit::controllers::cyndi::crd::CyndiPipeline;
use admit::controllers::cyndi::state::State;
use admit::controllers::observability::crd::ObservabilityAddon;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::running::Workplace;
use crate::support::cluster::PATIENCE;
use crate::support::postgres;

const SPOKE: &str = "open-cluster-management-addon-observability";
/// For a few rounds of everything on a busy machine. A bound, not an expectation: one takes half a minute.
const ROUNDS: Duration = Duration::from_mins(4);

const ADD_ON: [&str; 6] = [
    "Available/ForwardSuccessful",
    "Degraded/ForwardFailure",
    "Degraded/UpdateFailure",
    "Disabled/DisabledMetrics",
    "NotSupported/NotSupported",
    "Progressing/UpdateSuccesful",
];

/// Waits until the objects have been in all of the states.
async fn until_seen<K>(api: Api<K>, state: impl Fn(&K) -> String, wanted: &[&str])
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut left: BTreeSet<&str> = wanted.iter().copied().collect();
    let watching = async {
        let mut objects =
            watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        while !left.is_empty() {
            if let Some(Ok(object)) = objects.next().await {
                left.remove(state(&object).as_str());
            }
        }
    };
    let watched = tokio::time::timeout(ROUNDS, watching).await;
    assert!(watched.is_ok(), "never seen: {left:?}");
}

fn of_add_on(object: &ObservabilityAddon) -> String {
    let standard = ["Available", "Degraded", "Progressing", "Disabled", "NotSupported"];
    let told = object.conditions().iter().filter(|it| it.status == "True");
    let mut told = told.filter(|it| standard.contains(&it.type_.as_str()));
    told.next().map(|it| format!("{}/{}", it.type_, it.reason)).unwrap_or_default()
}

fn of_operator(object: &ClusterOperator) -> String {
    let [available, progressing, degraded] =
        ["Available", "Progressing", "Degraded"].map(|type_| object.condition(type_).unwrap_or("-"));
    format!("{} {available} {progressing} {degraded}", object.name_any())
}

/// Where the database of the demo listens, once there is one.
async fn database(client: &Client) -> u16 {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "demo");
    let looking = async {
        loop {
            let found = secrets.get_opt("demo-db").await.unwrap().and_then(|secret| secret.data);
            let port =
                found.and_then(|data| String::from_utf8(data["db.port"].0.clone()).unwrap().parse().ok());
            if let Some(port) = port.filter(|port| listens(*port)) {
                return port;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(ROUNDS, looking).await.unwrap()
}

fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_can_be_watched() {
    let place = Workplace::new();
    let mut command = place.command();
    // Named and not installed, as on a machine that is reached from one where it is.
    command.args(["--demo=1", "--gather-every", "never"]).env("LC_ALL", "xx_XX.UTF-8");
    let running = place.launch(command);
    let client = place.client().await;
    let operators = [
        "demo-reporting False False True",
        "demo-reporting False True False",
        "demo-reporting True False False",
        "demo-reporting True False True",
        "demo-reporting True True False",
        "demo-silent Unknown Unknown Unknown",
    ];
    let add_ons = |namespace: &str| Api::<ObservabilityAddon>::namespaced(client.clone(), namespace);
    let seen = async {
        tokio::join!(
            until_seen(Api::all(client.clone()), of_operator, &operators),
            until_seen(add_ons(SPOKE), of_add_on, &ADD_ON),
            // A copy may skip what passes quickly.
            until_seen(add_ons("cluster1"), of_add_on, &["Available/ForwardSuccessful"]),
        )
    };
    let with_database = postgres::can_be();
    let pipelines: Api<CyndiPipeline> = Api::namespaced(client.clone(), "demo");
    let pipeline = async {
        if with_database {
            let states = ["INITIAL_SYNC", "INVALID", "REMOVED", "VALID"];
            until_seen(pipelines, |object| State::of(object).as_str().to_owned(), &states).await;
        }
    };
    tokio::join!(seen, pipeline);
    let port = if with_database { Some(database(&client).await) } else { None };
    let log = place.log();
    assert!(!log.contains("the demo cannot"), "{log}");
    assert!(running.terminate().success(), "{}", place.log());
    assert!(!port.is_some_and(listens), "the database goes on");
}

/// Whatever ends the program ends its database, and what is left in the folder is taken up by the next demo.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_demo_outlives_it() {
    if !postgres::can_be() {
        return;
    }
    let place = Workplace::new();
    let running = place.start_with(&["--demo=1", "--gather-every", "never"]);
    let client = place.client().await;
    let port = database(&client).await;
    let pipelines = |client: &Client| Api::<CyndiPipeline>::namespaced(client.clone(), "demo");
    let state = |object: &CyndiPipeline| State::of(object).as_str().to_owned();
    until_seen(pipelines(&client), state, &["VALID"]).await;
    running.kill();
    let ending = async {
        while listens(port) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ending).await.expect("the database outlives the program");

    let running = place.start_with(&["--demo=1", "--gather-every", "never"]);
    let client = place.client().await;
    until_seen(pipelines(&client), state, &["INITIAL_SYNC", "INVALID"]).await;
    assert!(running.terminate().success(), "{}", place.log());

    // No pipeline is left that would wait for a database that is gone.
    let running = place.start_with(&["--gather-every", "never"]);
    let client = place.client().await;
    assert_eq!(pipelines(&client).get_opt("demo").await.unwrap().map(|it| it.name_any()), None);
    assert!(running.terminate().success(), "{}", place.log());
}
