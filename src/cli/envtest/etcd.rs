//! Runs this program as `etcd`: it answers health checks, and reports where in its data directory the objects are, for as long
//! as it runs. The objects themselves are served by this program as `kube-apiserver`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::future::pending;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::flags::{Ended, Flag, Given, NotBuilt, Program, Spelling};
use super::handover::{self, Handover};
use crate::cli::Exit;
use crate::cli::process::{self, Fault, GRACE, Threads};
use crate::private;
use crate::telemetry::LogFormat;

const PROGRAM: Program = Program {
    name: "etcd",
    about: "admit in place of etcd, for test harnesses: stores the objects of admit's kube-apiserver",
    version: env!("CARGO_PKG_VERSION"),
    flags: &[
        Flag { name: "name", value: "NAME", help: "Name of the only member" },
        Flag { name: "data-dir", value: "DIR", help: "Folder to store the objects in [default: NAME.etcd]" },
        Flag {
            name: "wal-dir",
            value: "DIR",
            help: "Folder that is created if missing, and left empty: the log is in the data directory",
        },
        Flag {
            name: "listen-client-urls",
            value: "URLS",
            help: "URLs to listen on, on this machine only; 0.0.0.0 means 127.0.0.1 [default: http://localhost:2379]",
        },
        Flag {
            name: "advertise-client-urls",
            value: "URLS",
            help: "Checked but not used: there are no other members to announce them to",
        },
        Flag {
            name: "listen-peer-urls",
            value: "URLS",
            help: "Checked but not used: nothing listens there, as there are no peers",
        },
        Flag {
            name: "initial-advertise-peer-urls",
            value: "URLS",
            help: "Checked but not used: there are no peers",
        },
        Flag { name: "initial-cluster", value: "MEMBERS", help: "Must be a single member" },
        Flag { name: "unsafe-no-fsync", value: "", help: "Do not force changes to the disk" },
    ],
    not_built: &[
        NotBuilt {
            names: &["cert-file", "key-file", "client-", "trusted-ca-file", "auto-tls", "peer-"],
            instead: "it is reached by http:// on this machine alone",
        },
        NotBuilt {
            names: &["log-level", "logger", "log-outputs", "debug"],
            instead: "set RUST_LOG, as in RUST_LOG=admit=debug",
        },
        NotBuilt {
            names: &[
                "initial-",
                "discovery",
                "discovery-",
                "force-new-cluster",
                "proxy",
                "strict-reconfig-check",
            ],
            instead: "there is one member, and no other can join; leave it out",
        },
        NotBuilt {
            names: &[
                "auto-compaction-",
                "quota-backend-bytes",
                "snapshot-count",
                "max-",
                "heartbeat-interval",
                "election-timeout",
                "enable-",
                "experimental-",
                "backend-",
                "metrics",
                "auth-token",
                "config-file",
                "listen-metrics-urls",
                "unsafe-",
                "bcrypt-cost",
                "cors",
                "host-whitelist",
                "pre-vote",
                "socket-",
            ],
            instead: "the API server keeps the objects itself; leave it out",
        },
    ],
    spelling: Spelling::Go,
};

/// Files in the data directory: the objects, and the lock.
const STORE: &str = "admit.redb";
const LOCK: &str = "admit.lock";

pub(super) fn run(_program: &Path, args: &[OsString]) -> Exit {
    let asked = match PROGRAM.parse(args) {
        Ok(given) => Asked::read(&given),
        Err(Ended::Told(exit)) => return exit,
        Err(Ended::Fault(fault)) => Err(fault),
    };
    match asked {
        Ok(asked) => process::run(Threads::Carry, LogFormat::Text, GRACE, |shutdown| asked.serve(shutdown)),
        Err(fault) => process::fail(&fault),
    }
}

struct Asked {
    listen: Vec<SocketAddr>,
    data: PathBuf,
    wal: Option<PathBuf>,
    unsynced: bool,
}

impl Asked {
    fn read(given: &Given) -> Result<Self, Fault> {
        let urls = given.list("listen-client-urls");
        let urls = if urls.is_empty() { vec!["http://localhost:2379"] } else { urls };
        let listen = urls.into_iter().map(|url| handover::local("listen-client-urls", url)).collect();
        for flag in ["advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls"] {
            for url in given.list(flag) {
                admit_apimachinery::go::url::parse(url)
                    .map_err(|error| Fault::usage(format!("--{flag}: {error}")))?;
            }
        }
        let members = given.list("initial-cluster");
        if members.len() > 1 {
            let why = "--initial-cluster: there is one member, and no other can join; name one";
            return Err(Fault::usage(why));
        }
        let name = given.last("name").unwrap_or("default");
        Ok(Self {
            listen: listen_once(listen)?,
            data: given.path("data-dir").unwrap_or_else(|| format!("{name}.etcd").into()),
            wal: given.path("wal-dir"),
            unsynced: given.switch("unsafe-no-fsync")?.unwrap_or(false),
        })
    }

    async fn serve(self, shutdown: CancellationToken) -> Result<(), Fault> {
        for folder in std::iter::once(&self.data).chain(&self.wal) {
            private::make_folder(folder).map_err(|error| cannot_write(folder, &error))?;
        }
        let data = self.data.canonicalize().map_err(|error| cannot_write(&self.data, &error))?;
        let _ours = locked(&data)?;
        let told = json!(Handover { path: data.join(STORE), unsynced: self.unsynced });
        let listeners: Result<Vec<TcpListener>, Fault> =
            self.listen.iter().map(|address| process::listen(*address, "--listen-client-urls")).collect();
        let mut serving = tokio::task::JoinSet::new();
        for listener in listeners? {
            let router = router(told.clone());
            serving.spawn(async move { axum::serve(listener, router).await });
        }
        tracing::info!(address = ?self.listen, data = %data.display(), "ready to serve client requests");
        // Clients learn from their open connection that this process has ended.
        match shutdown.run_until_cancelled(serving.join_next()).await {
            Some(Some(Ok(Err(error)))) => Err(Fault::internal(error)),
            Some(Some(Err(error))) => Err(Fault::internal(error)),
            _ => Ok(()),
        }
    }
}

fn listen_once(addresses: Result<Vec<SocketAddr>, Fault>) -> Result<Vec<SocketAddr>, Fault> {
    let mut addresses = addresses?;
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

fn cannot_write(folder: &Path, error: &std::io::Error) -> Fault {
    let folder = folder.display();
    Fault::usage(format!("cannot write `{folder}`: {error}; choose another with --data-dir"))
}

/// Locks the data directory for as long as the returned file is open.
fn locked(data: &Path) -> Result<File, Fault> {
    let path = data.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|error| cannot_write(data, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let data = data.display();
            Err(Fault::usage(format!(
                "`{data}` is used by another etcd: end it, or choose another with --data-dir"
            )))
        }
        Err(TryLockError::Error(error)) => Err(cannot_write(data, &error)),
    }
}

fn router(told: Value) -> Router {
    let health = || async { axum::Json(json!({"health": "true", "reason": ""})) };
    let told = move || async move { axum::Json(told) };
    // The headers are sent at once, and the body never ends.
    let life = || async {
        let nothing = stream::once(pending::<Result<Bytes, std::convert::Infallible>>());
        Body::from_stream(nothing)
    };
    Router::new()
        .route("/health", get(health))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(|| async { "ok\n" }))
        .route(handover::STORE, get(told))
        .route(handover::LIFE, get(life))
}
