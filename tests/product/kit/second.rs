//! The second controller of `src/controllers/README.md`: it labels each ConfigMap with what its data says, and runs.

use std::time::Duration;

use admit::controllers::kit::manager::Manager;
use admit_apiserver::Server;
use kube::api::PostParams;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::repository::root;
use crate::support::cluster::PATIENCE;

// README begins
use admit::controllers::kit::controller::{Controller, Failure, Next, Reconcile, Surroundings};
use admit::controllers::kit::definition::Definition;
use admit::controllers::kit::events::Events;
use admit::controllers::kit::manager::{Member, Term};
use admit::controllers::kit::retry::{Remedy, remedy};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};

struct Labeller(Client);

#[derive(Debug, thiserror::Error)]
#[error("cannot label: {0}")]
struct Error(#[from] kube::Error);

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        remedy(&self.0)
    }
}

impl Reconcile for Labeller {
    type Object = ConfigMap;
    type Error = Error;

    async fn reconcile(&self, map: &ConfigMap) -> Result<Next, Error> {
        let wanted = map.data.as_ref().and_then(|data| data.get("team"));
        if wanted.is_some() && wanted != map.labels().get("team") {
            let maps: Api<ConfigMap> = Api::namespaced(self.0.clone(), &map.namespace().unwrap_or_default());
            let patch = Patch::Merge(serde_json::json!({"metadata": {"labels": {"team": wanted}}}));
            maps.patch(&map.name_any(), &PatchParams::default(), &patch).await?;
        }
        Ok(Next::Settled)
    }
}

fn member(client: Client) -> Member {
    let needs: Vec<Definition> = Vec::new(); // Definition::of::<K>() for a kind of your own
    Member::new("labeller", client.clone(), needs, move |term: Term| {
        let client = client.clone();
        async move {
            let around = Surroundings::of(&term, Events::new(client.clone(), "labeller"));
            let controller = Controller::new("labeller", Api::all(client.clone()), Default::default());
            controller.run(Labeller(client).into(), around, term.stop).await;
            Ok::<_, std::convert::Infallible>(())
        }
    })
}
// README ends

#[tokio::test]
async fn the_second_controller_of_the_readme_works() {
    let server = Server::builder().build().await.unwrap();
    let client = Client::new(server.router(), "default");
    let stop = CancellationToken::new();
    let running =
        tokio::spawn(Manager::new(client.clone(), None).with(member(client.clone())).run(stop.clone()));
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let map = json!({"metadata": {"name": "a"}, "data": {"team": "blue"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let labelled = |map: Option<&ConfigMap>| map.is_some_and(|map| map.labels().contains_key("team"));
    let waiting = kube::runtime::wait::await_condition(maps, "a", labelled);
    let map = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(map.labels()["team"], "blue");
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(30), running).await.unwrap().unwrap().unwrap();
}

#[test]
fn the_readme_shows_what_is_compiled_here() {
    let readme = std::fs::read_to_string(root().join("src/controllers/README.md")).unwrap();
    let shown = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let own = include_str!("second.rs");
    let compiled = own.split("// README begins\n").nth(1).unwrap().split("// README ends").next().unwrap();
    assert_eq!(shown, compiled, "copy the lines between the marks of this file into the README");
}
