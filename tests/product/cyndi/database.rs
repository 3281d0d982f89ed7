//! What is done in databases (CY §4), as the user of an application.

use std::collections::BTreeMap;

use admit::controllers::cyndi::config::Config;
use admit::controllers::cyndi::crd::CyndiPipelineSpec;
use admit::controllers::cyndi::database::{Credentials, Database, DatabaseError, Pools};
use admit::controllers::cyndi::names::{Table, Version};
use admit::controllers::cyndi::plan::View;
use admit::controllers::cyndi::sql::{self, Selection};
use admit::controllers::cyndi::validation::{Source, validate};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::support::canaries::shows;
use crate::support::postgres::{PASSWORD, Pair, uuid};

/// Hosts with an insights id, as the inventory of the tests has them.
pub(super) const INSIGHTS: &str = "canonical_facts ? 'insights_id'";

pub(super) fn secret(pair: &Pair, database: &str, password: &str, version: &str) -> Credentials {
    secret_at(pair, database, password, version, "127.0.0.1")
}

pub(super) fn secret_at(
    pair: &Pair,
    database: &str,
    password: &str,
    version: &str,
    host: &str,
) -> Credentials {
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "app-db", "namespace": database, "uid": "u", "resourceVersion": version},
    }))
    .unwrap();
    let port = pair.port.to_string();
    let pairs = [
        ("db.host", host),
        ("db.port", &*port),
        ("db.name", database),
        ("db.user", &*pair.user),
        ("db.password", password),
    ];
    let data = pairs.map(|(key, value)| (key.to_owned(), k8s_openapi::ByteString(value.as_bytes().to_vec())));
    Credentials::of(&Secret { data: Some(data.into()), ..secret }).unwrap()
}

pub(super) fn config(pairs: &[(&str, &str)]) -> Config {
    let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Config::read("test", &BTreeMap::new(), &data, &CyndiPipelineSpec::default()).unwrap()
}

pub(super) fn table(version: &str) -> Table {
    Version::parse(version).unwrap().table()
}

struct Bench {
    pair: Pair,
    pools: Pools,
}

impl Bench {
    async fn new() -> Option<Self> {
        Some(Self { pair: Pair::new().await?, pools: Pools::default() })
    }

    async fn app(&self) -> Database {
        let credentials = secret(&self.pair, &self.pair.app, PASSWORD, "1");
        self.pools.open(&credentials, &config(&[])).await.unwrap()
    }

    async fn inventory(&self) -> Database {
        let credentials = secret(&self.pair, &self.pair.inventory, PASSWORD, "1");
        self.pools.open(&credentials, &config(&[])).await.unwrap()
    }

    async fn make(&self, version: &str) -> Table {
        let table = table(version);
        let statements = sql::make_table(&table, &config(&[]), &CyndiPipelineSpec::default()).unwrap();
        self.app().await.make(&statements).await.unwrap();
        table
    }
}

