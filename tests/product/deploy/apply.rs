//! An API server takes the manifests from the real kubectl, with strict checks of every field that it knows.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{CERTIFICATES, base, has_kubectl};
use crate::running::Workplace;

/// Kinds that the manifests use and other projects define, as far as an API server has to know them.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("cert-manager.io", "Certificate", "certificates"),
    ("cert-manager.io", "Issuer", "issuers"),
    ("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
    ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
];

#[test]
fn kubectl_applies_every_base() {
    if !has_kubectl() {
        eprintln!("NOT RUN: there is no kubectl on the PATH");
        return;
    }
    let place = Workplace::new();
    let running = place.start();
    let kubectl = |args: &[&str]| -> Output {
        Command::new("kubectl")
            .args(args)
            .env("KUBECONFIG", place.kubeconfig())
            .env("HOME", place.path())
            .output()
            .unwrap()
    };
    let foreign = place.path().join("foreign.yaml");
    fs::write(&foreign, FOREIGN.iter().map(definition).collect::<String>()).unwrap();
    let applied = kubectl(&["apply", "-f", foreign.to_str().unwrap()]);
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));

    // `admit up` has registered a webhook of the same name under a URL, to which the Service would be added.
    let deleted = kubectl(&["delete", "validatingwebhookconfiguration", "admit"]);
    assert!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));

    for certificates in CERTIFICATES {
        let folder = base(&[&format!("certificates={certificates}"), "monitoring=true"]);
        let deploy = folder.path().join("deploy");
        // Nothing stays behind: the next base starts from the same state.
        let output = kubectl(&["apply", "--dry-run=server", "--validate=strict", "-k", path(&deploy)]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "certificates={certificates}:\n{err}");
        for kind in
            ["deployment.apps/admit", "networkpolicy", "poddisruptionbudget", "servicemonitor", "configmap"]
        {
            assert!(out.contains(kind), "certificates={certificates}: no {kind} in\n{out}");
        }
        assert!(!err.contains("unknown field"), "{err}");
    }
    assert!(running.terminate().success());
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
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
