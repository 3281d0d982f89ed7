//! Reads the flags of the audit log.

use std::fs;

use admit_apiserver::{AuditFormat, AuditLog};

use crate::cli::audit_log::{self, DEFAULT_SIZE, Limits, MEGABYTE};
use crate::cli::envtest::flags::Given;
use crate::cli::process::{self, Fault};

/// Creates the audit log that the flags request. Without a policy nothing is logged, as in kube-apiserver, but with a warning.
///
/// # Errors
/// For an invalid value, an invalid policy, and a file that cannot be written.
pub(super) fn log(given: &Given) -> Result<Option<AuditLog>, Fault> {
    let read = |text: &str| match text {
        "json" => Some(AuditFormat::Json),
        "legacy" => Some(AuditFormat::Legacy),
        _ => None,
    };
    let format = given.parsed("audit-log-format", "a format, json or legacy", read)?.unwrap_or_default();
    given.must_be("audit-log-version", &["audit.k8s.io/v1"], "there is no other; leave it out")?;
    let number = |flag, default| {
        let read = |text: &str| text.parse::<u32>().ok();
        given.parsed(flag, "a number of 0 or more", read).map(|number| number.unwrap_or(default))
    };
    let days = number("audit-log-maxage", 366)?;
    let backups = number("audit-log-maxbackup", 100)?;
    let megabytes = given.parsed("audit-log-maxsize", "a number of 0 or more", |text| text.parse().ok())?;
    let policy = given.path("audit-policy-file").map(|file| audit_log::policy(&file)).transpose()?;
    let Some(file) = given.path("audit-log-path") else { return Ok(None) };
    let Some(policy) = policy else {
        process::warn("--audit-log-path: nothing is logged, as no --audit-policy-file says what is to be");
        return Ok(None);
    };
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)
            .map_err(|error| Fault::usage(format!("--audit-log-path: `{}`: {error}", folder.display())))?;
    }
    let size = match megabytes.unwrap_or(DEFAULT_SIZE) {
        0 => u64::MAX,
        megabytes => megabytes.saturating_mul(MEGABYTE),
    };
    let limits = Limits { size, backups: usize::try_from(backups).unwrap_or(usize::MAX), days };
    audit_log::open(&file, limits).map(|log| Some(log.following(policy).formatted(format)))
}