#[tokio::test]
async fn cy_04_a_table_has_its_columns_indexes_and_rights() {
    let Some(bench) = Bench::new().await else { return };
    let made = bench.make("1_5").await;
    assert_eq!(bench.app().await.tables().await.unwrap(), [made]);
    let app = bench.pair.admin(&bench.pair.app).await;
    let indexes = "SELECT indexname::text FROM pg_indexes WHERE tablename = 'hosts_v1_5' ORDER BY 1";
    let indexes: Vec<String> = app.query(indexes, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(indexes.len(), 13, "{indexes:?}");
    assert!(indexes.contains(&"hosts_v1_5_system_profile_index".to_owned()));
    let columns = "SELECT string_agg(column_name::text, ',' ORDER BY ordinal_position) FROM information_schema.columns \
                   WHERE table_name = 'hosts_v1_5'";
    let columns: String = app.query_one(columns, &[]).await.unwrap().get(0);
    assert_eq!(
        columns,
        "id,account,display_name,tags,updated,created,stale_timestamp,system_profile,insights_id,reporter,per_reporter_staleness,\
         org_id,groups,last_check_in"
    );
    let readable = "SELECT has_table_privilege('cyndi_reader', 'inventory.hosts_v1_5', 'SELECT')";
    assert!(app.query_one(readable, &[]).await.unwrap().get::<_, bool>(0));
}

/// A statement that fails leaves nothing of the others.
#[tokio::test]
async fn cy_04_a_table_is_made_whole_or_not_at_all() {
    let Some(bench) = Bench::new().await else { return };
    let spec = CyndiPipelineSpec {
        db_table_index_sql: Some("CREATE INDEX a ON inventory.{{.TableName}} (nothing)".to_owned()),
        ..CyndiPipelineSpec::default()
    };
    let statements = sql::make_table(&table("1_5"), &config(&[]), &spec).unwrap();
    let error = bench.app().await.make(&statements).await.unwrap_err().to_string();
    assert_eq!(error, "cannot make the table: column \"nothing\" does not exist (SQLSTATE 42703)");
    assert!(bench.pair.relations().await.is_empty());
}

#[tokio::test]
async fn cy_09_01_tables_with_similar_names_are_not_ours() {
    let Some(bench) = Bench::new().await else { return };
    let app = bench.pair.app().await;
    for name in ["hostsXforeign", "hosts_v2_1", "hosts_v1_x", "hosts_v1_123456789012345678901"] {
        app.batch_execute(&format!("CREATE TABLE inventory.\"{name}\" (id uuid)")).await.unwrap();
    }
    assert_eq!(bench.app().await.tables().await.unwrap(), []);
}

#[tokio::test]
async fn cy_04_the_view_moves_and_its_readers_may_go_on() {
    let Some(bench) = Bench::new().await else { return };
    let (one, two) = (bench.make("1_5").await, bench.make("1_6").await);
    let mut app = bench.app().await;
    assert_eq!(app.view().await.unwrap(), View::Missing);
    for table in [&one, &two] {
        app.show(table).await.unwrap();
        assert_eq!(app.view().await.unwrap(), View::Shows(table.clone()));
    }
    let admin = bench.pair.admin(&bench.pair.app).await;
    let readable = "SELECT has_table_privilege('cyndi_reader', 'inventory.hosts', 'SELECT')";
    assert!(admin.query_one(readable, &[]).await.unwrap().get::<_, bool>(0));
    // What the view shows is not dropped, whoever asks.
    let error = app.drop_table(&two).await.unwrap_err().to_string();
    assert!(error.contains("SQLSTATE 2BP01"), "{error}");
    app.drop_table(&one).await.unwrap();
    app.drop_view().await.unwrap();
    app.drop_table(&two).await.unwrap();
    assert!(bench.pair.relations().await.is_empty());
}

/// Where columns have other names or types, the view is made again, in one transaction.
#[tokio::test]
async fn cy_04_a_view_with_other_columns_is_made_again() {
    let Some(bench) = Bench::new().await else { return };
    let made = bench.make("1_5").await;
    bench.pair.app().await.batch_execute("CREATE VIEW inventory.hosts AS SELECT 1 AS other").await.unwrap();
    let mut app = bench.app().await;
    assert_eq!(app.view().await.unwrap(), View::Other("nothing".to_owned()));
    app.show(&made).await.unwrap();
    assert_eq!(app.view().await.unwrap(), View::Shows(made));
}

/// `information_schema.view_table_usage` shows only tables that one owns.
#[tokio::test]
async fn cy_04_a_table_of_another_role_behind_the_view_is_seen() {
    let Some(bench) = Bench::new().await else { return };
    let made = bench.make("1_5").await;
    let mut app = bench.app().await;
    app.show(&made).await.unwrap();
    let admin = bench.pair.admin(&bench.pair.app).await;
    admin.batch_execute("ALTER TABLE inventory.hosts_v1_5 OWNER TO admin").await.unwrap();
    assert_eq!(app.view().await.unwrap(), View::Shows(made));
}

#[tokio::test]
async fn cy_08_17_a_table_with_the_name_of_the_view_is_an_error() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.app().await.batch_execute("CREATE TABLE inventory.hosts (id uuid)").await.unwrap();
    let error = bench.app().await.view().await.unwrap_err().to_string();
    assert_eq!(error, "inventory.hosts is a table, not a view: drop or rename it");
}

