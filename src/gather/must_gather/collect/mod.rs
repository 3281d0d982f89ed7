//! Collects a must-gather without an image: every kind that a server serves, the logs of its Pods, and its audit logs on request, in
//! the layout of must-gather images.
//!
//! ```text
//! FOLDER/version, timestamp
//!        cluster-scoped-resources/GROUP/PLURAL/NAME.yaml
//!        namespaces/NAMESPACE/GROUP/PLURAL.yaml
//!        namespaces/NAMESPACE/pods/POD/CONTAINER/CONTAINER/logs/{current,previous}.log
//!        host_service_logs/masters/SERVICE_service.log
//!        audit_logs/COMPONENT/NODE-FILE
//! ```
//!
//! Everything is written to disk as it arrives: one page of a list is in memory, and it has only some megabytes. What cannot be
//! read is reported and left out; a server that cannot be reached at all is an error.

mod audit;
mod discover;
mod files;
mod logs;
mod objects;
mod services;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kube::Client;

use self::files::Folder;
use crate::telemetry::{Outside, Secrets, with_causes};

/// What to collect, and where to write it.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub folder: PathBuf,
    /// Whether to collect audit logs from the control plane nodes.
    pub audit: bool,
    /// Only newer log lines are collected.
    pub since: Option<Timestamp>,
}

/// Why nothing was collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error("cannot ask the server what it serves: {}", with_causes(.0))]
    Discovery(#[source] Box<kube::Error>),
    #[error("cannot write {}: {source}", path.display())]
    Disk {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The numbers of what was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Collected {
    pub kinds: u64,
    pub objects: u64,
    pub logs: u64,
    /// The number of read errors; each was reported.
    pub missed: u64,
}

/// Writes progress lines with timestamps.
pub struct Teller {
    out: Mutex<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Teller")
    }
}

impl Teller {
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self { out: Mutex::new(Box::new(out)) }
    }

    fn tell(&self, line: impl Display) {
        let line = Outside::of(line.to_string(), &Secrets::default());
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // If the output is closed, the collection on disk is still useful.
        let _ = writeln!(out, "{} {line}", Timestamp::now().strftime("%FT%TZ"));
        let _ = out.flush();
    }
}

/// A running collection.
struct Run<'r> {
    client: &'r Client,
    folder: Folder,
    since: Option<Timestamp>,
    teller: &'r Teller,
}

impl Run<'_> {
    /// Reports that something is left out because of an error.
    fn missed(&self, what: impl Display, error: &kube::Error) {
        self.teller.tell(format!("left out: {what}: {}", with_causes(error)));
    }
}

/// Runs the collection.
///
/// # Errors
/// [`CollectError`] when discovery fails, or a file cannot be written.
pub async fn collect(client: &Client, wanted: &Wanted, teller: &Teller) -> Result<Collected, CollectError> {
    let folder = Folder::new(&wanted.folder);
    let run = Run { client, folder, since: wanted.since, teller };
    let begun = Timestamp::now();
    run.folder.write("version", &format!("admit\n{}\n", env!("CARGO_PKG_VERSION")))?;
    run.folder.write("timestamp", &format!("{begun}\n"))?;
    let discovered = discover::kinds(&run).await?;
    let mut collected = Collected { missed: discovered.missed, ..Collected::default() };
    let mut pods = Vec::new();
    for kind in &discovered.kinds {
        let found = objects::collect(&run, kind, &mut pods).await?;
        collected.kinds += 1;
        collected.objects += found.objects;
        collected.missed += u64::from(!found.whole);
    }
    let found = logs::collect(&run, pods).await?;
    collected.logs += found.logs;
    collected.missed += found.missed;
    let mut found = logs::Found::default();
    let nodes = audit::nodes(&run, &mut found).await;
    found.add(services::collect(&run, &nodes).await?);
    if wanted.audit {
        found.add(audit::collect(&run, &nodes).await?);
    }
    collected.logs += found.logs;
    collected.missed += found.missed;
    run.folder.write("timestamp", &format!("{begun}\n{}\n", Timestamp::now()))?;
    let Collected { kinds, objects, logs, missed } = collected;
    teller.tell(format!("collected {objects} objects of {kinds} kinds and {logs} logs; {missed} left out"));
    Ok(collected)
}
