//! Controllers that die at any of their writes (CY §9, 7): the next ones leave one table and one connector, and a view that shows what
//! was valid.

use admit::controllers::cyndi::Settings;
use futures::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::bench::{ACCOUNT, Bench, RefusedNothing as _, Status, manager};
use crate::support::testcluster::Moment;

/// From the creation of a pipeline over a refresh to its end.
async fn play(bench: &Bench) {
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1, 2]).await;
    bench.until_shown(started.table()).await;
    bench.change(&json!({"refresh": "now"})).await;
    let again =
        bench.until(|status| status.state() == "INITIAL_SYNC" && status.table() != started.table()).await;
    bench.pair.fill(again.table(), [1, 2]).await;
    bench.until_shown(again.table()).await;
    bench.until_there(&["hosts", again.table()], &[again.connector()]).await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
}

/// Plays at a time: each waits most of its time.
const AT_ONCE: usize = 10;
/// More writes than the play has.
const TOO_MANY: usize = 60;

/// Before a write everything is as after the one in front of it, but for what databases were told in between: each write is the last
/// one once, and every second is lost.
#[tokio::test]
async fn cy_09_07_a_death_at_any_write_leaves_nothing_behind() {
    if Bench::new().await.is_none() {
        return;
    }
    for first in (0..TOO_MANY).step_by(AT_ONCE) {
        let moment = |number: usize| if number.is_multiple_of(2) { Moment::After } else { Moment::Before };
        let died = join_all((first..first + AT_ONCE).map(|number| dies_at(number, moment(number)))).await;
        if !died.contains(&true) {
            assert!(first > 8, "{first} writes are not those of a pipeline");
            return;
        }
    }
    panic!("more than {TOO_MANY} writes");
}

/// Plays with a death, and has others go on; whether there is such a write.
async fn dies_at(number: usize, moment: Moment) -> bool {
    let bench = Bench::new().await.unwrap();
    bench.pair.hosts([1, 2]).await;
    bench.create(&json!({})).await;
    let process = bench.cluster.process(ACCOUNT);
    process.wire.crash_at(number, moment);
    let client = process.client.clone();
    let work = async move {
        let run = manager(&client, &Settings::default()).reports(false).run(CancellationToken::new());
        drop(run.await);
    };
    let died = process.until_death(work, play(&bench)).await.is_none();
    process.refused_nothing();
    if died {
        let running = bench.start();
        recover(&bench).await;
        running.stop(&bench).await;
    }
    let (relations, connectors) = (bench.pair.relations().await, bench.connectors().await);
    assert!(
        relations.is_empty() && connectors.is_empty(),
        "{number} {moment:?}: {relations:?} {connectors:?}"
    );
    died
}

/// Brings a pipeline to its end from wherever the dead left it.
async fn recover(bench: &Bench) {
    use kube::api::DeleteParams;

    if bench.pipelines.get_opt("app").await.unwrap().is_none() {
        return;
    }
    let object = bench.pipelines.get("app").await.unwrap();
    if object.metadata.deletion_timestamp.is_none() {
        // Whatever table is being filled: it becomes valid, and is shown, unless another one takes its place.
        let shown =
            |status: &Status| status.state() == "VALID" && status.text("activeTableName") == status.table();
        let mut status = bench.until(|status| status.state() != "NEW").await;
        while !shown(&status) {
            bench.pair.try_fill(status.table(), [1, 2]).await;
            let table = status.table().to_owned();
            let on = |status: &Status| status.state() != "NEW" && (shown(status) || status.table() != table);
            status = bench.until(on).await;
        }
        bench.until_there(&["hosts", status.table()], &[status.connector()]).await;
        bench.pipelines.delete("app", &DeleteParams::default()).await.unwrap();
    }
    bench.cluster.gone(&bench.pipelines, "app").await;
}
