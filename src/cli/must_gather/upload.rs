//! `admit upload`: uploads one folder as one archive to a support case; in the container `upload` of a must-gather's
//! Job, or by hand. It needs no API server, and no token for one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::container::{told, variable, wait};
use super::obfuscate::{RuleArgs, failed, into_sink, shown};
use crate::cli::Exit;
use crate::cli::process::{self, Fault, GRACE, Threads};
use crate::gather::must_gather::bundle::{Bundled, bundle};
use crate::gather::must_gather::clean::{Archive, CleanError, Cleaned, Cleaner};
use crate::gather::tunnel::{Host, Proxies};
use crate::gather::upload::sftp::{
    Credentials, Delivered, KnownHosts, Patience, RemoteName, Sftp, SftpError, Trust,
};
use crate::telemetry::LogFormat;
use crate::{outside, private};

/// The largest file with a password or host keys in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// Environment variables without a flag, so that their values are not shown anywhere.
const PASSWORD: &str = "password";
const KNOWN_HOSTS: &str = "known_hosts";
/// The variable with the authorities for proxies as PEM, in addition to those of the file.
const PROXY_CA: &str = "proxy_ca_pem";
/// The variable with the name of the archive without `.tar.gz`.
const PREFIX: &str = "FILENAME_PREFIX";

/// Arguments of `admit upload`.
#[derive(Debug, Args)]
#[command(after_help = "\
The password comes from the variable `password` or from a file, host keys from a file or from the variable `known_hosts`;
proxies from https_proxy, http_proxy and no_proxy.

Exit codes: 0 the archive was sent, 1 the gathering failed and nothing is sent, 2 something has to be corrected first, 4 the \
server was not reached or did not accept the archive.

Example:
  admit upload --output must-gather --work . --case 0412 --username eve --known-hosts hosts")]
pub(in crate::cli) struct UploadArgs {
    /// Folder to upload
    #[arg(
        long,
        value_name = "DIR",
        env = "must_gather_output",
        default_value = "/must-gather",
        hide_env_values = true
    )]
    output: PathBuf,

    /// Folder to store the archive in until it is sent
    #[arg(
        long,
        value_name = "DIR",
        env = "must_gather_upload",
        default_value = "/must-gather-upload",
        hide_env_values = true
    )]
    work: PathBuf,

    /// Folder in which `admit run-gather` marks its end; wait for that mark before starting [default: do not wait]
    #[arg(long, value_name = "DIR", env = "must_gather_state", hide_env_values = true)]
    wait_for: Option<PathBuf>,

    /// Id of the support case; the archive's name on the server begins with it
    #[arg(long, value_name = "ID", env = "caseid", hide_env_values = true)]
    case: String,

    /// SFTP server: a host name or address, with `:port` unless it is 22
    #[arg(
        long,
        value_name = "HOST",
        env = "host",
        default_value = "sftp.access.redhat.com",
        hide_env_values = true
    )]
    host: String,

    /// User name for the login
    #[arg(long, value_name = "NAME", env = "username", hide_env_values = true)]
    username: String,

    /// File with the password [default: the environment variable `password`]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Upload into the folder named after the user, as internal accounts require
    #[arg(long, env = "internal_user", hide_env_values = true)]
    internal_user: bool,

    /// File with host keys, in ssh's known_hosts format [default: the environment variable `known_hosts`]
    #[arg(long, value_name = "FILE", env = "known_hosts_file", hide_env_values = true)]
    known_hosts: Option<PathBuf>,

    /// Accept any host key. Insecure: whoever answers in the host's place gets the password
    #[arg(long, env = "accept_any_host_key", hide_env_values = true)]
    accept_any_host_key: bool,

    /// PEM file with CAs to trust for a proxy over TLS, in addition to the system's
    #[arg(long, value_name = "FILE", env = "proxy_ca", hide_env_values = true)]
    proxy_ca: Option<PathBuf>,

    /// Obfuscate what the rules say or, without rules, addresses, domains, Secrets and ConfigMaps
    #[arg(long, env = "obfuscate", hide_env_values = true)]
    obfuscate: bool,

    #[command(flatten)]
    rules: RuleArgs,

    /// File to write the outcome to, in one line, such as a container's termination message file
    #[arg(long, value_name = "FILE", env = "message_file", hide_env_values = true)]
    message_file: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl UploadArgs {
    pub(in crate::cli) fn run(self) -> Exit {
        process::run(Threads::Carry, self.log_format, GRACE, |shutdown| self.upload(shutdown))
    }

    async fn upload(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let message_file = self.message_file.clone();
        let outcome = tokio::select! {
            outcome = self.work() => outcome,
            () = shutdown.cancelled() => Err(Fault::internal("asked to stop before the archive was sent")),
        };
        told(message_file.as_deref(), outcome)
    }

    /// Does the work, and returns a one-line summary.
    async fn work(self) -> Result<String, Fault> {
        // Usage errors are reported before waiting.
        let sftp = self.sftp()?;
        let cleaner = if self.obfuscate { Some(self.rules.cleaner()?) } else { None };
        let began = Timestamp::now();
        let remote = self.remote(began)?;
        let out_of_time = match &self.wait_for {
            Some(folder) => wait(folder).await?,
            None => false,
        };
        let archive = self.work.join(local_name(began));
        let made = pack(&self.output, &archive, cleaner).await;
        let sent = match made {
            Ok(hidden) => send(&sftp, &archive, &remote).await.map(|sent| (sent, hidden)),
            Err(fault) => Err(fault),
        };
        // The archive is not needed any more.
        let _ = fs::remove_file(&archive);
        let (Delivered { name, bytes, verified }, hidden) = sent?;
        let late = if out_of_time { "; the gathering ran out of time" } else { "" };
        let seen = if verified { "" } else { ", unverified: the server shows nothing of what it takes" };
        let line = format!("sent {name} of {bytes} bytes to {}{seen}{hidden}{late}", sftp.host);
        info!("{line}");
        Ok(line)
    }

    fn remote(&self, now: Timestamp) -> Result<RemoteName, Fault> {
        let user = self.internal_user.then_some(self.username.as_str());
        RemoteName::new(&self.case, &local_name(now), user).map_err(Fault::usage)
    }

    fn sftp(&self) -> Result<Sftp, Fault> {
        let host: Host = self.host.parse().map_err(Fault::usage)?;
        let proxies = Proxies::environment(variable);
        Ok(Sftp {
            credentials: Credentials { username: self.username.clone(), password: self.password()? },
            trust: self.trust()?,
            proxy: proxies.to_sftp(&host).map_err(Fault::usage)?,
            proxy_ca: self.proxy_ca()?,
            patience: Patience::default(),
            host,
        })
    }

    /// Writes the authorities of the variable and of the file into one file.
    fn proxy_ca(&self) -> Result<Option<PathBuf>, Fault> {
        let Some(pem) = variable(PROXY_CA) else { return Ok(self.proxy_ca.clone()) };
        let more = match &self.proxy_ca {
            // The file of an optional ConfigMap may be missing.
            Some(path) if path.exists() => text(path, "authorities")?,
            _ => String::new(),
        };
        let all = self.work.join(".proxy-ca.pem");
        let made = private::replace(&all, &format!("{pem}\n{more}"));
        made.map_err(|error| Fault::internal(format!("cannot write `{}`: {error}", all.display())))?;
        Ok(Some(all))
    }

    fn password(&self) -> Result<String, Fault> {
        let password = match &self.password_file {
            Some(path) => text(path, "the password")?.trim_end_matches(['\r', '\n']).to_owned(),
            None => variable(PASSWORD).unwrap_or_default(),
        };
        if self.username.is_empty() || password.is_empty() {
            return Err(Fault::usage(
                "user name and password must not be empty: give --username, and --password-file or `password`",
            ));
        }
        Ok(password)
    }

    fn trust(&self) -> Result<Trust, Fault> {
        if self.accept_any_host_key {
            return Ok(Trust::AcceptAny);
        }
        let known = match &self.known_hosts {
            Some(path) => text(path, "host keys")?,
            None => variable(KNOWN_HOSTS).unwrap_or_default(),
        };
        KnownHosts::parse(&known).map(Trust::Known).map_err(Fault::usage)
    }
}