#[tokio::test]
async fn cy_04_ids_are_compared_in_snapshots_and_by_thresholds() {
    let Some(bench) = Bench::new().await else { return };
    let made = bench.make("1_5").await;
    bench.pair.hosts([1, 2, 3, 4, 5, 2000]).await;
    bench.pair.fill("hosts_v1_5", [1, 2, 3, 4, 6]).await;
    let (mut inventory, mut app) = (bench.inventory().await, bench.app().await);
    let mut compared = async |insights_only: bool, threshold: i64| {
        let spec = CyndiPipelineSpec { insights_only, ..CyndiPipelineSpec::default() };
        let hosts = sql::hosts_of_inventory(&config(&[]), &spec, INSIGHTS).unwrap();
        let rows = Selection::all(&made);
        let of_inventory = Source { database: &mut inventory, selection: &hosts };
        let of_table = Source { database: &mut app, selection: &rows };
        validate(of_inventory, of_table, threshold).await.unwrap()
    };
    let verdict = compared(false, 60).await;
    assert_eq!(verdict.message(), "Validation succeeded - 3 hosts (50.00%) do not match");
    let difference = verdict.difference.unwrap();
    assert_eq!((difference.left.shown, difference.right.shown), (vec![uuid(5), uuid(2000)], vec![uuid(6)]));
    let verdict = compared(true, 39).await;
    assert_eq!(verdict.message(), "Validation failed - 2 hosts (40.00%) do not match");
    bench.pair.fill("hosts_v1_5", 10..20).await;
    let verdict = compared(false, 100).await;
    assert_eq!((verdict.valid, verdict.difference), (false, None));
}

/// Conditions are run in transactions that cannot change anything, and one at a time.
#[tokio::test]
async fn cy_09_03_conditions_of_filters_change_nothing() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1, 2]).await;
    let admin = bench.pair.admin(&bench.pair.inventory).await;
    let function = "CREATE FUNCTION bad() RETURNS boolean LANGUAGE sql VOLATILE SECURITY DEFINER AS 'DELETE FROM hosts; SELECT true'";
    admin.batch_execute(function).await.unwrap();
    let filter = |clause: &str| CyndiPipelineSpec {
        additional_filters: vec![[("where".to_owned(), clause.to_owned())].into()],
        ..CyndiPipelineSpec::default()
    };
    let hosts = sql::hosts_of_inventory(&config(&[]), &filter("bad()"), INSIGHTS).unwrap();
    let error = bench.inventory().await.count(&hosts).await.unwrap_err().to_string();
    assert!(error.contains("read-only transaction (SQLSTATE 25006)"), "{error}");
    let left: i64 = admin.query_one("SELECT count(*) FROM hosts", &[]).await.unwrap().get(0);
    assert_eq!(left, 2);
}

#[tokio::test]
async fn cy_04_a_password_that_is_rotated_is_taken_from_the_next_secret() {
    let Some(bench) = Bench::new().await else { return };
    drop(bench.app().await);
    let admin = bench.pair.admin(&bench.pair.app).await;
    admin
        .batch_execute(&format!("ALTER ROLE {} PASSWORD 'canary-second-8812'", bench.pair.user))
        .await
        .unwrap();
    let end = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{}'",
        bench.pair.user
    );
    admin.batch_execute(&end).await.unwrap();
    let old = secret(&bench.pair, &bench.pair.app, PASSWORD, "1");
    // The connection of the pool may be found dead only when it is used; the one made in its place is refused.
    let refused = bench.pools.open(&old, &config(&[])).await.unwrap_err();
    assert!(matches!(refused, DatabaseError::Password(_)), "{refused}");
    assert!(!refused.to_string().contains("canary"), "{refused}");
    let new = secret(&bench.pair, &bench.pair.app, "canary-second-8812", "2");
    bench.pools.open(&new, &config(&[])).await.unwrap().tables().await.unwrap();
}

