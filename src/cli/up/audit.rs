//! Defines the flags of the API server's audit log.

use std::path::PathBuf;

use admit_apiserver::{AuditLog, ServerBuilder};
use clap::Args;

use crate::cli::audit_log::{self, DEFAULT_SIZE, Limits, MEGABYTE};
use crate::cli::process::Fault;

/// The flags of the audit log.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// File to log an audit event (audit.k8s.io/v1) of each request to the API server to, one JSON document per line; `-` for
    /// standard output. `admit replay` reads it
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Size in megabytes at which the audit log is rotated: renamed, with the time in its name, and a new one started; 0 for 100
    #[arg(long, value_name = "MEGABYTES", default_value_t = 0, requires = "audit_log")]
    audit_log_maxsize: u64,
    /// Number of old audit logs to keep; 0 for all
    #[arg(long, value_name = "FILES", default_value_t = 0, requires = "audit_log")]
    audit_log_maxbackup: usize,
    /// Number of days to keep old audit logs, by the time in their names; 0 for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, requires = "audit_log")]
    audit_log_maxage: u32,
    /// File with the audit policy, a `Policy` of audit.k8s.io/v1: which requests to log, at which stages and levels. Without one,
    /// each request is logged once: at level Request if it reads, at RequestResponse if it writes, and at Metadata if it is about
    /// Secrets, ConfigMaps or tokens
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
