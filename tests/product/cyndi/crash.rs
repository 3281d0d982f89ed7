//! Controllers that die at any of their writes (CY §9, 7): the next ones leave one table and one connector, and a view that shows what
//! was valid.

use admit::controllers::cyndi::Settings;
use futures::future::join_all;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::bench::{ACCOUNT, Bench, RefusedNothing as _, Status, manager};
use crate::soak::{percent, scaled};
use crate::support::postgres::Pair;
use crate::support::reliability::Row;
use crate::support::testcluster::Moment;

/// From the creation of a pipeline over a refresh to its end.
async fn play(bench: &Bench, reader: &Reader) {
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1, 2]).await;
    bench.until_shown(started.table()).await;
    bench.change(&json!({"refresh": "now"})).await;
    let again =
        bench.until(|status| status.state() == "INITIAL_SYNC" && status.table() != started.table()).await;
    bench.pair.fill(again.table(), [1, 2]).await;
    bench.until_shown(again.table()).await;
    bench.until_there(&["hosts", again.table()], &[again.connector()]).await;
    reader.leave();
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
        let died = join_all((first..first + AT_ONCE).map(|number| dies_at(number, moment(number), 0))).await;
        if !died.contains(&true) {
            assert!(first > 8, "{first} writes are not those of a pipeline");
            return;
        }
    }
    panic!("more than {TOO_MANY} writes");
}

#[tokio::test]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_34_pipelines_at_full_length() {
    let mut row = Row::full(34, "pipelines whose controllers die at each write", percent());
    if Bench::new().await.is_none() {
        return;
    }
    let (seeds, mut points) = (scaled(20), 0);
    for seed in 1..=u64::try_from(seeds).unwrap() {
        for first in (0..TOO_MANY).step_by(AT_ONCE / 2) {
            let numbers =
                (first..first + AT_ONCE / 2).flat_map(|it| [(it, Moment::Before), (it, Moment::After)]);
            let died = join_all(numbers.map(|(number, moment)| dies_at(number, moment, seed))).await;
            points = points.max(first + died.iter().filter(|died| **died).count() / 2);
            if !died.contains(&true) {
                break;
            }
        }
    }
    assert!(points > 8, "{points} writes are not those of a pipeline");
    row.measured(
        json!({"pointsOfPipelines": points, "moments": 2, "seeds": seeds, "orphans": 0, "failedReads": 0}),
    );
}

/// An application that reads the view all the time, from when it is there first.
pub(super) struct Reader {
    left: CancellationToken,
    reading: JoinHandle<Result<u64, String>>,
}

impl Reader {
    pub(super) async fn of(pair: &Pair) -> Self {
        let (client, left) = (pair.admin(&pair.app).await, CancellationToken::new());
        let leaving = left.clone();
        let reading = tokio::spawn(async move {
            let mut reads = 0;
            while !leaving.is_cancelled() {
                let read = client.query_one("SELECT count(*) FROM inventory.hosts", &[]).await;
                match read.map(|row| row.get::<_, i64>(0)) {
                    Ok(2) => reads += 1,
                    Err(_) if reads == 0 => tokio::task::yield_now().await,
                    other => return Err(format!("after {reads} reads: {other:?}")),
                }
            }
            Ok(reads)
        });
        Self { left, reading }
    }

    /// It reads no more: the view may go.
    fn leave(&self) {
        self.left.cancel();
    }

    /// It has read, and what was valid each time.
    pub(super) async fn read_well(self, told: &str) {
        self.leave();
        let read = self.reading.await.unwrap();
        assert!(read.as_ref().is_ok_and(|reads| *reads > 0), "{told}: {read:?}");
    }
}

/// Plays with a death, and has others go on; whether there is such a write.
async fn dies_at(number: usize, moment: Moment, seed: u64) -> bool {
    let bench = Bench::new().await.unwrap();
    bench.pair.hosts([1, 2]).await;
    bench.create(&json!({})).await;
    let reader = Reader::of(&bench.pair).await;
    let process = bench.cluster.process(ACCOUNT);
    if seed > 0 {
        process.wire.shuffle(seed);
    }
    process.wire.crash_at(number, moment);
    let client = process.client.clone();
    let work = async move {
        let run = manager(&client, &Settings::default()).reports(false).run(CancellationToken::new());
        drop(run.await);
    };
    let died = process.until_death(work, play(&bench, &reader)).await.is_none();
    process.refused_nothing();
    if died {
        let running = bench.start();
        recover(&bench, &reader).await;
        running.stop(&bench).await;
    }
    let told = format!("{number} {moment:?}, seed {seed}");
    reader.read_well(&told).await;
    let (relations, connectors) = (bench.pair.relations().await, bench.connectors().await);
    assert!(relations.is_empty() && connectors.is_empty(), "{told}: {relations:?} {connectors:?}");
    died
}

/// Brings a pipeline to its end from wherever the dead left it.
async fn recover(bench: &Bench, reader: &Reader) {
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
        reader.leave();
        bench.pipelines.delete("app", &DeleteParams::default()).await.unwrap();
    }
    bench.cluster.gone(&bench.pipelines, "app").await;
}
