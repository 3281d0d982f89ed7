//! The flags that let the API server write an audit log, and the file that it goes to.

mod rotated;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use admit_apiserver::{AuditLog, ServerBuilder};
use clap::Args;

use self::rotated::{Limits, Rotated};
use crate::cli::process::{self, Fault};

/// A pipe has so long to get somebody who reads it.
const PATIENCE: Duration = Duration::from_secs(3);
/// As kube-apiserver counts them.
const MEGABYTE: u64 = 1 << 20;
/// What a log holds that is told no limit, as kube-apiserver's.
const DEFAULT_SIZE: u64 = 100;

/// What is logged of requests.
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
    /// Not supported: levels are fixed
    #[arg(long, value_name = "FILE", hide = true)]
    audit_policy_file: Option<PathBuf>,
}

impl AuditArgs {
    /// Opens the log, for its owner alone; what is in the file stays.
    pub(super) fn open(&self) -> Result<Option<AuditLog>, Fault> {
        if self.audit_policy_file.is_some() {
            return Err(Fault::usage(
                "`--audit-policy-file` is not supported: requests that read are logged at the level Request, those that \
                 write at RequestResponse, and those of Secrets, ConfigMaps and tokens at Metadata; leave it out",
            ));
        }
        let Some(file) = &self.audit_log else { return Ok(None) };
        if file == Path::new("-") {
            return AuditLog::to(io::stdout()).map(Some).map_err(Fault::internal);
        }
        let refused = |error: &dyn std::fmt::Display| {
            Fault::usage(format!("cannot write `{}`: {error}", file.display()))
        };
        let there = fs::metadata(file).ok();
        if there.as_ref().is_some_and(|there| there.file_type().is_fifo()) {
            let pipe = pipe(file, PATIENCE).map_err(|error| refused(&error))?;
            return AuditLog::to(pipe).map(Some).map_err(Fault::internal);
        }
        if let Some(there) = there.as_ref().filter(|there| !there.is_file()) {
            if there.is_dir() {
                return Err(refused(&"it is a folder"));
            }
            let device = OpenOptions::new().append(true).open(file).map_err(|error| refused(&error))?;
            return AuditLog::to(device).map(Some).map_err(Fault::internal);
        }
        if let Some(mode) =
            there.map(|there| there.permissions().mode() & 0o777).filter(|mode| mode & 0o077 != 0)
        {
            process::warn(&format!(
                "`{}` is open to others (mode {mode:04o}) and stays so: it tells who did what, and what was written; \
                 `chmod 600` closes it",
                file.display()
            ));
        }
        let megabytes = Some(self.audit_log_maxsize).filter(|size| *size > 0).unwrap_or(DEFAULT_SIZE);
        let limits = Limits {
            size: megabytes.saturating_mul(MEGABYTE),
            backups: self.audit_log_maxbackup,
            days: self.audit_log_maxage,
        };
        let log = Rotated::open(file, limits).map_err(|error| refused(&error))?;
        AuditLog::to(log).map(Some).map_err(Fault::internal)
    }
}

/// Opens a pipe. That ends only when somebody reads it, and is left to its thread if nobody does.
fn pipe(path: &Path, patience: Duration) -> io::Result<File> {
    let (opened, is_opened) = mpsc::channel();
    let path = path.to_owned();
    thread::Builder::new().name("audit pipe".to_owned()).spawn(move || {
        let _ = opened.send(OpenOptions::new().append(true).open(path));
    })?;
    let unread = |_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, "it is a pipe that nobody reads; start its reader first"))
    };
    is_opened.recv_timeout(patience).unwrap_or_else(unread)
}

/// Lets the server write to the log, if there is one.
pub(super) fn writes(server: ServerBuilder, log: Option<&AuditLog>) -> ServerBuilder {
    match log {
        Some(log) => server.audit_log(log.clone()),
        None => server,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = pipe(&path, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe that nobody reads; start its reader first");
        // Whoever reads lets the waiting thread go, too.
        let reader = thread::spawn({
            let path = path.clone();
            move || File::open(path)
        });
        assert!(pipe(&path, Duration::from_secs(60)).is_ok());
        assert!(reader.join().unwrap().is_ok());
    }
}
