//! Validates the traffic policies of a Service, and the fields that only load balancers have.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use serde_json::Value;

use super::{addresses, kind};
use crate::kinds::field::Field;
use crate::kinds::shared::network;

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const CHECKED_ONLY: &str =
    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
/// In the order in which Kubernetes lists them.
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];

pub(super) fn validate(service: &Field<'_>, old: Option<&Field<'_>>, errors: &mut FieldErrors) {
    let spec = service.get("spec");
    let is_balancer = kind(&spec) == "LoadBalancer";
    sources(service, old, is_balancer, errors);
    let allocate = spec.get("allocateLoadBalancerNodePorts");
    if allocate.is_set() && !is_balancer {
        errors.add(|| allocate.forbidden(ONLY_BALANCERS));
    }
    if !allocate.is_set() && is_balancer {
        let at_root = Field::root(service.value()).get("allocateLoadBalancerNodePorts");
        errors.add(|| at_root.required(""));
    }
    class(&spec, is_balancer, errors);
    from_outside(&spec, errors);
    let inside = spec.get("internalTrafficPolicy");
    if inside.is_set() {
        if !POLICIES.contains(&inside.text()) {
            errors.add(|| inside.not_supported(&POLICIES));
        }
    } else if ["NodePort", "LoadBalancer", "ClusterIP"].contains(&kind(&spec)) {
        errors.add(|| inside.required(""));
    }
    let distribution = spec.get("trafficDistribution");
    if distribution.is_set() && !DISTRIBUTIONS.contains(&distribution.text()) {
        errors.add(|| distribution.not_supported(&DISTRIBUTIONS));
    }
}

/// Validates the source ranges of a load balancer: the field, or the older annotation.
fn sources(service: &Field<'_>, old: Option<&Field<'_>>, is_balancer: bool, errors: &mut FieldErrors) {
    let spec = service.get("spec");
    let ranges = spec.get("loadBalancerSourceRanges");
    let annotation = service.get("metadata").get("annotations").key(RANGES);
    if !ranges.is_empty() {
        // Upstream spells the path like this.
        let ranges = spec.get("LoadBalancerSourceRanges").with(ranges.value());
        if !is_balancer {
            errors.add(|| ranges.forbidden(ONLY_BALANCERS));
        }
        let before = old.map(|old| old.get("spec").get("loadBalancerSourceRanges"));
        let kept: std::collections::HashSet<&str> =
            addresses::texts(before.as_ref()).into_iter().map(str::trim).collect();
        for range in ranges.items().filter(|range| !kept.contains(range.text().trim())) {
            let trimmed = Value::from(range.text().trim());
            network::legacy_network(&range.with(&trimmed), errors);
        }
    } else if annotation.is_set() {
        if !is_balancer {
            errors.add(|| annotation.forbidden(ONLY_BALANCERS));
        }
        let before = old.map(|old| old.get("metadata").get("annotations").key(RANGES));
        let same = before.is_some_and(|before| before.value() == annotation.value());
        let text = annotation.text().trim();
        for range in text.split(',').filter(|_| !text.is_empty() && !same) {
            let trimmed = Value::from(range.trim());
            network::legacy_network(&annotation.with(&trimmed), errors);
        }
    }
}

fn class(spec: &Field<'_>, is_balancer: bool, errors: &mut FieldErrors) {
    let class = spec.get("loadBalancerClass");
    if class.is_set() && is_balancer {
        class.problems(labels::key(class.text()), errors);
    } else if class.is_set() {
        errors.add(|| class.forbidden(ONLY_BALANCERS));
    }
}

fn from_outside(spec: &Field<'_>, errors: &mut FieldErrors) {
    let policy = spec.get("externalTrafficPolicy");
    let is_reached = matches!(kind(spec), "NodePort" | "LoadBalancer")
        || kind(spec) == "ClusterIP" && !spec.get("externalIPs").is_empty();
    if !is_reached {
        if !policy.is_empty() {
            errors.add(|| policy.invalid("may only be set for externally-accessible services"));
        }
    } else if policy.is_empty() {
        errors.add(|| policy.required(""));
    } else {
        policy.one_of(&POLICIES, errors);
    }
    let check = spec.get("healthCheckNodePort");
    match check.integer().unwrap_or_default() {
        0 if is_checked(spec) => errors.add(|| check.required("")),
        0 => {}
        _ if is_checked(spec) => check.in_range(1, 65_535, errors),
        _ => errors.add(|| check.invalid(CHECKED_ONLY)),
    }
}

/// Whether load balancers check the health of nodes for this service.
fn is_checked(spec: &Field<'_>) -> bool {
    kind(spec) == "LoadBalancer" && spec.get("externalTrafficPolicy").text() == "Local"
}

/// Validates what may not change while the service is a load balancer.
pub(super) fn changes(spec: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let (class, before) = (spec.get("loadBalancerClass"), old.get("loadBalancerClass"));
    let stays = kind(spec) == "LoadBalancer" && kind(old) == "LoadBalancer";
    if stays && class.value() != before.value() {
        errors.add(|| class.invalid_as(&*class.as_sent(), "may not change once set"));
    }
    self::class(spec, kind(spec) == "LoadBalancer", errors);
    let check = spec.get("healthCheckNodePort");
    if is_checked(spec) && is_checked(old) && check.value() != old.get("healthCheckNodePort").value() {
        errors.add(|| check.forbidden("field is immutable"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn balancers_have_what_others_do_not() {
        let told = |service: Value| -> Vec<String> {
            let mut errors = FieldErrors::default();
            validate(&Field::root(&service), None, &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect()
        };
        assert_eq!(
            told(json!({"metadata": {"annotations": {RANGES: "10.0.0.0/8, x"}}, "spec": {
                "type": "NodePort", "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster",
                "healthCheckNodePort": 3}})),
            [
                "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Forbidden: may only be \
                 used when `type` is 'LoadBalancer'",
                "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: \"x\": must \
                 be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                "spec.healthCheckNodePort: Invalid value: 3: may only be set when `type` is 'LoadBalancer' and \
                 `externalTrafficPolicy` is 'Local'",
            ]
        );
        assert_eq!(
            told(json!({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Cluster"}})),
            ["allocateLoadBalancerNodePorts: Required value", "spec.healthCheckNodePort: Required value"]
        );
    }

    #[test]
    fn the_class_of_a_balancer_stays() {
        let spec = |class: &str| json!({"type": "LoadBalancer", "loadBalancerClass": class});
        let mut errors = FieldErrors::default();
        changes(&Field::root(&spec("a/b")), &Field::root(&spec("a/c")), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(texts, ["loadBalancerClass: Invalid value: \"a/b\": may not change once set"]);
    }
}
