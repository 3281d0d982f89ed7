//! Defines the flags of the API server's audit log.

use std::path::PathBuf;

use admit_apiserver::{AuditLog, ServerBuilder};
use clap::Args;

use crate::cli::audit_log::{self, DEFAULT_SIZE, Limits, MEGABYTE};
use crate::cli::process::Fault;

/// The flags of the audit log.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// File that gets an audit event (audit.k8s.io/v1) of each request to the API server, a JSON document a line; `admit
    /// replay` reads it. `-` is standard output
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Megabytes of the audit log before it is put aside under a name with the time, and a new one begun; 0 for 100
    #[arg(long, value_name = "MEGABYTES", default_value_t = 0, requires = "audit_log")]
    audit_log_maxsize: u64,
    /// How many old audit logs are kept; 0 for all
    #[arg(long, value_name = "FILES", default_value_t = 0, requires = "audit_log")]
    audit_log_maxbackup: usize,
    /// For how many days old audit logs are kept, by the time in their names; 0 for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, requires = "audit_log")]
    audit_log_maxage: u32,
    /// Which requests are logged, at which stages, and how much of them: a `Policy` of audit.k8s.io/v1. Without one, each is
    /// logged once: at the level Request if it reads, at RequestResponse if it writes, and at Metadata if it is about Secrets,
    /// ConfigMaps or tokens
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy_file: Option<PathBuf>,
}

impl AuditArgs {
    /// Opens the log with access for its owner only; existing contents stay.
    pub(super) fn open(&self) -> Result<Option<AuditLog>, Fault> {
        let Some(file) = &self.audit_log else { return Ok(None) };
        let policy = self.audit_policy_file.as_deref().map(audit_log::policy).transpose()?;
        let megabytes = Some(self.audit_log_maxsize).filter(|size| *size > 0).unwrap_or(DEFAULT_SIZE);
        let limits = Limits {
            size: megabytes.saturating_mul(MEGABYTE),
            backups: self.audit_log_maxbackup,
            days: self.audit_log_maxage,
        };
        let log = audit_log::open(file, limits)?;
        Ok(Some(match policy {
            Some(policy) => log.following(policy),
            None => log,
        }))
    }
}

/// Configures the server to write to the log, if there is one.
pub(super) fn writes(server: ServerBuilder, log: Option<&AuditLog>) -> ServerBuilder {
    match log {
        Some(log) => server.audit_log(log.clone()),
        None => server,
    }
}
