//! Answers health checks: `/livez`, `/readyz` and `/healthz` as a whole, with details (`?verbose`) and by check
//! (`/livez/etcd`), and as metrics in `/metrics/slis`.
//!
//! The checks have kube-apiserver's names, so that probes of a single check work. A check of `poststarthook/` reports
//! that a part of the startup is complete, which is always true once this server answers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use admit_apimachinery::go;
use axum::response::Response;

use super::respond;
use crate::call::Query;
use crate::server::Server;

/// The name of a check, and whether it passes.
type Check = (String, bool);

const HOOKS: [&str; 32] = [
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-wait-for-first-sync",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    Health,
    Live,
    Ready,
}

impl Probe {
    const ALL: [Self; 3] = [Self::Health, Self::Live, Self::Ready];

    fn name(self) -> &'static str {
        match self {
            Self::Health => "healthz",
            Self::Live => "livez",
            Self::Ready => "readyz",
        }
    }

    /// Returns the checks of the probe, including those that other parts of the process report.
    fn checks(self, server: &Server) -> Vec<Check> {
        let first: &[&str] = match self {
            Self::Health | Self::Live => &["ping", "log", "loopback-serving-certificate", "etcd"],
            Self::Ready => &["ping", "log", "informer-sync"],
        };
        let hooks = HOOKS.iter().filter(|hook| self == Self::Ready || **hook != "shutdown");
        let mut checks: Vec<Check> =
            first.iter().chain(hooks).map(|name| ((*name).to_owned(), true)).collect();
        if self == Self::Ready {
            checks.extend(server.parts());
            // Not part of liveness, as reads work while the store takes no writes.
            checks.extend(server.registry().store.takes_writes().map(|takes| ("store".to_owned(), takes)));
        }
        checks
    }
}

/// Answers `/readyz`, `/readyz?verbose`, `/readyz/CHECK`, and the same for `/livez` and `/healthz`. None for other paths.
pub(super) fn answer(server: &Server, path: &str, query: &Query) -> Option<Response> {
    let path = path.strip_prefix('/')?;
    let (name, check) = path.split_once('/').map_or((path, None), |(name, check)| (name, Some(check)));
    let probe = Probe::ALL.into_iter().find(|probe| probe.name() == name)?;
    let checks = probe.checks(server);
    match check {
        None => {
            let (passes, text) = whole(probe, &checks, &query.all("exclude"));
            Some(match passes {
                true if query.get("verbose").is_none() => respond::text(200, "ok"),
                true => respond::text(200, text),
                false => respond::text(500, text),
            })
        }
        Some(check) => {
            let (_, passes) = checks.iter().find(|(name, _)| name == check)?;
            Some(match passes {
                true => respond::shown_text("ok"),
                false => respond::text(500, "internal server error: not ready\n"),
            })
        }
    }
}

/// Returns whether the path is that of all checks of a probe.
pub(super) fn is_whole(path: &str) -> bool {
    Probe::ALL.into_iter().any(|probe| path.strip_prefix('/') == Some(probe.name()))
}

/// Returns whether all checks pass except those that are `excluded`, and the report as text.
fn whole(probe: Probe, checks: &[Check], excluded: &[&str]) -> (bool, String) {
    let (mut text, mut passed) = (String::new(), true);
    for (name, passes) in checks {
        // Writing to a string cannot fail.
        let _ = match (passes, excluded.contains(&name.as_str())) {
            (_, true) => writeln!(text, "[+]{name} excluded: ok"),
            (true, false) => writeln!(text, "[+]{name} ok"),
            (false, false) => {
                passed = false;
                writeln!(text, "[-]{name} failed: reason withheld")
            }
        };
    }
    let unknown: BTreeSet<_> =
        excluded.iter().filter(|name| !checks.iter().any(|(known, _)| known == *name)).collect();
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().map(|name| go::quote(name)).collect();
        let unknown = unknown.join(",");
        let _ = writeln!(text, "warn: some health checks cannot be excluded: no matches for {unknown}");
    }
    let _ = writeln!(text, "{} check {}", probe.name(), if passed { "passed" } else { "failed" });
    (passed, text)
}

/// Returns the paths of all probes and checks.
pub(super) fn paths(server: &Server) -> Vec<String> {
    let of = |probe: Probe| {
        let root = format!("/{}", probe.name());
        let checks = probe.checks(server).into_iter().map(|(name, _)| format!("/{}/{name}", probe.name()));
        std::iter::once(root).chain(checks).collect::<Vec<_>>()
    };
    Probe::ALL.into_iter().flat_map(of).collect()
}

/// Returns the metrics of `/metrics/slis`: 1 for each check that passes.
pub(super) fn indicators(server: &Server) -> String {
    let mut text = String::from("# TYPE kubernetes_healthcheck gauge\n");
    for probe in Probe::ALL {
        for (name, passes) in probe.checks(server) {
            let kind = probe.name();
            let _ =
                writeln!(text, "kubernetes_healthcheck{{name={name:?},type={kind:?}}} {}", u8::from(passes));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_count_unless_they_are_excluded() {
        let checks = [("ping", true), ("etcd", false), ("log", false)];
        let checks = checks.map(|(name, passes)| (name.to_owned(), passes));
        let (passed, text) = whole(Probe::Ready, &checks, &["etcd"]);
        assert!(!passed);
        assert_eq!(
            text,
            "[+]ping ok\n[+]etcd excluded: ok\n[-]log failed: reason withheld\nreadyz check failed\n"
        );
        let (passed, text) = whole(Probe::Live, &checks, &["etcd", "z", "log", "a"]);
        assert!(passed);
        assert_eq!(
            text,
            "[+]ping ok\n[+]etcd excluded: ok\n[+]log excluded: ok\n\
             warn: some health checks cannot be excluded: no matches for \"a\",\"z\"\nlivez check passed\n"
        );
    }
}
