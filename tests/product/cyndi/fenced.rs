//! Databases are changed by those only who lead: what a process that stood still has begun, it does not end.

use std::time::Duration;

use admit::controllers::cyndi::crd::CyndiPipelineSpec;
use admit::controllers::cyndi::database::{Database, DatabaseError, Pools};
use admit::controllers::cyndi::plan::View;
use admit::controllers::cyndi::sql;
use admit::controllers::kit::fence::Fence;
use tokio::time::{Instant, timeout};

use super::database::{config, secret, table};
use crate::support::cluster::PATIENCE;
use crate::support::postgres::{PASSWORD, Pair};

fn statements(version: &str) -> Vec<String> {
    sql::make_table(&table(version), &config(&[]), &CyndiPipelineSpec::default()).unwrap()
}

async fn open(pools: &Pools, pair: &Pair) -> Database {
    pools.open(&secret(pair, &pair.app, PASSWORD, "1"), &config(&[])).await.unwrap()
}

#[tokio::test]
async fn row_35_a_transaction_of_a_process_that_leads_no_more_is_given_up() {
    let Some(pair) = Pair::new().await else { return };
    let fence = Fence::default();
    fence.open(Instant::now() + PATIENCE);
    let pools = Pools::behind(Some(fence.clone()));
    let mut app = open(&pools, &pair).await;
    app.make(&statements("1_5")).await.unwrap();
    app.show(&table("1_5")).await.unwrap();

    // In the middle of a transaction, another takes over.
    let admin = pair.admin(&pair.app).await;
    admin.batch_execute("SELECT pg_advisory_lock(35)").await.unwrap();
    let mut stopped = statements("1_6");
    stopped.push("SELECT pg_advisory_xact_lock(35)".to_owned());
    let mut other = open(&pools, &pair).await;
    let making = tokio::spawn(async move { other.make(&stopped).await });
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let waiting = async {
        while admin.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap();
    fence.close();
    admin.batch_execute("SELECT pg_advisory_unlock(35)").await.unwrap();
    let given_up = |error: DatabaseError| assert!(matches!(error, DatabaseError::NotLeading(_)), "{error}");
    given_up(making.await.unwrap().unwrap_err());

    given_up(app.make(&statements("1_7")).await.unwrap_err());
    given_up(app.drop_view().await.unwrap_err());
    given_up(app.drop_table(&table("1_5")).await.unwrap_err());
    given_up(app.set_password(&pair.user, "SCRAM-SHA-256$").await.unwrap_err());
    assert_eq!(app.tables().await.unwrap(), [table("1_5")]);
    assert_eq!(app.view().await.unwrap(), View::Shows(table("1_5")));

    fence.open(Instant::now() + Duration::from_secs(60));
    app.make(&statements("1_7")).await.unwrap();
    app.show(&table("1_7")).await.unwrap();
    assert_eq!(app.view().await.unwrap(), View::Shows(table("1_7")));
}
