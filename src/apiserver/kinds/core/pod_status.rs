//! Statuses of pods (`ValidatePodStatusUpdate`).

use std::collections::{HashMap, HashSet};

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use admit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::container_status;
use crate::kinds::field::Field;
use crate::kinds::shared::pod_spec::annotations;
use crate::kinds::shared::{internal, network};

/// Conditions that Kubernetes itself sets.
const SYSTEM: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// About the addresses of a pod.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let status = Field::root(pod).get("status");
    let mut warnings = Vec::new();
    for list in ["podIPs", "hostIPs"].map(|list| status.get(list)) {
        warnings.extend(list.items().filter_map(|one| network::address_warning(&one.get("ip"))));
    }
    warnings
}

/// What is wrong with a new status.
pub(super) fn validate(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    annotations::updated(pod, old, errors);
    let (root, before) = (Field::root(pod), Field::root(old));
    let (status, old_status) = (root.get("status"), before.get("status"));
    for condition in status.get("conditions").items() {
        let kind = condition.get("Type").with(condition.get("type").value());
        if !SYSTEM.contains(&kind.text()) {
            for problem in labels::key(kind.text()) {
                errors.add(|| kind.invalid_as(kind.text(), problem));
            }
        }
    }
    let nominated = status.get("nominatedNodeName");
    if !nominated.is_empty() && nominated.value() != old_status.get("nominatedNodeName").value() {
        nominated.named(NameRule::Subdomain, errors);
        if !before.get("spec").get("nodeName").is_empty() {
            errors.add(|| nominated.forbidden("may not be set on pods that are already bound to a node"));
        }
    }
    let observed = status.get("observedGeneration");
    if observed.integer().is_some_and(|generation| generation < 0) {
        errors.add(|| observed.invalid("must be a non-negative integer"));
    }
    let quality = status.get("qosClass");
    if quality.text() != old_status.get("qosClass").text() {
        errors.add(|| quality.invalid("field is immutable"));
    }
    let spec = before.get("spec");
    container_status::states(&status, &old_status, &spec, errors);
    claims(&status.get("resourceClaimStatuses"), &root.get("spec"), errors);
    extended_claim(&status.get("extendedResourceClaimStatus"), &root.get("spec"), errors);
    addresses(&status.get("podIPs"), "io.k8s.api.core.v1.PodIP", errors);
    host_addresses(&status, errors);
    users(&status, &root.get("spec"), errors);
    container_status::resources(&status, &root.get("spec"), errors);
}

/// The claim that was made for the resources that containers ask for by the names of extended ones.
fn extended_claim(status: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    if !status.is_set() {
        return;
    }
    let mappings = status.get("requestMappings");
    if mappings.is_empty() {
        errors.add(|| mappings.required("at least one request mapping is required"));
    }
    let containers: HashMap<&str, Field<'_>> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).items())
        .map(|container| (container.get("name").text(), container))
        .collect();
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let fields = ["containerName", "resourceName", "requestName"].map(|name| mapping.get(name));
        let [container, resource, request] = &fields;
        match containers.get(container.text()) {
            Some(owner) if !owner.get("resources").get("requests").key(resource.text()).is_set() => {
                errors.add(|| {
                    resource.invalid(
                        "must match the extended resource name of an entry in spec.initContainers.resources.requests or \
                         spec.containers.resources.requests",
                    )
                });
            }
            Some(_) => {}
            None => errors.add(|| {
                container.invalid(
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name",
                )
            }),
        }
        // It is told of beside the list.
        status.get("requestName").with(request.value()).named(NameRule::Label, errors);
        if !seen.insert(fields.each_ref().map(Field::text)) {
            fields.iter().for_each(|field| errors.add(|| field.duplicate()));
        }
    }
    let claim = status.get("resourceClaimName");
    if claim.is_empty() {
        errors.add(|| claim.required(""));
    } else {
        claim.named(NameRule::Subdomain, errors);
    }
}

