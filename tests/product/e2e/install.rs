//! The manifests: an API server takes them from kubectl in every way there is, with strict checks of every field that it
//! knows, and what it has then is what they say.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::apiserver::ApiServer;
use super::cluster::{Cluster, said, shipped};
use crate::deploy::{CERTIFICATES, base, generate};

/// Kinds that the manifests use and other projects define, as far as an API server has to know them.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("cert-manager.io", "Certificate", "certificates"),
    ("cert-manager.io", "Issuer", "issuers"),
    ("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
    ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
];

/// Every way to have certificates, on trial; then the shipped base: applied, compared, applied by the server, and deleted.
pub(super) fn manifests_are_taken(api: &ApiServer) {
    let cluster = Cluster::new(api);
    let foreign = cluster.place.path("foreign.yaml");
    std::fs::write(&foreign, FOREIGN.iter().map(definition).collect::<String>()).unwrap();
    cluster.works(&["apply", "-f", foreign.to_str().unwrap()]);
    cluster.works(&["apply", "-f", &shipped("deploy/namespace.yaml")]);
    for certificates in CERTIFICATES {
        let folder = base(&[&format!("certificates={certificates}"), "monitoring=true"]);
        let deploy = folder.path().join("deploy").display().to_string();
        // Definitions of others are known a moment after they are stored.
        let tried = cluster.until(
            || cluster.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-k", &deploy]),
            |output| output.status.success(),
        );
        let (out, err) = (String::from_utf8_lossy(&tried.stdout), said(&tried));
        for kind in
            ["deployment.apps/admit", "networkpolicy", "poddisruptionbudget", "servicemonitor", "configmap"]
        {
            assert!(out.contains(kind), "certificates={certificates}: no {kind} in\n{out}");
        }
        assert!(err.is_empty(), "certificates={certificates}: {err}");
    }

    let deploy = shipped("deploy");
    let all_are = |args: &[&str], state: &str| {
        let printed = cluster.works(&[&["apply", "--validate=strict", "-k", &deploy], args].concat());
        // Of a budget's selector kubectl sends all there is, whatever the cluster has.
        let known =
            |line: &&str| !line.ends_with(state) && *line != "poddisruptionbudget.policy/admit configured";
        let others: Vec<&str> = printed.lines().filter(known).collect();
        assert!(printed.lines().count() > 20 && others.is_empty(), "{args:?}: {others:#?}");
    };
    cluster.works(&["apply", "--validate=strict", "-k", &deploy]);
    printed_commands_hand_certificates_over(&cluster);
    all_are(&[], " unchanged");
    cluster.works(&["diff", "-k", &deploy]);
    printed_ones_are_the_same(&cluster);
    all_are(&["--server-side"], " serverside-applied");
    all_are(&["--server-side", "--dry-run=server"], " serverside-applied (server dry run)");
    cluster.works(&["diff", "--server-side", "-k", &deploy]);
    cluster.works(&["delete", "--wait=false", "-f", foreign.to_str().unwrap()]);
    cluster.works(&["delete", "validatingwebhookconfiguration", "admit"]);
    let rest = ["admission", "controllers", "service", "networkpolicy", "rbac"];
    for file in rest {
        cluster.works(&["delete", "--wait=false", "-f", &shipped(&format!("deploy/{file}.yaml"))]);
    }
}

/// What `admit certs` prints, pasted: the Secret is there, and the authority is trusted for each webhook and for conversion.
pub(super) fn printed_commands_hand_certificates_over(cluster: &Cluster<'_>) {
    let printed = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["certs", "--out", "certs"])
        .current_dir(cluster.place.path("."))
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let commands: Vec<&str> =
        printed.lines().filter(|line| line.starts_with("kubectl ") || line.starts_with("for ")).collect();
    assert_eq!(commands.len(), 3, "{printed}");
    let pasted = Command::new("bash")
        .args(["-ec", &commands.join("\n")])
        .env("KUBECONFIG", cluster.api.kubeconfig())
        .env("HOME", cluster.place.path("."))
        .current_dir(cluster.place.path("."))
        .output()
        .unwrap();
    assert!(pasted.status.success(), "{}", said(&pasted));
    let bundle = STANDARD.encode(std::fs::read(cluster.place.path("certs/ca.crt")).unwrap());
    assert_eq!(trusted(cluster), format!("{bundle} {bundle}"));
    let of_converter = "--output=jsonpath={.spec.conversion.webhook.clientConfig.caBundle}";
    let datagathers = "customresourcedefinition/datagathers.insights.openshift.io";
    assert_eq!(cluster.works(&["get", datagathers, of_converter]), bundle);
    cluster.works(&["delete", "secret", "admit-tls", "--namespace=admit-system"]);
}

/// The `caBundle` of each webhook of the configuration.
pub(super) fn trusted(cluster: &Cluster<'_>) -> String {
    cluster.works(&[
        "get",
        "validatingwebhookconfiguration/admit",
        "--output=jsonpath={.webhooks[*].clientConfig.caBundle}",
    ])
}

/// What `admit generate` prints changes nothing of the base.
fn printed_ones_are_the_same(cluster: &Cluster<'_>) {
    for what in ["crds", "rbac", "webhook"] {
        let file = cluster.place.path("printed.yaml");
        std::fs::write(&file, generate(&[what]).stdout).unwrap();
        let applied = cluster.works(&["apply", "--validate=strict", "-f", file.to_str().unwrap()]);
        assert!(!applied.is_empty() && applied.lines().all(|line| line.ends_with(" unchanged")), "{applied}");
    }
}

fn definition((group, kind, plural): &(&str, &str, &str)) -> String {
    let singular = kind.to_lowercase();
    format!(
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  \
         name: {plural}.{group}\nspec:\n  group: {group}\n  scope: Namespaced\n  \
         names: {{kind: {kind}, plural: {plural}, singular: {singular}}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         x-kubernetes-preserve-unknown-fields: true\n"
    )
}
