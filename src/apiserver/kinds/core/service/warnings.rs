//! Warnings about Services: what is ignored, deprecated or oddly written (pkg/api/service).

use serde_json::Value;

use super::{HINTS, MODE, addresses, kind};
use crate::kinds::field::Field;
use crate::kinds::shared::network;

/// They are given whatever was changed.
pub(super) fn of(object: &Value, _: Option<&Value>) -> Vec<String> {
    let service = Field::root(object);
    let spec = service.get("spec");
    let mut warnings = Vec::new();
    if service.get("metadata").get("annotations").key(HINTS).is_set() {
        warnings.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
    }
    let is_headless = kind(&spec) == "ClusterIP" && spec.get("clusterIP").text() == "None";
    if !addresses::is_headless(&spec) {
        warnings.extend(spec.get("clusterIPs").items().filter_map(|ip| network::address_warning(&ip)));
    }
    let outside = spec.get("externalIPs");
    if is_headless {
        let ignored = [
            (!spec.get("loadBalancerIP").is_empty(), "loadBalancerIP"),
            (!outside.is_empty(), "externalIPs"),
            (spec.get("sessionAffinity").text() == "ClientIP", "SessionAffinity"),
        ];
        let ignored = ignored.into_iter().filter(|(is_set, _)| *is_set);
        warnings.extend(ignored.map(|(_, field)| format!("spec.{field} is ignored for headless services")));
    }
    warnings.extend(outside.items().filter_map(|ip| network::address_warning(&ip)));
    let is_external = kind(&spec) == "ExternalName";
    if !outside.is_empty() && !is_headless && !is_external {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    let balancer = spec.get("loadBalancerIP");
    if !balancer.is_empty() {
        warnings.extend(network::address_warning(&balancer));
    }
    let ranges = spec.get("loadBalancerSourceRanges");
    warnings.extend(ranges.items().filter_map(|range| network::network_warning(&range)));
    let mut warn = |applies: bool, why: &str| {
        if applies {
            warnings.push(why.to_owned());
        }
    };
    warn(
        is_external && !outside.is_empty(),
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    let named = !is_external && !spec.get("externalName").is_empty();
    warn(named, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
    let is_close = spec.get("trafficDistribution").text() == "PreferClose";
    warn(is_close, "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_ignored_is_told() {
        let service = json!({"metadata": {"annotations": {HINTS: "Auto"}}, "spec": {
            "type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"], "sessionAffinity": "ClientIP",
            "externalName": "a", "externalIPs": ["1.2.3.4"], "loadBalancerIP": "::ffff:1.2.3.4"}});
        assert_eq!(
            of(&service, None),
            [
                "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
                 service.kubernetes.io/topology-mode instead",
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
                "spec.loadBalancerIP: non-standard IP address \"::ffff:1.2.3.4\" will be considered invalid in a future \
                 Kubernetes release: use \"1.2.3.4\"",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            ]
        );
    }
}
