//! Creates clients of clusters from kubeconfigs. Errors must not show secrets: YAML parsers quote the lines around a
//! mistake, and one of them may be a token.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::process::Fault;
use crate::controllers::kit::client::straight;
use crate::telemetry::{Outside, Secrets};

/// Fields of a kubeconfig with secret values.
const SECRET: [&str; 3] = ["token", "password", "client-key-data"];

/// Creates a client from `kubeconfig`, or with the defaults of kubectl and of Pods.
pub(super) async fn client(kubeconfig: Option<PathBuf>) -> Result<Client, Fault> {
    client_with(config(kubeconfig).await?)
}

/// Creates a client for a context of the kubeconfig, or for its current one.
pub(super) async fn client_of_context(kubeconfig: PathBuf, context: Option<String>) -> Result<Client, Fault> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    client_with(config_with(Some(kubeconfig), options).await?)
}

pub(super) fn client_with(config: Config) -> Result<Client, Fault> {
    Client::try_from(config).map_err(|error| no_client(&error))
}

pub(super) fn no_client(error: &kube::Error) -> Fault {
    Fault::usage(format!("cannot make a client: {error}"))
}

pub(super) async fn config(kubeconfig: Option<PathBuf>) -> Result<Config, Fault> {
    config_with(kubeconfig, KubeConfigOptions::default()).await
}

async fn config_with(kubeconfig: Option<PathBuf>, options: KubeConfigOptions) -> Result<Config, Fault> {
    // The file may be a pipe, or name further files and programs to run, so it is read on a blocking thread.
    let runtime = Handle::current();
    let making = spawn_blocking(move || runtime.block_on(config_of(kubeconfig, &options)));
    making.await.map_err(Fault::internal)?
}

async fn config_of(kubeconfig: Option<PathBuf>, options: &KubeConfigOptions) -> Result<Config, Fault> {
    let Some(path) = kubeconfig else {
        let none = |error: &dyn std::fmt::Display| {
            let error = none_found(error);
            Fault::usage(format!("no cluster is configured: {error}; name a kubeconfig with --kubeconfig"))
        };
        let config = Config::infer().await.map_err(|error| none(&error))?;
        return straight(config).map_err(|error| none(&error));
    };
    let unusable = |error: &dyn std::fmt::Display| {
        let error = unreadable(&path, error);
        let (path, remedy) = (path.display(), "mend it, or name another with --kubeconfig");
        Fault::usage(format!("cannot use the kubeconfig `{path}`: {error}; {remedy}"))
    };
    let file = Kubeconfig::read_from(&path).map_err(|error| unusable(&error))?;
    let config = Config::from_custom_kubeconfig(file, options).await.map_err(|error| unusable(&error))?;
    let config = straight(config).map_err(|error| unusable(&error))?;
    // Invalid keys and certificates are found here, while the file can still be named in the error.
    Client::try_from(config.clone()).map_err(|error| unusable(&error))?;
    Ok(config)
}

/// Creates a client of the cluster that this Pod runs in, ignoring any kubeconfig.
pub(super) fn client_in_cluster() -> Result<Client, Fault> {
    let outside = |error: &dyn std::fmt::Display| {
        Fault::usage(format!("no Pod of a cluster: {error}; name a kubeconfig with --kubeconfig"))
    };
    let config = Config::incluster().map_err(|error| outside(&error))?;
    Client::try_from(config).map_err(|error| outside(&error))
}

/// Returns the error about the kubeconfig at `path`: only its first line, since the rest quotes the file.
fn unreadable(path: &Path, error: &dyn Display) -> Outside {
    // Only regular files are read again: others may never end, and have no secrets to remove.
    let text = if path.is_file() { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    first_line(error, &Secrets::of(secrets(&text)))
}

/// Returns the error if no kubeconfig was named and none was found.
fn none_found(error: &dyn Display) -> Outside {
    first_line(error, &Secrets::default())
}

fn first_line(error: &dyn Display, secrets: &Secrets) -> Outside {
    Outside::of(error.to_string().lines().next().unwrap_or_default(), secrets)
}

/// Finds the secret values line by line, as the file need not be valid YAML.
fn secrets(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| SECRET.iter().filter_map(move |key| after(line, key)))
}

/// Returns the value after `key:` in a line, without YAML quotes.
fn after<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(key)?;
    let value = rest.trim_start_matches(['"', '\'', ' ']).strip_prefix(':')?;
    Some(value.trim_matches(|c: char| c.is_whitespace() || "\"'{},".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_nothing_of_a_kubeconfig() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let text = "users:\n- user: {password: 'CANARY-4711'}\n- user:\n    token: \"CANARYTOKEN\"\n";
        fs::write(&path, text).unwrap();
        let error =
            "line 4: invalid type: string \"CANARYTOKEN\", expected CANARY-4711\n  |\n4 | token: CANARYTOKEN";
        let told = unreadable(&path, &error).into_string();
        assert_eq!(told, "line 4: invalid type: string \"[redacted]\", expected [redacted]");
        assert_eq!(none_found(&"one\ntwo").as_str(), "one");
    }
}
