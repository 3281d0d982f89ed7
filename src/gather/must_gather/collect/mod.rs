//! Our own collector: every kind that a server serves, the logs of its pods, its audit logs where they are asked for, in the
//! layout of must-gather images.
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
//! Everything goes to disk as it comes: of lists a page is in memory, and of pages no more than some megabytes. What cannot be
//! read is told and left out; a server that cannot be reached at all is an error.

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

/// What is collected, and where to.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub folder: PathBuf,
    /// Audit logs as well, of the nodes that serve the API.
    pub audit: bool,
    /// Of logs only what is newer.
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

/// What was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Collected {
    pub kinds: u64,
    pub objects: u64,
    pub logs: u64,
    /// What could not be read; each was told.
    pub missed: u64,
}

/// Where it is told what happens: a line each.
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
        // Who reads no more has not lost what is on disk.
        let _ = writeln!(out, "{} {line}", Timestamp::now().strftime("%FT%TZ"));
        let _ = out.flush();
    }
}

/// One collection under way.
struct Run<'r> {
    client: &'r Client,
    folder: Folder,
    since: Option<Timestamp>,
    teller: &'r Teller,
}

impl Run<'_> {
    /// Tells of what is left out; whether it was.
    fn missed(&self, what: impl Display, error: &kube::Error) {
        self.teller.tell(format!("left out: {what}: {}", with_causes(error)));
    }
}

/// Collects.
///
/// # Errors
/// [`CollectError`] when the server does not say what it serves, or the disk takes no more.
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
