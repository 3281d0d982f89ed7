//! Defines the flags for must-gathers, shared by the commands that run their controller.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::process::Fault;
use crate::cli::value_parsers::{label, name};
use crate::controllers::mustgather::Settings;
use crate::gather::tunnel::Proxies;
use crate::gather::upload::sftp::KnownHosts;
use crate::outside;

/// The largest file of host keys in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// The largest set of authorities in bytes for the variable of a Job: the kernel's limit is twice as much.
const MAX_CA: u64 = 64 * 1024;

/// The flags about must-gathers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Must-gathers")]
pub(in crate::cli) struct MustGatherArgs {
    /// Image of admit for the containers of must-gather Jobs
    #[arg(
        long,
        value_name = "IMAGE",
        env = "OPERATOR_IMAGE",
        default_value = "admit",
        hide_env_values = true
    )]
    operator_image: String,

    /// Image whose /usr/bin/gather collects the data [default: admit collects it]
    #[arg(long, value_name = "IMAGE", env = "DEFAULT_MUST_GATHER_IMAGE", hide_env_values = true)]
    must_gather_image: Option<String>,

    /// Namespace for all must-gather Jobs, and for copies of the Secrets they need [default: that of each MustGather]
    #[arg(long, value_name = "NAMESPACE", value_parser = label)]
    job_namespace: Option<String>,

    /// File with the host keys of SFTP servers, for Secrets without the key `known_hosts`
    #[arg(long, value_name = "FILE")]
    sftp_known_hosts: Option<PathBuf>,

    /// Accept any host key of an SFTP server. Insecure: whoever answers in its place gets the password
    #[arg(long)]
    sftp_accept_any_host_key: bool,

    /// Name of the ConfigMap, in the namespace of a Job, whose ca-bundle.crt has the CAs to trust for proxies over TLS
    #[arg(long, value_name = "NAME", value_parser = name)]
    trusted_ca: Option<String>,

    /// Start to gather without checking first that the SFTP server accepts the login
    #[arg(long)]
    no_preflight: bool,
}

impl MustGatherArgs {
    /// Returns the image of this program.
    pub(in crate::cli) fn image(&self) -> &str {
        &self.operator_image
    }

    /// Converts the flags to settings. `proxy_ca` is the file of authorities to trust for proxies.
    ///
    /// # Errors
    /// For an invalid file of host keys.
    pub(in crate::cli) fn settings(&self, proxy_ca: Option<&Path>) -> Result<Settings, Fault> {
        let Self {
            operator_image,
            must_gather_image,
            job_namespace,
            sftp_known_hosts,
            sftp_accept_any_host_key,
            trusted_ca,
            no_preflight,
        } = self;
        let mut settings = Settings::new(operator_image);
        settings.rules.gather_image.clone_from(must_gather_image);
        settings.rules.job_namespace.clone_from(job_namespace);
        settings.rules.accept_any_host_key = *sftp_accept_any_host_key;
        settings.rules.trusted_ca.clone_from(trusted_ca);
        settings.rules.preflight = !no_preflight;
        settings.rules.environment = Proxies::environment(|name| std::env::var(name).ok());
        if let Some(path) = sftp_known_hosts {
            let unusable = |error: &dyn std::fmt::Display| {
                Fault::usage(format!("cannot use `{}` as --sftp-known-hosts: {error}", path.display()))
            };
            let text = outside::text(path, MAX_FILE).map_err(|error| unusable(&error))?;
            KnownHosts::parse(&text).map_err(|error| unusable(&error))?;
            settings.known_hosts = Some(text);
        }
        if let Some(path) = proxy_ca {
            let text = outside::text(path, MAX_CA).map_err(|error| {
                let path = path.display();
                Fault::usage(format!(
                    "cannot use `{path}` as --proxy-ca: {error}; larger bundles go into a ConfigMap, see --trusted-ca"
                ))
            })?;
            settings.rules.proxy_ca = Some(text);
            settings.proxy_ca = Some(path.to_owned());
        }
        if *sftp_accept_any_host_key {
            tracing::warn!(
                "--sftp-accept-any-host-key: whoever answers for an SFTP server gets the password"
            );
        }
        Ok(settings)
    }
}