#[tokio::test]
async fn cy_03_connections_are_secured_as_the_mode_says() {
    let Some(bench) = Bench::new().await else { return };
    let ca = bench.pair.ca.to_str().unwrap();
    let encrypted = async |mode: &str, root: Option<&str>, host: &str| {
        let mut pairs = vec![("db.ssl.mode", mode)];
        pairs.extend(root.map(|root| ("db.ssl.root.cert", root)));
        let credentials = secret_at(&bench.pair, &bench.pair.app, PASSWORD, "1", host);
        let opened = bench.pools.open(&credentials, &config(&pairs)).await;
        drop(opened.map_err(|error| error.to_string())?);
        let admin = bench.pair.admin(&bench.pair.app).await;
        let query = format!(
            "SELECT bool_or(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = '{}'",
            bench.pair.user
        );
        let found = admin.query_one(&query, &[]).await.unwrap();
        bench.pools.clear();
        Ok::<bool, String>(found.get::<_, Option<bool>>(0).unwrap_or_default())
    };
    assert_eq!(encrypted("disable", None, "127.0.0.1").await, Ok(false));
    assert_eq!(encrypted("require", None, "127.0.0.1").await, Ok(true));
    assert_eq!(encrypted("verify-ca", Some(ca), "127.0.0.1").await, Ok(true));
    assert_eq!(encrypted("verify-full", Some(ca), "localhost").await, Ok(true));
    assert!(encrypted("verify-full", Some(ca), "127.0.0.1").await.is_err());
    let other = tempfile::NamedTempFile::new().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut stranger = rcgen::CertificateParams::new(Vec::new()).unwrap();
    stranger.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    std::fs::write(other.path(), stranger.self_signed(&key).unwrap().pem()).unwrap();
    for mode in ["require", "verify-ca", "verify-full"] {
        let refused = encrypted(mode, other.path().to_str(), "localhost").await;
        assert!(refused.is_err(), "{mode} takes a certificate of a stranger");
    }
    let error = encrypted("verify-ca", None, "localhost").await.unwrap_err();
    assert!(error.contains("needs db.ssl.root.cert"), "{error}");
}

#[tokio::test]
async fn cy_09_08_one_connection_is_kept_between_passes() {
    let Some(bench) = Bench::new().await else { return };
    let all = futures::future::join_all((0..4).map(|_| bench.app())).await;
    assert_eq!(all.len(), 4);
    drop(all);
    let admin = bench.pair.admin(&bench.pair.app).await;
    let query = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{}'", bench.pair.user);
    let waiting = async {
        while admin.query_one(&query, &[]).await.unwrap().get::<_, i64>(0) > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::cluster::PATIENCE, waiting).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cy_08_17_a_port_that_answers_nothing_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let nowhere = Pair {
        port,
        ca: "/".into(),
        app: "a".to_owned(),
        inventory: "i".to_owned(),
        user: "u".to_owned(),
        databases: None,
    };
    let credentials = secret(&nowhere, "a", PASSWORD, "1");
    let error = Pools::default().open(&credentials, &config(&[])).await.unwrap_err().to_string();
    assert!(
        error.contains("cannot connect to the database") || error.contains("longer than 10 s"),
        "{error}"
    );
    assert!(!error.contains("canary"), "{error}");
}

/// Neither what is made of a login, nor why nobody answers there, shows it.
#[tokio::test]
async fn cy_09_05_a_login_that_does_not_work_is_not_shown() {
    let Some(pair) = Pair::new().await else { return };
    for host in [
        "canary@nowhere.invalid",
        "postgresql://u:canary@127.0.0.1/db",
        "nowhere.invalid\nx",
        "/canary",
        "127.0.0.1",
    ] {
        let mut login = secret(&pair, &pair.app, "canary-wrong-4724", "1");
        login.host = host.to_owned();
        let error = Pools::default().open(&login, &config(&[])).await.unwrap_err();
        assert!(!shows(&error.to_string()) && !shows(&format!("{error:?} {login:?}")), "{error:?}");
    }
}
