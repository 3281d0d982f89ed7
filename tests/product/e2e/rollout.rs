//! Rolls the shipped policies out as native ValidatingAdmissionPolicies: Audit, then Warn, then Deny.

use super::apiserver::ApiServer;
use super::cluster::{Cluster, said, shipped};

const MESSAGE: &str = "names with the prefix";

/// Each step as the README of the policies has it, and what somebody hears who breaks a policy.
pub(super) fn steps_differ_in_what_the_author_hears(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    for step in ["audit", "warn", "deny", "warn"] {
        let folder = shipped(&format!("policies/native/{step}"));
        cluster.works(&["apply", "--validate=strict", "-k", &folder]);
        let bindings = "jsonpath={.items[*].spec.validationActions}";
        let printed =
            cluster.works(&["get", "validatingadmissionpolicybindings", &format!("--output={bindings}")]);
        let (allowed, heard) = match step {
            "audit" => (true, ""),
            "warn" => (true, "Warning: "),
            _ => (false, "denied request: "),
        };
        let told = cluster.until(
            || cluster.dry_run("periodic-1"),
            |output| output.status.success() == allowed && said(output).contains(heard),
        );
        assert_eq!(said(&told).contains(MESSAGE), !heard.is_empty(), "{step}: {}", said(&told));
        assert_eq!(printed.contains("Deny"), step == "deny", "{step}: {printed}");
        // What is applied is what is there.
        let differences = cluster.kubectl(&["diff", "-k", &folder]);
        assert!(differences.status.success(), "{step}: {}", String::from_utf8_lossy(&differences.stdout));
    }
    cluster.works(&["delete", "--wait=false", "-k", &shipped("policies/native/deny")]);
}
