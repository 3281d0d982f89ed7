//! Defines the settings of the controller of MustGathers.

use std::path::PathBuf;
use std::time::Duration;

use crate::controllers::kit::clock::Clock;
use crate::gather::tunnel::Proxies;

/// How long a Pod may be kept from starting by a reason that is rarely temporary: time for a registry that fails once, or for a
/// volume claim that is created after its MustGather. It is below the two minutes after which users expect a result.
const STUCK_FOR: Duration = Duration::from_secs(90);

/// The settings that the plan depends on.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The image of this program, for its own containers.
    pub image: String,
    /// The image whose `/usr/bin/gather` collects; this program does if there is none.
    pub gather_image: Option<String>,
    /// The namespace of all Jobs; if there is none, each is in that of its MustGather.
    pub job_namespace: Option<String>,
    /// Whether to accept any host key: then any server at the address gets the password.
    pub accept_any_host_key: bool,
    /// The ConfigMap with `ca-bundle.crt` in the namespace of the Job.
    pub trusted_ca: Option<String>,
    /// Authorities to trust for proxies, PEM, which are passed to a Job.
    pub proxy_ca: Option<String>,
    /// The proxies of this process, for values that neither the object nor the cluster sets.
    pub environment: Proxies,
    /// Whether to check the login at the SFTP server before anything is gathered.
    pub preflight: bool,
    /// How long a Pod may be kept from starting by a reason that is rarely temporary, before its MustGather fails.
    pub stuck_for: Duration,
}

impl Rules {
    pub fn new(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            gather_image: None,
            job_namespace: None,
            accept_any_host_key: false,
            trusted_ca: None,
            proxy_ca: None,
            environment: Proxies::default(),
            preflight: true,
            stuck_for: STUCK_FOR,
        }
    }
}

/// All settings of the controller.
#[derive(Clone, Debug)]
pub struct Settings {
    pub rules: Rules,
    /// Host keys for Secrets without any, as text.
    pub known_hosts: Option<String>,
    /// A PEM file of authorities for TLS proxies, for checks of the SFTP server by this process.
    pub proxy_ca: Option<PathBuf>,
    pub clock: Clock,
}

impl Settings {
    pub fn new(image: &str) -> Self {
        Self { rules: Rules::new(image), known_hosts: None, proxy_ca: None, clock: Clock::default() }
    }
}
