//! `admit obfuscate`: obfuscates collected files by rules, as the command of a Job or by hand. It needs no API
//! server.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::container::{told, variable, wait};
use crate::cli::Exit;
use crate::cli::process::{self, Fault, GRACE, Threads};
use crate::gather::must_gather::clean::{CleanError, Cleaned, Cleaner, Folder, LOG, Sink};
use crate::gather::obfuscate::rules::Ruleset;
use crate::telemetry::LogFormat;
use crate::{outside, private};

/// The largest file of rules in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// The environment variable with rules as text.
const RULES: &str = "obfuscation_rules";
/// The suffix of the name of unfinished output.
const PART: &str = ".part";

/// The flags about what is obfuscated.
#[derive(Debug, Args)]
#[command(next_help_heading = "Obfuscation")]
pub(in crate::cli) struct RuleArgs {
    /// File with rules, in the format of must-gather-clean, on what to replace and leave out [default: the variable
    /// `obfuscation_rules`; else addresses and domains are replaced by labels, Secrets and ConfigMaps left out]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Domain of the cluster to obfuscate, for rules that name none; repeatable
    #[arg(
        long,
        value_name = "NAME",
        env = "obfuscation_domains",
        value_delimiter = ',',
        hide_env_values = true
    )]
    domain: Vec<String>,
}

impl RuleArgs {
    /// Reads the rules, and prepares them.
    ///
    /// # Errors
    /// When the rules cannot be read, or are invalid.
    pub(super) fn cleaner(&self) -> Result<Cleaner, Fault> {
        let text = match &self.rules {
            None => variable(RULES),
            Some(path) => Some(outside::text(path, MAX_FILE).map_err(|error| {
                Fault::usage(format!("cannot read rules from `{}`: {error}", path.display()))
            })?),
        };
        let refused =
            |error: &dyn std::fmt::Display| Fault::usage(format!("cannot obfuscate by these rules: {error}"));
        let rules = match text {
            None => Ruleset::usual(),
            Some(text) => Ruleset::parse(&text).map_err(|error| refused(&error))?,
        };
        if self.domain.is_empty() && rules == Ruleset::usual() {
            warn!("no domain is replaced, because the cluster's domain is not known: give it with --domain");
        }
        Cleaner::new(&rules, &self.domain).map_err(|error| refused(&error))
    }
}

/// Arguments of `admit obfuscate`.
#[derive(Debug, Args)]
#[command(after_help = "\
The new folder's obfuscation.log reports what was done, without the replaced values. The input folder is not changed.

Example:
  admit obfuscate --input must-gather --output to-show --domain corp.example")]
pub(in crate::cli) struct ObfuscateArgs {
    /// Folder to read
    #[arg(
        long,
        value_name = "DIR",
        env = "must_gather_output",
        default_value = "must-gather",
        hide_env_values = true
    )]
    input: PathBuf,

    /// Folder to create for the copy; it must not exist yet
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    #[command(flatten)]
    rules: RuleArgs,

    /// File to write each original value and its replacement to; keep it from those who get the folder
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Folder in which `admit run-gather` marks its end; wait for that mark before starting [default: do not wait]
    #[arg(long, value_name = "DIR", env = "must_gather_state", hide_env_values = true)]
    wait_for: Option<PathBuf>,

    /// File to write the outcome to, in one line, such as a container's termination message file
    #[arg(long, value_name = "FILE", env = "message_file", hide_env_values = true)]
    message_file: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl ObfuscateArgs {
    pub(in crate::cli) fn run(self) -> Exit {
        process::run(Threads::Carry, self.log_format, GRACE, |shutdown| self.obfuscate(shutdown))
    }

    async fn obfuscate(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let message_file = self.message_file.clone();
        let outcome = tokio::select! {
            outcome = self.work() => outcome,
            () = shutdown.cancelled() => Err(Fault::internal("asked to stop before all was obfuscated")),
        };
        told(message_file.as_deref(), outcome)
    }

    async fn work(self) -> Result<String, Fault> {
        let Self { input, output, rules, table, wait_for, message_file: _, log_format: _ } = self;
        // Usage errors are reported before waiting.
        let cleaner = rules.cleaner()?;
        if fs::symlink_metadata(&output).is_ok() {
            return Err(Fault::usage(format!(
                "`{}` is there already: name another folder",
                output.display()
            )));
        }
        let late = match &wait_for {
            Some(folder) => wait(folder).await?,
            None => false,
        };
        let (from, to) = (input.clone(), output.clone());
        let cleaning =
            spawn_blocking(move || into_folder(cleaner, &from, &to)).await.map_err(Fault::internal)?;
        let (cleaned, originals) = cleaning.map_err(|error| failed(&error, &input))?;
        if let Some(path) = table {
            let text = serde_json::to_string_pretty(&originals).map_err(Fault::internal)?;
            let kept = private::new_file(&path)
                .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
            kept.map_err(|error| Fault::usage(format!("cannot write `{}`: {error}", path.display())))?;
        }
        let late = if late { "; the gathering ran out of time" } else { "" };
        let line = format!("{} in `{}`{late}", shown(&cleaned), output.display());
        info!("{line}");
        Ok(line)
    }
}

type Originals = std::collections::BTreeMap<String, String>;

/// Writes to a temporary name and renames it when it is complete, so that the folder never has partial contents.
fn into_folder(mut cleaner: Cleaner, from: &Path, to: &Path) -> Result<(Cleaned, Originals), CleanError> {
    let mut part = to.as_os_str().to_owned();
    part.push(PART);
    let part = PathBuf::from(part);
    match fs::remove_dir_all(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut scratch = scratch(&part)?;
    cleaner.clean(from, &mut scratch, &mut Folder::new(&part))?;
    fs::rename(&part, to)?;
    Ok(cleaner.finish())
}

/// Creates a file without a name in the folder of `path`.
fn scratch(path: &Path) -> io::Result<File> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".scratch");
    let beside = PathBuf::from(beside);
    // A leftover of a process that was killed.
    let _ = fs::remove_file(&beside);
    if let Some(above) = beside.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&beside)?;
    fs::remove_file(&beside)?;
    Ok(file)
}

/// Passes the obfuscated files of `from` to `sink`; the scratch file is beside `archive`.
///
/// # Errors
/// The errors of `cleaner`.
pub(super) fn into_sink(
    mut cleaner: Cleaner,
    from: &Path,
    archive: &Path,
    sink: &mut impl Sink,
) -> Result<Cleaned, CleanError> {
    let mut scratch = scratch(archive)?;
    cleaner.clean(from, &mut scratch, sink)?;
    Ok(cleaner.finish().0)
}

pub(super) fn failed(error: &CleanError, input: &Path) -> Fault {
    let message = format!("`{}` is not obfuscated, and nothing of it is shown: {error}", input.display());
    match error {
        CleanError::Pattern(_) | CleanError::Empty => Fault::usage(message),
        CleanError::Io(_) => Fault::internal(message),
    }
}

pub(super) fn shown(cleaned: &Cleaned) -> String {
    let Cleaned { files, left_out, replaced } = cleaned;
    let replaced: u64 = replaced.values().sum();
    format!("{files} files obfuscated, {replaced} places replaced, {left_out} files left out as {LOG} says")
}
