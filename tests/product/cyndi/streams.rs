//! Connections that end in the middle of a comparison (CY §9, 4): an error, whatever had come by then, and never fewer ids.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use admit::controllers::cyndi::crd::CyndiPipelineSpec;
use admit::controllers::cyndi::database::{DatabaseError, Pools};
use admit::controllers::cyndi::sql::{self, Selection};
use admit::controllers::cyndi::validation::{Source, validate};
use admit::controllers::cyndi::verdict::Verdict;
use admit::controllers::kit::retry::Remedy;

use super::database::{INSIGHTS, config, secret, table};
use crate::support::cluster::PATIENCE;
use crate::support::postgres::{PASSWORD, Pair};
use crate::support::relay::Relay;

/// Hosts of both sides. Their ids take some pages of a stream.
const HOSTS: u32 = 2_000;
/// Places in a stream at which it is cut.
const CUTS: u64 = 24;

/// Which side of a comparison has the trouble.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Inventory,
    Table,
}

/// A pair whose sides are the same.
async fn equal() -> Option<Pair> {
    let pair = Pair::new().await?;
    let ids = format!(
        "SELECT (lpad(to_hex(n), 16, '0') || '0000000000000000')::uuid FROM generate_series(1, {HOSTS}) n"
    );
    let inventory = pair.admin(&pair.inventory).await;
    inventory.batch_execute(&format!("INSERT INTO hosts (id) {ids}")).await.unwrap();
    let mut app =
        Pools::default().open(&secret(&pair, &pair.app, PASSWORD, "1"), &config(&[])).await.unwrap();
    let made = sql::make_table(&table("1_5"), &config(&[]), &CyndiPipelineSpec::default()).unwrap();
    app.make(&made).await.unwrap();
    let fill = format!(
        "INSERT INTO inventory.hosts_v1_5 SELECT i.*, '', 'h', '{{}}', now(), now(), now(), '{{}}', NULL, 'r', '{{}}', '', '{{}}', now() \
         FROM ({ids}) i"
    );
    pair.app().await.batch_execute(&fill).await.unwrap();
    Some(pair)
}

/// Compares; the side with the trouble is reached over `port`.
async fn compared(pair: &Pair, troubled: Side, port: u16) -> Result<Verdict, DatabaseError> {
    let pools = Pools::default();
    let through = |side: Side| Pair {
        port: if side == troubled { port } else { pair.port },
        ca: pair.ca.clone(),
        app: pair.app.clone(),
        inventory: pair.inventory.clone(),
        user: pair.user.clone(),
        databases: None,
    };
    let of_inventory = secret(&through(Side::Inventory), &pair.inventory, PASSWORD, "1");
    let of_app = secret(&through(Side::Table), &pair.app, PASSWORD, "1");
    let (mut inventory, mut app) =
        (pools.open(&of_inventory, &config(&[])).await?, pools.open(&of_app, &config(&[])).await?);
    let hosts = sql::hosts_of_inventory(&config(&[]), &CyndiPipelineSpec::default(), INSIGHTS).unwrap();
    let rows = Selection::all(&table("1_5"));
    let of_inventory = Source { database: &mut inventory, selection: &hosts };
    let of_table = Source { database: &mut app, selection: &rows };
    validate(of_inventory, of_table, 100).await
}

#[tokio::test]
async fn cy_09_04_a_connection_that_is_cut_is_an_error_wherever_it_is_cut() {
    let Some(pair) = equal().await else { return };
    let server: SocketAddr = ([127, 0, 0, 1], pair.port).into();
    for side in [Side::Inventory, Side::Table] {
        let whole = Relay::cutting_answers(server, Vec::new()).await;
        let verdict = compared(&pair, side, whole.address.port()).await.unwrap();
        assert_eq!((verdict.table, verdict.mismatches), (u64::from(HOSTS), 0));
        let bytes = whole.answered.load(Ordering::SeqCst);
        assert!(bytes > u64::from(HOSTS) * 22, "{bytes} are not the ids of {HOSTS} hosts");
        for part in 1..=CUTS {
            // The last one a few bytes before the end.
            let cut = (bytes * part / CUTS).min(bytes - 7);
            let relay = Relay::cutting_answers(server, vec![cut, cut]).await;
            let compared = tokio::time::timeout(PATIENCE, compared(&pair, side, relay.address.port())).await;
            let error = compared.unwrap_or_else(|_| panic!("{side:?}, cut at {cut} of {bytes}: it hangs"));
            let error = error.map(|verdict| format!("{verdict:?}")).unwrap_err();
            assert_eq!(error.remedy(), Remedy::Wait, "{side:?}, cut at {cut} of {bytes}: {error}");
        }
    }
}

/// The server gives up on one side while the other one is waited for: a restart, an administrator, or
/// `idle_in_transaction_session_timeout`.
#[tokio::test]
async fn cy_09_04_a_transaction_that_the_server_ends_is_an_error() {
    let Some(pair) = equal().await else { return };
    let port = pair.port;
    let (holder, admin) = (pair.admin(&pair.inventory).await, pair.admin(&pair.app).await);
    // Nobody counts hosts now, and the snapshot of the table waits in its transaction.
    holder.batch_execute("BEGIN; LOCK TABLE hosts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let ending = async {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = $1 AND application_name = 'admit-cyndi' AND state = 'idle in transaction'";
        while admin.query_one(end, &[&pair.app]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let both = async { tokio::join!(compared(&pair, Side::Table, port), ending) };
    let (ended, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();
    let error = ended.map(|verdict| format!("{verdict:?}")).unwrap_err();
    assert_eq!(error.remedy(), Remedy::Wait, "{error}");
    assert_eq!(compared(&pair, Side::Table, port).await.unwrap().mismatches, 0, "and well again");
}
