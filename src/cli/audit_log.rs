//! Opens the file of an audit log, and reads the policy that selects what is logged.

mod rotated;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use admit_apimachinery::yaml::Position;
use admit_apiserver::{AuditLog, AuditPolicy};

pub(super) use self::rotated::Limits;
use self::rotated::Rotated;
use super::load;
use super::process::{self, Fault};

/// How long to wait until somebody opens a pipe for reading.
const PATIENCE: Duration = Duration::from_secs(3);
/// The bytes of a megabyte as kube-apiserver counts.
pub(super) const MEGABYTE: u64 = 1 << 20;
/// The default size limit of a log in megabytes, that of kube-apiserver.
pub(super) const DEFAULT_SIZE: u64 = 100;

/// Opens a log with access for its owner only; existing contents stay. `-` is standard output.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn open(file: &Path, limits: Limits) -> Result<AuditLog, Fault> {
    if file == Path::new("-") {
        return AuditLog::to(io::stdout()).map_err(Fault::internal);
    }
    let refused =
        |error: &dyn std::fmt::Display| Fault::usage(format!("cannot write `{}`: {error}", file.display()));
    let there = fs::metadata(file).ok();
    if there.as_ref().is_some_and(|there| there.file_type().is_fifo()) {
        let pipe = pipe(file, PATIENCE).map_err(|error| refused(&error))?;
        return AuditLog::to(pipe).map_err(Fault::internal);
    }
    if let Some(there) = there.as_ref().filter(|there| !there.is_file()) {
        if there.is_dir() {
            return Err(refused(&"it is a folder"));
        }
        let device = OpenOptions::new().append(true).open(file).map_err(|error| refused(&error))?;
        return AuditLog::to(device).map_err(Fault::internal);
    }
    if let Some(mode) = there.map(|there| there.permissions().mode() & 0o777).filter(|mode| mode & 0o077 != 0)
    {
        process::warn(&format!(
            "`{}` is open to others (mode {mode:04o}) and stays so: it tells who did what, and what was written; \
             `chmod 600` closes it",
            file.display()
        ));
    }
    let log = Rotated::open(file, limits).map_err(|error| refused(&error))?;
    AuditLog::to(log).map_err(Fault::internal)
}

/// Reads the policy in a file, an `audit.k8s.io/v1` `Policy`.
///
/// # Errors
/// When the file cannot be read, or has no such policy.
pub(super) fn policy(file: &Path) -> Result<AuditPolicy, Fault> {
    let text = load::text(file)
        .map_err(|fault| Fault { message: format!("--audit-policy-file: {fault}"), ..fault })?;
    let shown = file.display();
    let policy = AuditPolicy::parse(&text)
        .map_err(|error| Fault::usage(format!("--audit-policy-file: {shown}:{error}")))?;
    for (Position { line, column }, field) in policy.unknown_fields() {
        process::warn(&format!(
            "{shown}:{line}:{column}: `{field}` is no field of a policy, and says nothing"
        ));
    }
    Ok(policy)
}

/// Opens a pipe for writing. That blocks until somebody reads it, so it is done by a thread, which is abandoned after a timeout.
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
        // The reader also unblocks the waiting thread.
        let reader = thread::spawn({
            let path = path.clone();
            move || File::open(path)
        });
        assert!(pipe(&path, Duration::from_secs(60)).is_ok());
        assert!(reader.join().unwrap().is_ok());
    }
}
