//! The settings of the controller of MustGathers.

use std::path::PathBuf;
use std::time::Duration;

use crate::controllers::kit::clock::Clock;
use crate::gather::tunnel::Proxies;

/// How long a Pod may be kept from starting by what does not pass by itself: time for a registry that fails once, or for a
/// volume claim that is made after its MustGather. Less than the two minutes after which somebody who waits has to know.
const STUCK_FOR: Duration = Duration::from_secs(90);

/// The settings that the plan depends on.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Image of this program, which the containers of ours are of.
    pub image: String,
    /// The image whose `/usr/bin/gather` collects; this program does if there is none.
    pub gather_image: Option<String>,
    /// The namespace of all Jobs; if there is none, each is in that of its MustGather.
    pub job_namespace: Option<String>,
    /// Whether to accept any host key: then any server at the address gets the password.
    pub accept_any_host_key: bool,
    /// ConfigMap with `ca-bundle.crt`, in the namespace of the Job.
    pub trusted_ca: Option<String>,
    /// Authorities to trust for proxies, PEM, which a Job is handed.
    pub proxy_ca: Option<String>,
    /// The proxies of this process, for values that neither the object nor the cluster sets.
    pub environment: Proxies,
    /// Whether to check the login at the SFTP server before anything is gathered.
    pub preflight: bool,
    /// How long a Pod may be kept from starting by what does not pass by itself, before its MustGather fails.
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
    /// Host keys for Secrets that have none, as text.
    pub known_hosts: Option<String>,
    /// PEM file of authorities to trust for a proxy under TLS, when this process looks at the SFTP server.
    pub proxy_ca: Option<PathBuf>,
    pub clock: Clock,
}

impl Settings {
    pub fn new(image: &str) -> Self {
        Self { rules: Rules::new(image), known_hosts: None, proxy_ca: None, clock: Clock::default() }
    }
}
