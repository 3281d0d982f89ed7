//! Runs a PostgreSQL server during the demo: in a temporary folder, on a free local port, with a generated
//! password.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls};

/// The administrator's name.
const ADMIN: &str = "admin";
/// The time limit for creating and starting a cluster: seconds, on a busy machine many.
const STARTING: Duration = Duration::from_mins(1);
/// The time limit for stopping it, which usually takes no time.
const ENDING: Duration = Duration::from_secs(15);
/// The time limit for connecting and for each statement list.
const STATEMENT: Duration = Duration::from_secs(20);
/// How many ports are tried: another program may take a free one before PostgreSQL listens.
const PORTS: usize = 3;

/// Creates and starts a cluster, and removes it when its standard input closes, which happens however this program ends. PostgreSQL
/// does not run as root, so root uses the package's user. It sets a locale because `initdb` fails if the caller's is not installed.
const SCRIPT: &str = r#"
umask 077
bin=$1 port=$2
if [ "$(id -u)" = 0 ]; then as() { runuser -u postgres -- "$@"; }; else as() { "$@"; }; fi
cd / && folder=$(as mktemp -d "${TMPDIR:-/tmp}/admit-demo-XXXXXX") || exit 1
trap 'as "$bin/pg_ctl" -D "$folder/cluster" -w -s -m immediate stop >/dev/null 2>&1; rm -rf "$folder" 2>/dev/null' EXIT
trap '' HUP INT TERM
read -r password
printf '%s\n' "$password" | as sh -c 'cat >"$1/password"' sh "$folder" || exit 1
as "$bin/initdb" --locale=C -E UTF8 -A scram-sha-256 --no-sync -U admin -D "$folder/cluster" --pwfile "$folder/password" \
    >/dev/null || exit 1
as "$bin/pg_ctl" -D "$folder/cluster" -w -s -l "$folder/log" -o "-c port=$port -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories=$folder -c fsync=off -c max_connections=30 -c shared_buffers=16MB" start >/dev/null || exit 1
echo started
read -r _
"#;

/// A running server.
pub(super) struct Postgres {
    pub(super) port: u16,
    /// The password of the administrator and of all other users.
    pub(super) password: String,
    keeper: Child,
    /// The server stops when this is closed.
    hold: ChildStdin,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin or on the PATH")]
    NotInstalled,
    #[error("PostgreSQL does not start: {0}")]
    NotStarted(String),
    #[error("PostgreSQL does not start: {0}")]
    Io(#[from] std::io::Error),
    #[error("PostgreSQL: {0}")]
    Statement(#[from] tokio_postgres::Error),
    #[error("PostgreSQL did not answer within {} s", STATEMENT.as_secs())]
    Silent,
}

impl Postgres {
    /// Starts a server.
    ///
    /// # Errors
    /// Also when PostgreSQL is not installed.
    pub(super) async fn start() -> Result<Self, Error> {
        let bin = programs().ok_or(Error::NotInstalled)?;
        let mut why = Error::NotStarted("nothing was tried".to_owned());
        for _ in 0..PORTS {
            match Self::start_in(&bin).await {
                Ok(started) => return Ok(started),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    async fn start_in(bin: &Path) -> Result<Self, Error> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let password = uuid::Uuid::new_v4().to_string();
        let mut keeper = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(bin)
            .arg(port.to_string())
            // Ctrl-C at the terminal is for this program, which stops the server last.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let parts = (keeper.stdin.take(), keeper.stdout.take(), keeper.stderr.take());
        let (Some(mut hold), Some(said), Some(complaints)) = parts else {
            return Err(Error::NotStarted("its pipes are missing".to_owned()));
        };
        hold.write_all(format!("{password}\n").as_bytes()).await?;
        let mut line = String::new();
        let mut said = BufReader::new(said);
        let started = timeout(STARTING, said.read_line(&mut line)).await;
        if line.trim() == "started" {
            return Ok(Self { port, password, keeper, hold });
        }
        drop(hold);
        let mut why = String::new();
        // The last line of the error output is reported; the script has ended when it is closed.
        let mut lines = BufReader::new(complaints).lines();
        while let Ok(Ok(Some(line))) = timeout(ENDING, lines.next_line()).await {
            why = line;
        }
        drop(timeout(ENDING, keeper.wait()).await);
        if started.is_err() {
            why = format!("it took longer than {} s", STARTING.as_secs());
        }
        Err(Error::NotStarted(why))
    }

    /// Executes statements in `database`, one after the other, as the administrator.
    ///
    /// # Errors
    /// The first that fails.
    pub(super) async fn run(&self, database: &str, statements: &[String]) -> Result<(), Error> {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).dbname(database).user(ADMIN).password(&self.password);
        let work = async {
            let (client, connection) = config.connect(NoTls).await?;
            let all = each(&client, statements);
            tokio::select! {
                done = all => done,
                // The connection's task ends only when the client is dropped, or with an error.
                broken = connection => broken,
            }
        };
        timeout(STATEMENT, work).await.map_err(|_| Error::Silent)?.map_err(Error::Statement)
    }

    /// Stops the server, and removes its folder.
    pub(super) async fn end(mut self) {
        drop(self.hold);
        if timeout(ENDING, self.keeper.wait()).await.is_err() {
            tracing::warn!("the PostgreSQL of the demo does not end");
        }
    }
}

async fn each(client: &Client, statements: &[String]) -> Result<(), tokio_postgres::Error> {
    for statement in statements {
        client.batch_execute(statement).await?;
    }
    Ok(())
}

/// Returns the folder with the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.sort_by_key(|bin| {
        let version = bin.parent().and_then(|version| version.file_name()?.to_str()?.parse::<u32>().ok());
        std::cmp::Reverse(version)
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path));
    found.into_iter().find(|bin| bin.join("initdb").is_file() && bin.join("pg_ctl").is_file())
}
