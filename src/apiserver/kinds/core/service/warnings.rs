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
    if !addresses::is_headless(&spec) {
        warnings.extend(spec.get("clusterIPs").items().filter_map(|ip| network::address_warning(&ip)));
    }
    warnings.extend(spec.get("externalIPs").items().filter_map(|ip| network::address_warning(&ip)));
    let ranges = spec.get("loadBalancerSourceRanges");
    warnings.extend(ranges.items().filter_map(|range| network::network_warning(&range)));
    let mut warn = |applies: bool, why: &str| {
        if applies {
            warnings.push(why.to_owned());
        }
    };
    let stays = spec.get("sessionAffinity").text() == "ClientIP";
    let is_headless = spec.get("clusterIP").text() == "None";
    warn(is_headless && stays, "spec.SessionAffinity is ignored for headless services");
    let outside = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
    warn(!spec.get("externalIPs").is_empty(), outside);
    let named = kind(&spec) != "ExternalName" && !spec.get("externalName").is_empty();
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
            "clusterIP": "None", "clusterIPs": ["None"], "sessionAffinity": "ClientIP", "externalName": "a"}});
        assert_eq!(
            of(&service, None),
            [
                "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
                 service.kubernetes.io/topology-mode instead",
                "spec.SessionAffinity is ignored for headless services",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            ]
        );
    }
}
