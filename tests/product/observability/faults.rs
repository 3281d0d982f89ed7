//! Hubs that are killed and come back, credentials that are rotated, a second writer, and a keeper that dies at any of its writes.

use std::net::SocketAddr;
use std::path::PathBuf;

use admit::controllers::observability::Settings;
use admit::controllers::observability::hub::HubSettings;
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use kube::Client;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::hub_server::{HubServer, write_kubeconfig};
use super::place::{NAME, Place, with_hub};
use super::{HUB, Running, SPOKE, addon, told};
use crate::soak::{percent, scaled};
use crate::support::crashes::everywhere;
use crate::support::reliability::Row;
use crate::support::testcluster::Moment;

const RECONNECTED: &str = "observability_addon_hub_replication_total{result=\"reconnected\"}";
const WRITTEN: &str = "observability_addon_hub_replication_total{result=\"written\"}";

fn settings(kubeconfig: PathBuf) -> Settings {
    let hub = HubSettings { namespace: HUB.to_owned(), kubeconfig: Some(kubeconfig) };
    Settings { hub: Some(hub), ..Settings::new(&SEED) }
}

/// Meanwhile the spoke goes on, and goes through states that lead nowhere from those that the hub has.
#[tokio::test(flavor = "multi_thread")]
async fn ob_09_a_hub_that_is_killed_is_caught_up_with_when_it_comes_back() {
    let (mut hub, spoke, folder) =
        (HubServer::start().await, Place::new().await, tempfile::tempdir().unwrap());
    let kubeconfig = folder.path().join("hub");
    hub.write_kubeconfig(&kubeconfig, "first");
    spoke.create(&addon(SPOKE)).await;
    let account = spoke.account();
    let keeper = Running::start(account.client.clone(), settings(kubeconfig));
    spoke.report(SEED.collector, Meaning::UpdateFailure).await;
    hub.place.until_told(HUB, "Degraded/UpdateFailure").await;
    hub.kill().await;
    spoke.report(SEED.collector, Meaning::UpdateSuccessful).await;
    spoke.until_told(SPOKE, "Progressing/UpdateSuccesful").await;
    spoke.report(SEED.collector, Meaning::ForwardSuccessful).await;
    spoke.until_told(SPOKE, "Available/ForwardSuccessful").await;
    keeper.until_counted(RECONNECTED, |n| n >= 2).await;
    assert_eq!(told(&json!(hub.place.addons(HUB).get(NAME).await.unwrap())), ["Degraded/UpdateFailure"]);
    hub.restart().await;
    hub.place.until_told(HUB, "Available/ForwardSuccessful").await;
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn ob_08_03_credentials_that_a_write_shows_to_be_old_are_read_again() {
    let (hub, spoke, folder) = (HubServer::start().await, Place::new().await, tempfile::tempdir().unwrap());
    let kubeconfig = folder.path().join("hub");
    hub.write_kubeconfig(&kubeconfig, "first");
    spoke.create(&addon(SPOKE)).await;
    let keeper = Running::start(spoke.account().client, settings(kubeconfig.clone()));
    spoke.report(SEED.collector, Meaning::UpdateSuccessful).await;
    hub.place.until_told(HUB, "Progressing/UpdateSuccesful").await;
    hub.rotate("second");
    // The watch goes on; the next write is refused.
    spoke.report(SEED.collector, Meaning::ForwardSuccessful).await;
    keeper.until_counted(RECONNECTED, |n| n >= 1).await;
    hub.write_kubeconfig(&kubeconfig, "second");
    hub.place.until_told(HUB, "Available/ForwardSuccessful").await;
    keeper.end().await;
}

/// Whoever listens there hangs up at once, or after `bytes`.
async fn broken(bytes: &'static [u8]) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // Who hung up first is not told.
            drop(stream.write_all(bytes).await);
        }
    });
    (address, serving)
}

