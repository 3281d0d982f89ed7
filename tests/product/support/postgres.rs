//! A real PostgreSQL, one cluster for the test program, and a pair of databases for each test: that of an application, onboarded as the
//! platform does it, and that of the inventory. It takes root, because the server refuses to run as root and another user starts it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use tokio_postgres::{Client, NoTls};

/// Who the package makes to run servers.
const USER: &str = "postgres";
const ADMIN: &str = "admin";
const ADMIN_PASSWORD: &str = "canary-admin-1147";
/// Password of every application, and of who reads the inventory.
pub(crate) const PASSWORD: &str = "canary-postgres-7741";

/// What onboarding does in the database of an application.
const ONBOARDING: &str = "\
CREATE SCHEMA inventory; GRANT USAGE ON SCHEMA inventory TO cyndi_reader; GRANT ALL ON SCHEMA inventory TO cyndi_admin;";

/// The table of hosts, as far as anything here looks at it.
const INVENTORY: &str = "\
CREATE TABLE hosts (id uuid PRIMARY KEY, account varchar(10), display_name varchar(200), canonical_facts jsonb NOT NULL DEFAULT '{}', \
insights_id uuid, reporter varchar(255));";

/// A server with the roles of onboarding.
pub(crate) struct Server {
    port: u16,
    folder: PathBuf,
    bin: PathBuf,
    /// Ends the server when its standard input closes: with this program, whatever ends that.
    keeper: Child,
}

impl Server {
    /// One of its own, for a test of what concerns a whole server.
    pub(crate) fn own() -> Option<Self> {
        let server = start();
        if server.is_none() {
            testing::skip(testing::Need::Postgres, &impossible().unwrap_or_default());
        }
        server
    }

    /// Where its files are, and those of tests that it is to read.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it anew as a server that follows another one: it is in recovery until it is promoted.
    pub(crate) fn follow_nobody(&self) {
        let signal = self.folder.join("cluster/standby.signal");
        fs::write(&signal, "").unwrap();
        let (user, group) = owner();
        chown(&signal, Some(user), Some(group)).unwrap();
        let started = Command::new("runuser")
            .args(["-u", USER, "--"])
            .arg(self.bin.join("pg_ctl"))
            .args(["-D", "cluster", "-w", "-s", "-m", "fast", "-l", "cluster/log", "restart"])
            .current_dir(&self.folder)
            .status();
        assert!(started.unwrap().success(), "{}", log(&self.folder));
    }
}

impl Drop for Server {
    /// The one of the whole program is never dropped.
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

static SERVER: OnceLock<Option<Server>> = OnceLock::new();
static NUMBER: AtomicUsize = AtomicUsize::new(0);
/// Databases of the program's server whose tests have ended: the next pair takes them away, for each is 8 MB of disk.
static ENDED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A pair of databases.
pub(crate) struct Pair {
    pub(crate) port: u16,
    /// Of the authority that the server's certificate for `localhost` is of.
    pub(crate) ca: PathBuf,
    pub(crate) app: String,
    pub(crate) inventory: String,
    /// Who owns what is in the application's database, and may read the inventory's.
    pub(crate) user: String,
    /// Nothing where somebody else ends them: the test's own server, or the pair that this one is another way to.
    pub(crate) databases: Option<Databases>,
}

impl Pair {
    /// A pair of its own; nothing where the machine cannot have a server, which is said loudly.
    pub(crate) async fn new() -> Option<Self> {
        let server = SERVER.get_or_init(start).as_ref();
        if server.is_none() {
            testing::skip(testing::Need::Postgres, &impossible().unwrap_or_default());
        }
        let mut pair = Self::on(server?).await;
        pair.databases = Some(Databases([pair.app.clone(), pair.inventory.clone()]));
        let ended = std::mem::take(&mut *ENDED.lock().unwrap());
        let admin = pair.admin("postgres").await;
        for database in ended {
            admin.batch_execute(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)")).await.unwrap();
        }
        Some(pair)
    }