fn text(path: &Path, what: &str) -> Result<String, Fault> {
    outside::bytes_of_any(path, MAX_FILE)
        .map_err(|error| error.to_string())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not text".to_owned()))
        .map_err(|error| Fault::usage(format!("cannot read {what} from `{}`: {error}", path.display())))
}

/// Returns the archive's name: the traditional one, unless the variable has another.
fn local_name(now: Timestamp) -> String {
    let prefix =
        variable(PREFIX).unwrap_or_else(|| format!("must-gather-{}", now.strftime("%Y%m%d_%H%M%SZ")));
    format!("{prefix}.tar.gz")
}

/// Creates the archive; returns the part of the summary about what was obfuscated.
async fn pack(output: &Path, archive: &Path, cleaner: Option<Cleaner>) -> Result<String, Fault> {
    let (from, to) = (output.to_owned(), archive.to_owned());
    let making = spawn_blocking(move || -> Result<_, CleanError> {
        let file: File = private::new_file(&to)?;
        let out = io::BufWriter::new(&file);
        let made = match cleaner {
            None => Made::Whole(bundle(&from, out)?),
            Some(cleaner) => {
                let root = from.canonicalize()?;
                let root = root.file_name().map_or_else(|| Path::new("must-gather"), Path::new);
                Made::Obfuscated(into_sink(cleaner, &from, &to, &mut Archive::new(out, root))?)
            }
        };
        file.sync_data()?;
        Ok(made)
    });
    match making.await.map_err(Fault::internal)? {
        Ok(Made::Whole(bundled)) => {
            for path in &bundled.incomplete {
                warn!("not in the archive, or not whole: {path}");
            }
            let Bundled { files, bytes, incomplete_count: incomplete, .. } = bundled;
            info!(files, bytes, incomplete, "archive made");
            Ok(String::new())
        }
        Ok(Made::Obfuscated(cleaned)) => Ok(format!("; {}", shown(&cleaned))),
        Err(CleanError::Io(error)) => Err(Fault::internal(format!(
            "cannot make `{}` of `{}`: {error}",
            archive.display(),
            output.display()
        ))),
        Err(error) => Err(failed(&error, output)),
    }
}

/// The result of creating the archive.
enum Made {
    Whole(Bundled),
    Obfuscated(Cleaned),
}

async fn send(sftp: &Sftp, archive: &Path, remote: &RemoteName) -> Result<Delivered, Fault> {
    sftp.upload(archive, remote).await.map_err(|error| match error {
        SftpError::Authentication | SftpError::NoMethod(_) | SftpError::HostKey(_) => Fault::usage(error),
        error => Fault::internal(error),
    })
}
