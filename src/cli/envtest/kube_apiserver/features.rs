//! Checks `--feature-gates` and `--runtime-config`: the server always behaves as Kubernetes 1.36 does by default. Harnesses
//! often request what is the default by now; that is accepted, and everything else is an error that names it.

use admit_apiserver::BuiltinKinds;
use thiserror::Error;

use crate::cli::envtest::flags::{Given, truth};
use crate::cli::process::Fault;

/// The gates of kube-apiserver 1.36, one per line: the name, and the default `on` or `off`.
const GATES: &str = include_str!("feature_gates.txt");

/// Why a requested feature is not available.
#[derive(Debug, PartialEq, Eq, Error)]
enum FeatureError {
    #[error("missing bool value for {0}")]
    NoValue(String),
    #[error("invalid value of {asked}: `{value}` is neither true nor false")]
    Value { asked: String, value: String },
    #[error("unrecognized feature gate: {0}; Kubernetes 1.36 has none of this name")]
    UnknownGate(String),
    #[error(
        "{name}={} is not built: it is {}, as in Kubernetes 1.36 where nobody asks; leave it out",
        !.is_on,
        if *.is_on { "on" } else { "off" }
    )]
    Gate { name: String, is_on: bool },
    #[error(
        "{0}=true is not built: versions that are off where nobody asks are not served here; leave it out, or name the \
         GROUP/VERSION that is needed"
    )]
    AllOn(String),
    #[error("{0}=false is not built: all versions are always served; leave it out")]
    AllOff(String),
    #[error("`{0}` is not GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all or api/ga")]
    NoVersion(String),
    #[error("{key}=false is not built: {version} is always served; leave it out")]
    Served { key: String, version: String },
    #[error("{key} is not built: {version} is not served here; leave it out")]
    Unserved { key: String, version: String },
}

/// # Errors
/// When something else than the default is requested.
pub(super) fn check(given: &Given) -> Result<(), Fault> {
    let each = |flag: &str, check: fn(&str) -> Result<(), FeatureError>| {
        let checked = given.list(flag).into_iter().try_for_each(check);
        checked.map_err(|why| Fault::usage(format!("--{flag}: {why}")))
    };
    each("feature-gates", gate)?;
    each("runtime-config", version)
}

fn gate(asked: &str) -> Result<(), FeatureError> {
    let (name, value) = asked.split_once('=').ok_or_else(|| FeatureError::NoValue(asked.to_owned()))?;
    let (name, on) = (name.trim(), read(asked, value)?);
    match is_on(name) {
        None => Err(FeatureError::UnknownGate(name.to_owned())),
        Some(is_on) if is_on == on => Ok(()),
        Some(is_on) => Err(FeatureError::Gate { name: name.to_owned(), is_on }),
    }
}

fn is_on(name: &str) -> Option<bool> {
    let so = GATES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(so == "on")
}

fn version(asked: &str) -> Result<(), FeatureError> {
    let (key, value) = asked.split_once('=').unwrap_or((asked, ""));
    let (key, value) = (key.trim(), value.trim());
    let on = value.is_empty() || read(asked, value)?;
    let mut parts = key.split('/');
    let named = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("api"), Some("alpha" | "beta"), None, _) if !on => return Ok(()),
        (Some("api"), Some("alpha" | "beta" | "all"), None, _) if on => {
            return Err(FeatureError::AllOn(key.to_owned()));
        }
        (Some("api"), Some("ga"), None, _) if on => return Ok(()),
        (Some("api"), Some("all" | "ga"), None, _) => {
            return Err(FeatureError::AllOff(key.to_owned()));
        }
        (Some("api"), Some("v1"), _, None) | (Some("v1"), None, ..) => "v1".to_owned(),
        (Some(group), Some(version), _, None) => format!("{group}/{version}"),
        _ => return Err(FeatureError::NoVersion(key.to_owned())),
    };
    match (BuiltinKinds.has_version(&named), on) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => Err(FeatureError::Served { key: key.to_owned(), version: named }),
        (false, true) => Err(FeatureError::Unserved { key: key.to_owned(), version: named }),
    }
}

fn read(asked: &str, value: &str) -> Result<bool, FeatureError> {
    let wrong = || FeatureError::Value { asked: asked.to_owned(), value: value.to_owned() };
    truth(value.trim()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_may_say_what_is_so() {
        for taken in [
            "SidecarContainers=true",
            " DynamicResourceAllocation=true",
            "ProcMountType = true",
            "CrossNamespaceVolumeDataSource=false",
            "AllAlpha=false",
            "ContextualLogging=T",
        ] {
            assert_eq!(gate(taken), Ok(()), "{taken}");
        }
        for (refused, why) in [
            (
                "CrossNamespaceVolumeDataSource=true",
                "CrossNamespaceVolumeDataSource=true is not built: it is off",
            ),
            ("SidecarContainers=false", "SidecarContainers=false is not built: it is on"),
            ("AllAlpha=true", "AllAlpha=true is not built: it is off"),
            ("PodAffinityNamespaceSelector=true", "unrecognized feature gate: PodAffinityNamespaceSelector;"),
            ("Sidecar=true", "unrecognized feature gate: Sidecar;"),
            ("=true", "unrecognized feature gate: ;"),
            ("SidecarContainers", "missing bool value for SidecarContainers"),
            ("SidecarContainers=on", "invalid value of SidecarContainers=on: `on`"),
        ] {
            let told = gate(refused).unwrap_err().to_string();
            assert!(told.starts_with(why), "{refused}: {told}");
        }
    }

    #[test]
    fn each_gate_is_said_once() {
        let names: Vec<&str> = GATES.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(names.is_sorted_by(|a, b| a < b));
        assert!(GATES.lines().all(|line| line.ends_with(" on") || line.ends_with(" off")));
    }

    #[test]
    fn versions_may_say_what_is_so() {
        for taken in [
            "api/ga=true",
            "api/beta=false",
            "api/alpha=false",
            "api/v1",
            "v1=true",
            "api/v1/pods=true",
            "resource.k8s.io/v1=true",
            "apps/v1/deployments",
            "apiextensions.k8s.io/v1=1",
            "resource.k8s.io/v1beta1=false",
        ] {
            assert_eq!(version(taken), Ok(()), "{taken}");
        }
        for (refused, why) in [
            ("api/all=false", "api/all=false is not built"),
            ("api/all", "api/all=true is not built: versions that are off"),
            ("api/beta=true", "api/beta=true is not built: versions that are off"),
            ("api/alpha=1", "api/alpha=true is not built: versions that are off"),
            ("apps/v1=false", "apps/v1=false is not built: apps/v1 is always served"),
            (
                "resource.k8s.io/v1beta2=true",
                "resource.k8s.io/v1beta2 is not built: resource.k8s.io/v1beta2 is not",
            ),
            (
                "apps/v1beta1/deployments",
                "apps/v1beta1/deployments is not built: apps/v1beta1 is not served here",
            ),
            ("apps", "`apps` is not GROUP/VERSION"),
            ("apps/v1/deployments/scale", "`apps/v1/deployments/scale` is not GROUP/VERSION"),
            ("apps/v1=on", "invalid value of apps/v1=on: `on`"),
        ] {
            let told = version(refused).unwrap_err().to_string();
            assert!(told.starts_with(why), "{refused}: {told}");
        }
    }
}
