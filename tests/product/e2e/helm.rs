//! The chart, as deploy/README.md says to install, change and remove it, with the real helm: what is stored is what the
//! release says, what others have written stays, and what is there afterwards is what was there before, but for the
//! namespace and the definitions, which helm never takes away.

use std::collections::BTreeSet;
use std::fs;

use super::apiserver::ApiServer;
use super::cluster::{Cluster, shipped};
use super::install::{printed_commands_hand_certificates_over, trusted};
use crate::deploy::helm::has_helm;
use crate::running::Workplace;
use crate::tour::{Step, fenced_in, played, steps};

/// Everything that a release could leave behind.
const KINDS: &str = "clusterrolebindings,clusterroles,configmaps,customresourcedefinitions,deployments,namespaces,\
                     networkpolicies,poddisruptionbudgets,rolebindings,roles,secrets,serviceaccounts,services,\
                     validatingwebhookconfigurations";
/// One of the definitions.
const DATAGATHERS: &str = "customresourcedefinition/datagathers.insights.openshift.io";

pub(super) fn the_chart_comes_and_goes(api: &ApiServer) {
    if !has_helm() {
        return;
    }
    let cluster = Cluster::new(api);
    let place = Workplace::new();
    fs::create_dir(place.path().join(".admit")).unwrap();
    fs::copy(api.kubeconfig(), place.kubeconfig()).unwrap();
    let before = listed(&cluster);
    let steps = steps(&fenced_in("deploy/README.md", "helm", "sh"));
    let [install, upgrade, status, rollback, uninstall] = steps.as_slice() else {
        panic!("the README has {} commands of helm", steps.len());
    };

    succeeds(&place, install);
    released(&cluster, &place, "2 2");
    printed_commands_hand_certificates_over(&cluster);
    let bundles = trusted(&cluster);
    cluster.works(&["annotate", DATAGATHERS, "example.com/seen=yes"]);
    succeeds(&place, upgrade);
    succeeds(&place, status);
    released(&cluster, &place, "3 3");
    assert!(listed(&cluster).contains("clusterrole.rbac.authorization.k8s.io/admit-certificates"));
    succeeds(&place, rollback);
    released(&cluster, &place, "2 2");
    assert_eq!(trusted(&cluster), bundles, "nothing of the chart says whom to trust");
    succeeds(&place, uninstall);

    let left = listed(&cluster);
    let definitions = |name: &&String| name.starts_with("customresourcedefinition.");
    let more: Vec<&String> = left.difference(&before).filter(|name| !definitions(name)).collect();
    assert_eq!(more, ["namespace/admit-system"]);
    assert_eq!(left.difference(&before).filter(definitions).count(), 5);
    assert!(before.is_subset(&left));

    // Once more, where there are definitions: they stay as somebody has made them.
    succeeds(&place, install);
    let seen = cluster.works(&["get", DATAGATHERS, "--output=jsonpath={.metadata.annotations}"]);
    assert_eq!(seen, r#"{"example.com/seen":"yes"}"#);
    succeeds(&place, uninstall);
    assert_eq!(listed(&cluster), left);
    cluster.works(&["delete", "-k", &shipped("deploy/crds"), "--timeout=60s"]);
}

fn succeeds(place: &Workplace, step: &Step) {
    let wrong = played(place, std::slice::from_ref(step));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The release has been stored as its manifest says, with so many replicas of each Deployment, of the image that was asked
/// for at first.
fn released(cluster: &Cluster<'_>, place: &Workplace, replicas: &str) {
    let of = |field: &str| {
        let output = format!("--output=jsonpath={{.items[*].spec.{field}}}");
        cluster.works(&["get", "deployments", "--namespace=admit-system", &output])
    };
    assert_eq!(of("replicas"), replicas);
    let image = "registry.example/admit:0.1.0";
    assert_eq!(of("template.spec.containers[*].image"), format!("{image} {image}"));
    let same = "helm get manifest admit --namespace admit-system | kubectl diff -f -";
    succeeds(place, &Step { command: same.to_owned(), prints: Vec::new() });
}

fn listed(cluster: &Cluster<'_>) -> BTreeSet<String> {
    cluster
        .works(&["get", KINDS, "--all-namespaces", "--output=name"])
        .lines()
        .map(ToOwned::to_owned)
        .collect()
}
