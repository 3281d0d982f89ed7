//! The flag that lets the API server write an audit log, and the file that it goes to.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use admit_apiserver::{AuditLog, ServerBuilder};
use clap::Args;

use crate::cli::process::Fault;

/// What is logged of requests.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// File that gets an audit event (audit.k8s.io/v1) of each request to the API server, a JSON document a line; `admit
    /// replay` reads it
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

impl AuditArgs {
    /// Opens the log, for its owner alone; what is in the file stays.
    pub(super) fn open(&self) -> Result<Option<AuditLog>, Fault> {
        let Some(file) = &self.audit_log else { return Ok(None) };
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        let opened =
            opened.map_err(|error| Fault::usage(format!("cannot write `{}`: {error}", file.display())))?;
        AuditLog::to(opened).map(Some).map_err(Fault::internal)
    }
}

/// Lets the server write to the log, if there is one.
pub(super) fn writes(server: ServerBuilder, log: Option<&AuditLog>) -> ServerBuilder {
    match log {
        Some(log) => server.audit_log(log.clone()),
        None => server,
    }
}
