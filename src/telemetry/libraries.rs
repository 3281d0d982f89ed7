//! Filters log lines of libraries, whatever `RUST_LOG` requests.
//!
//! Some libraries log data of their connections at levels that people enable when something is wrong: the Kubernetes client logs
//! each refusal as received, which quotes the refused object, and, as a warning, the whole response that it cannot parse, which may
//! be a Secret; the PostgreSQL client logs each statement, and the server's messages. Their callers report what matters, without
//! secrets. So these are never logged, and libraries that were not reviewed log nothing below INFO.

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

/// Targets that are never logged.
const SILENT: [&str; 3] = ["kube_client::client", "kube_runtime::watcher", "tokio_postgres"];

/// Targets that were reviewed: they log connections, frames, sizes and names of objects, but never contents. This program's own
/// targets are among them, and log no secret.
const PLAIN: [&str; 20] = [
    "admit",
    "admit_apiserver",
    "admit_cel",
    "admit_policy",
    "axum",
    "h2",
    "hyper",
    "hyper_rustls",
    "hyper_util",
    "kube_client::client::builder",
    "kube_runtime",
    "mio",
    "opentelemetry",
    "opentelemetry_sdk",
    "russh",
    "russh_sftp",
    "rustls",
    "tokio_util",
    "tower",
    "tower_http",
];

/// Whether a log line or a span may be written.
#[must_use]
pub fn may_be_told(metadata: &Metadata<'_>) -> bool {
    is_told(metadata.target(), *metadata.level())
}

fn is_told(target: &str, level: Level) -> bool {
    let is_of =
        |names: &[&str]| names.iter().filter(|name| is_below(target, name)).map(|name| name.len()).max();
    match (is_of(&PLAIN), is_of(&SILENT)) {
        // The longer prefix counts.
        (plain, Some(silent)) => plain.is_some_and(|plain| plain > silent),
        (Some(_), None) => true,
        (None, None) => level <= Level::INFO,
    }
}

fn is_below(target: &str, module: &str) -> bool {
    target.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Returns the targets that a filter names although not all of their lines are written.
pub(super) fn asked_in_vain(filter: &str) -> Vec<&str> {
    let named = filter.split(',').filter_map(|directive| {
        let (name, level) = directive.trim().split_once('=').unwrap_or((directive.trim(), "trace"));
        let name = name.split('[').next().unwrap_or_default();
        let is_a_level = name.is_empty() || name.parse::<LevelFilter>().is_ok();
        let level = level.parse::<LevelFilter>().ok()?.into_level()?;
        (!is_a_level && !is_told(name, level)).then_some(name)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_over_connections_is_never_told() {
        let levels = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];
        let told = |target: &str| levels.map(|level| is_told(target, level));
        for silent in [
            "kube_client::client",
            "kube_client::client::middleware",
            "kube_runtime::watcher",
            "tokio_postgres::prepare",
        ] {
            assert_eq!(told(silent), [false; 5], "{silent}");
        }
        for plain in [
            "admit::controllers::cyndi",
            "admit_policy",
            "kube_client::client::builder",
            "hyper::proto::h1::conn",
        ] {
            assert_eq!(told(plain), [true; 5], "{plain}");
        }
        for unknown in ["some_library", "kube_client::api", "admitted", "tokio_postgres_rustls", "log"] {
            assert_eq!(told(unknown), [true, true, true, false, false], "{unknown}");
        }
    }

    #[test]
    fn filters_that_ask_in_vain_are_found() {
        let filter = "debug,kube_client::client=trace, tokio_postgres ,hyper=debug,admit[work]=trace,some_library=info,other=debug,kube_client::client=off,off";
        assert_eq!(asked_in_vain(filter), ["kube_client::client", "tokio_postgres", "other"]);
        assert!(asked_in_vain("warn").is_empty());
    }
}