/// However the layers between call it: nobody there, a connection that is cut, another protocol, and half an answer to a write, which
/// comes to light behind everything that looks at answers.
#[tokio::test(flavor = "multi_thread")]
async fn ob_08_05_errors_of_the_network_are_known_by_whatever_name() {
    let (hub, spoke, folder) = (HubServer::start().await, Place::new().await, tempfile::tempdir().unwrap());
    let kubeconfig = folder.path().join("hub");
    let (cut, cutting) = broken(b"").await;
    let (other, speaking) = broken(b"SSH-2.0-OpenSSH_9.2\r\n").await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    spoke.create(&addon(SPOKE)).await;
    spoke.report(SEED.collector, Meaning::UpdateFailure).await;
    for address in [nobody, cut, other] {
        write_kubeconfig(&kubeconfig, address, "first");
        let keeper = Running::start(spoke.account().client, settings(kubeconfig.clone()));
        keeper.until_counted(RECONNECTED, |count| count >= 1).await;
        keeper.end().await;
    }
    hub.write_kubeconfig(&kubeconfig, "first");
    let keeper = Running::start(spoke.account().client, settings(kubeconfig));
    hub.place.until_told(HUB, "Degraded/UpdateFailure").await;
    assert_eq!(keeper.counted(RECONNECTED), None);
    hub.cut_next_write();
    spoke.report(SEED.collector, Meaning::UpdateSuccessful).await;
    keeper.until_counted(RECONNECTED, |count| count >= 1).await;
    spoke.report(SEED.collector, Meaning::ForwardSuccessful).await;
    hub.place.until_told(HUB, "Available/ForwardSuccessful").await;
    keeper.end().await;
    cutting.abort();
    speaking.abort();
}

/// Somebody writes the hub's object all the time.
#[tokio::test(flavor = "multi_thread")]
async fn ob_08_01_conflicts_of_a_second_writer_are_met_by_reading_again() {
    let place = Place::new().await;
    for namespace in [SPOKE, HUB] {
        place.create(&addon(namespace)).await;
    }
    let account = place.account();
    let keeper = Running::start(account.client.clone(), with_hub());
    let api = place.addons(HUB);
    let writing = tokio::spawn(async move {
        for number in 0_u32.. {
            let patch = kube::api::Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
            api.patch(NAME, &kube::api::PatchParams::default(), &patch).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let turns = [
        (Meaning::UpdateSuccessful, "Progressing/UpdateSuccesful"),
        (Meaning::ForwardSuccessful, "Available/ForwardSuccessful"),
        (Meaning::ForwardFailure, "Degraded/ForwardFailure"),
    ];
    for (meaning, wanted) in turns.iter().cycle().take(9) {
        place.report(SEED.collector, *meaning).await;
        place.until_told(HUB, wanted).await;
    }
    writing.abort();
    keeper.until_counted(WRITTEN, |n| n >= 9).await;
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

/// From the hub's wish to the end of both, with a keeper that dies at its write `number`; the name of that write, if it came to it.
async fn dies_at(number: usize, moment: Moment, seed: u64) -> Option<String> {
    let place = Place::new().await;
    place.create(&addon(HUB)).await;
    place.roll_out("metrics-collector-deployment", "one").await;
    let over = async {
        place.until_told(HUB, "Progressing/UpdateSuccesful").await;
        place.report(SEED.collector, Meaning::ForwardFailure).await;
        let hub = place.until_told(HUB, "Degraded/ForwardFailure").await;
        let spoke = place.until_told(SPOKE, "Degraded/ForwardFailure").await;
        assert_eq!(hub.conditions(), spoke.conditions());
        place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
        place.until_gone(HUB).await;
        place.until_gone(SPOKE).await;
    };
    let work = |client: Client| async {
        drop(Running::start(client, with_hub()).task.await);
    };
    let mut over = std::pin::pin!(over);
    let first = place.account();
    first.wire.shuffle(seed);
    first.wire.crash_at(number, moment);
    let lived = first.until_death(work(first.client.clone()), &mut over).await;
    let next = place.account();
    if lived.is_none() {
        next.until_death(work(next.client.clone()), &mut over).await.unwrap();
    }
    let at = first.wire.writes().get(number).cloned();
    for process in [&first, &next] {
        assert_eq!(process.wire.denied(), Vec::<String>::new(), "dead {moment:?} {at:?}");
    }
    at
}

#[tokio::test(flavor = "multi_thread")]
async fn an_add_on_whose_keeper_dies_at_any_write() {
    let points = everywhere(async |number, moment| dies_at(number, moment, 1).await).await;
    assert!(points >= 6, "{points}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_34_add_ons_at_full_length() {
    let mut row = Row::full(34, "keepers of add-ons, dead at each write", percent());
    let (seeds, mut points) = (scaled(20), 0);
    for seed in 1..=u64::try_from(seeds).unwrap() {
        points = everywhere(async |number, moment| dies_at(number, moment, seed).await).await.max(points);
    }
    row.measured(json!({"pointsOfKeepers": points, "moments": 2, "seeds": seeds, "differences": 0}));
}
