//! How API servers are reached.

use kube::Config;

/// `config` without a proxy that the environment names. Clients take one from there for each kubeconfig and then refuse to use
/// it; what the environment says is for uploads. A proxy that a kubeconfig names itself stays, and is refused by name.
#[must_use]
pub fn straight(mut config: Config) -> Config {
    let named = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let environment = named("HTTPS_PROXY").or_else(|| named("https_proxy")).and_then(|url| url.parse().ok());
    if config.proxy_url.is_some() && config.proxy_url == environment {
        config.proxy_url = None;
    }
    config
}