    /// The same on a server of a test.
    pub(crate) async fn on(server: &Server) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let pair = Self {
            port: server.port,
            ca: server.folder.join("ca.crt"),
            app: format!("app_{number}"),
            inventory: format!("inventory_{number}"),
            user: format!("user_{number}"),
            databases: None,
        };
        let admin = pair.admin("postgres").await;
        let Self { app, inventory, user, .. } = &pair;
        for statement in [
            format!("CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}' IN ROLE cyndi_admin"),
            format!("CREATE DATABASE {app}"),
            format!("CREATE DATABASE {inventory}"),
        ] {
            admin.batch_execute(&statement).await.unwrap();
        }
        pair.admin(app).await.batch_execute(ONBOARDING).await.unwrap();
        let inventory = pair.admin(inventory).await;
        inventory.batch_execute(INVENTORY).await.unwrap();
        inventory.batch_execute(&format!("GRANT SELECT ON hosts TO {user}")).await.unwrap();
        pair
    }

    /// A connection of the server's administrator to `database`.
    pub(crate) async fn admin(&self, database: &str) -> Client {
        self.connect(database, ADMIN, ADMIN_PASSWORD).await
    }

    /// A connection of the application's user to its database.
    pub(crate) async fn app(&self) -> Client {
        self.connect(&self.app, &self.user, PASSWORD).await
    }

    async fn connect(&self, database: &str, user: &str, password: &str) -> Client {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port).dbname(database).user(user).password(password);
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Puts hosts with these ids into the inventory; those below 1,000 have an insights id.
    pub(crate) async fn hosts(&self, ids: impl IntoIterator<Item = u32>) {
        let inventory = self.admin(&self.inventory).await;
        for id in ids {
            let facts = if id < 1000 { "{\"insights_id\": \"x\"}" } else { "{}" };
            let statement = format!(
                "INSERT INTO hosts (id, display_name, canonical_facts) VALUES ('{}', 'h{id}', '{facts}')",
                uuid(id)
            );
            inventory.batch_execute(&statement).await.unwrap();
        }
    }

    /// Puts rows with these ids into a table of the application, as its connector would.
    pub(crate) async fn fill(&self, table: &str, ids: impl IntoIterator<Item = u32>) {
        assert!(self.try_fill(table, ids).await, "{table} cannot be filled");
    }

    /// The same where the table is still there; whether it was. Rows that are there stay.
    pub(crate) async fn try_fill(&self, table: &str, ids: impl IntoIterator<Item = u32>) -> bool {
        let app = self.app().await;
        for id in ids {
            let statement = format!(
                "INSERT INTO inventory.{table} (id, display_name, tags, updated, created, stale_timestamp, system_profile, reporter, \
                 per_reporter_staleness, last_check_in) \
                 VALUES ('{}', 'h{id}', '{{}}', now(), now(), now(), '{{}}', 'r', '{{}}', now()) ON CONFLICT DO NOTHING",
                uuid(id)
            );
            if app.batch_execute(&statement).await.is_err() {
                return false;
            }
        }
        true
    }

    /// The tables and views of the application's schema, by name.
    pub(crate) async fn relations(&self) -> Vec<String> {
        let app = self.admin(&self.app).await;
        let query = "SELECT relname::text FROM pg_class WHERE relnamespace = 'inventory'::regnamespace AND relkind IN ('r', 'v') \
                     ORDER BY 1";
        app.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

/// Databases of the program's server, which end with the test that has them.
pub(crate) struct Databases([String; 2]);

impl Drop for Databases {
    fn drop(&mut self) {
        ENDED.lock().unwrap().extend(std::mem::take(&mut self.0));
    }
}

/// The id of a number.
pub(crate) fn uuid(number: u32) -> uuid::Uuid {
    uuid::Uuid::from_u128(u128::from(number) << 64)
}

fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(Result::ok).map(|version| version.path().join("bin"));
    folders.filter(|bin| bin.join("initdb").exists()).max()
}

/// Whether there can be a server on this machine; where not, this says so.
pub(crate) fn can_be() -> bool {
    let why = impossible();
    why.iter().for_each(|why| testing::skip(testing::Need::Postgres, why));
    why.is_none()
}

fn impossible() -> Option<String> {
    if programs().is_none() {
        return Some("no /usr/lib/postgresql/*/bin/initdb: install postgresql".to_owned());
    }
    let tried = Command::new("runuser").args(["-u", USER, "--", "true"]).stderr(Stdio::null()).status();
    let may = tried.is_ok_and(|status| status.success());
    (!may).then(|| format!("runuser cannot become {USER}: run as root"))
}

/// User and group that servers run as.
pub(crate) fn owner() -> (u32, u32) {
    use std::os::unix::fs::MetadataExt as _;

    let home = fs::metadata("/var/lib/postgresql").unwrap();
    (home.uid(), home.gid())
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("cluster/log")).unwrap_or_default()
}