fn claims(list: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    let of_pod: HashSet<&str> =
        spec.get("resourceClaims").items().map(|claim| claim.get("name").text()).collect();
    let mut seen = HashSet::new();
    for status in list.items() {
        let (name, claim) = (status.get("name"), status.get("resourceClaimName"));
        if !of_pod.contains(name.text()) {
            errors.add(|| name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        if !seen.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
        if claim.is_set() {
            name.with(claim.value()).named(NameRule::Subdomain, errors);
        }
    }
}

/// Addresses of a pod or its host: at most one of each family.
fn addresses(list: &Field<'_>, kind: &'static str, errors: &mut FieldErrors) {
    for item in list.items() {
        network::legacy_address(&item.with(item.get("ip").value()), errors);
    }
    if list.len() < 2 {
        return;
    }
    one_of_each_family(list, kind, errors);
}

fn one_of_each_family(list: &Field<'_>, kind: &'static str, errors: &mut FieldErrors) {
    let texts: Vec<&str> = list.items().map(|item| item.get("ip").text()).collect();
    let mut families = HashSet::new();
    for (at, text) in texts.iter().enumerate() {
        match network::parse_address(text) {
            Some(address) => {
                families.insert(address.is_ipv4());
            }
            None => {
                let why = format!("failed to check for dual stack with error:invalid IP[{at}]: {text}");
                errors.add(|| FieldError::internal(list, why));
                families.clear();
                break;
            }
        }
    }
    if families.len() < 2 || texts.len() > 2 {
        let shown: Value = list.items().map(|item| internal::form(&item, kind)).collect();
        errors.add(|| list.invalid_as(shown, "may specify no more than one IP for each IP family"));
    }
}

fn distinct(list: &Field<'_>, kind: &'static str, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for item in list.items() {
        if !seen.insert(item.get("ip").text()) {
            errors.add(|| FieldError::duplicate(&item, internal::shown(&item, kind)));
        }
    }
}

fn host_addresses(status: &Field<'_>, errors: &mut FieldErrors) {
    let (one, list) = (status.get("hostIP"), status.get("hostIPs"));
    if list.is_empty() {
        return;
    }
    let first = list.index(0).get("ip");
    if first.text() != one.text() {
        errors.add(|| first.invalid("must be equal to `hostIP`"));
    }
    for item in list.items() {
        network::legacy_address(&item.with(item.get("ip").value()), errors);
    }
    if list.len() > 1 {
        distinct(&list, "io.k8s.api.core.v1.HostIP", errors);
        one_of_each_family(&list, "io.k8s.api.core.v1.HostIP", errors);
    }
}

/// Users of the processes of containers, which only Linux has.
fn users(status: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    let system = spec.get("os").get("name").text();
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in status.get(list).items() {
            let user = container.get("user");
            let linux = user.get("linux");
            if !user.is_set() {
                continue;
            }
            if !["", "linux", "windows"].contains(&system) {
                continue;
            }
            if system == "windows" {
                if linux.is_set() {
                    errors.add(|| linux.forbidden("cannot be set for a windows pod"));
                }
                continue;
            }
            for id in [linux.get("uid"), linux.get("gid")] {
                id.in_range(0, i64::from(i32::MAX), errors);
            }
            for id in linux.get("supplementalGroups").items() {
                id.in_range(0, i64::from(i32::MAX), errors);
            }
        }
    }
}

/// How many seconds the deletion of a pod takes. One that no node has, or that has ended, has nothing to wait for.
pub(super) fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    let asked = asked.unwrap_or(own);
    // A negative period means the shortest one that still lets the containers stop.
    if asked < 0 { 1 } else { asked }
}

/// The class of a stored pod.
pub(super) fn known_quality(pod: &Value) -> &str {
    let known = pod.pointer("/status/qosClass").and_then(Value::as_str);
    known.filter(|known| !known.is_empty()).unwrap_or_else(|| quality(pod))
}

/// What a container asks for, or may have at most; who asks for nothing does not ask.
fn part<'c>(container: &'c Value, side: &str, name: &str) -> Option<Quantity<'c>> {
    let amount = container.pointer(&format!("/resources/{side}/{name}"))?.as_str()?;
    Quantity::parse(amount).ok().filter(|amount| amount.sign().is_gt())
}

/// The class of a pod by what its containers ask for.
pub(crate) fn quality(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let listed = ["containers", "initContainers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
    // A pod that asks for resources as a whole is judged by them.
    let as_whole = spec.pointer("/resources").and_then(Value::as_object).is_some_and(|own| !own.is_empty());
    let containers: Vec<&Value> = if as_whole { vec![spec] } else { listed.flatten().collect() };
    let mut any = false;
    let mut all = !containers.is_empty();
    for container in containers {
        for name in ["cpu", "memory"] {
            let (request, limit) = (part(container, "requests", name), part(container, "limits", name));
            any |= request.is_some() || limit.is_some();
            all &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, all) {
        (_, true) => "Guaranteed",
        (true, false) => "Burstable",
        (false, false) => "BestEffort",
    }
}