fn start() -> Option<Server> {
    if impossible().is_some() {
        return None;
    }
    let bin = programs()?;
    let folder = tempfile::tempdir().unwrap().keep();
    let owner = owner();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("password"), ADMIN_PASSWORD).unwrap();
    certificates(&folder);
    for name in ["password", "server.key", "server.crt"] {
        chown(folder.join(name), Some(owner.0), Some(owner.1)).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::create_dir(folder.join("cluster")).unwrap();
    chown(folder.join("cluster"), Some(owner.0), Some(owner.1)).unwrap();
    let made = Command::new("runuser")
        .args(["-u", USER, "--"])
        .arg(bin.join("initdb"))
        .args([
            "--locale=C",
            "-E",
            "UTF8",
            "-A",
            "scram-sha-256",
            "--no-sync",
            "-U",
            ADMIN,
            "-D",
            "cluster",
            "--pwfile",
            "password",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    // Free at this moment; whoever takes it before the server does makes it fail to start, which is tried again.
    let started = (0..5).find_map(|_| {
        let port = testing::free_port().unwrap();
        keep(&folder, &bin, port).map(|keeper| (keeper, port))
    });
    let (keeper, port) = started.unwrap_or_else(|| panic!("PostgreSQL does not start:\n{}", log(&folder)));
    roles(port);
    Some(Server { port, folder, bin, keeper })
}

/// A server on `port`, and who ends it and removes its folder when this program is gone; nothing where it does not start.
fn keep(folder: &Path, bin: &Path, port: u16) -> Option<Child> {
    let (pg_ctl, place) = (bin.join("pg_ctl"), folder.display());
    let settings = format!(
        "-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place}/cluster -c fsync=off \
         -c synchronous_commit=off -c full_page_writes=off -c max_wal_size=64MB -c max_connections=200 -c ssl=on -c ssl_cert_file={place}/server.crt \
         -c ssl_key_file={place}/server.key"
    );
    let script = "as='runuser -u postgres --'; $as \"$1\" -D cluster -w -s -l cluster/log -o \"$2\" start >&2 || exit 1; \
                  echo started; read -r _; $as \"$1\" -D cluster -w -s -m immediate stop >&2; cd /; rm -rf \"$3\"";
    let mut keeper = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(pg_ctl)
        .arg(settings)
        .arg(folder)
        .current_dir(folder)
        // Whoever ends this program with its group leaves the one who ends the server.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.trim() == "started" {
        return Some(keeper);
    }
    keeper.wait().unwrap();
    None
}

/// The roles that onboarding expects, once for all databases.
fn roles(port: u16) {
    let make = async move {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(port).dbname("postgres").user(ADMIN).password(ADMIN_PASSWORD);
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("CREATE ROLE cyndi_reader; CREATE ROLE cyndi_admin").await.unwrap();
    };
    // The test has a runtime already, which cannot be waited on from within.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || runtime.block_on(make)).join().unwrap();
}

fn certificates(folder: &Path) {
    let (ca_key, key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
    let ca = params.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(params, ca_key);
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    fs::write(folder.join("ca.crt"), ca.pem()).unwrap();
    fs::write(folder.join("server.crt"), leaf.pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}
