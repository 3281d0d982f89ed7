//! Computes what an object uses of a quota.

use std::collections::{BTreeMap, BTreeSet};

use admit_apimachinery::quantity::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::admission::plugins::pods::{STARTED, items, text};
use crate::admission::plugins::resources::{Amounts, add, amounts, of_pod};
use crate::object;

/// Amounts by the resource names that quotas use.
pub(super) type Used<'v> = BTreeMap<String, Quantity<'v>>;

/// The resource (group and plural) of a counted object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'r> {
    pub(crate) group: &'r str,
    pub(crate) plural: &'r str,
}

const PODS: &str = "pods";
const SERVICES: &str = "services";
const CLAIMS: &str = "persistentvolumeclaims";
const OF_PODS: [&str; 10] = [
    "pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
const OF_SERVICES: [&str; 3] = ["services", "services.nodeports", "services.loadbalancers"];
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// Separates a storage class from the claim resource that is counted for it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Core resources that are counted by number of objects only, under their plural.
const OBJECTS: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];
/// If a quota counts one of these, each container must set it.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Returns the group and plural of the objects that count for this resource name; None if it is unknown.
pub(super) fn owner(name: &str) -> Option<(String, String)> {
    if let Some(counted) = name.strip_prefix("count/") {
        let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
        return Some((group.to_owned(), plural.to_owned()));
    }
    let of_class = name.split_once(OF_CLASS).is_some_and(|(_, counted)| OF_CLAIMS.contains(&counted));
    let plural = if OF_SERVICES.contains(&name) {
        SERVICES
    } else if OF_CLAIMS.contains(&name) || of_class {
        CLAIMS
    } else if OBJECTS.contains(&name) {
        name
    } else if OF_PODS.contains(&name) || is_asked_for(name) {
        PODS
    } else {
        return None;
    };
    Some((String::new(), plural.to_owned()))
}

/// Returns whether the name is that of huge pages or of an extended resource.
fn is_asked_for(name: &str) -> bool {
    name.starts_with("hugepages-")
        || name
            .strip_prefix("requests.")
            .is_some_and(|rest| rest.starts_with("hugepages-") || rest.contains('/'))
}

impl Counted<'_> {
    /// Returns whether objects of this resource count for the name.
    pub(super) fn counts(self, name: &str) -> bool {
        owner(name).is_some_and(|(group, plural)| group == self.group && plural == self.plural)
    }
}

/// Converts a number of objects to a quantity.
pub(super) fn whole(count: i64) -> Quantity<'static> {
    let one = Quantity::parse("1").unwrap_or(Quantity::of_integer(1));
    let rest = Quantity::of_integer(count.saturating_sub(1));
    one.plus(&rest).unwrap_or(Quantity::of_integer(count))
}

pub(super) fn usage<'v>(of: Counted<'_>, object: &'v Value, now: Timestamp) -> Used<'v> {
    let count = if of.group.is_empty() {
        format!("count/{}", of.plural)
    } else {
        format!("count/{}.{}", of.plural, of.group)
    };
    let mut used = Used::from([(count, whole(1))]);
    match (of.group, of.plural) {
        ("", PODS) if is_charged(object, now) => {
            used.extend(computed(&with_overhead(object, "requests"), &with_overhead(object, "limits")));
        }
        ("", SERVICES) => used.extend(of_service(object)),
        ("", CLAIMS) => used.extend(of_claim(object)),
        ("", plural) if OBJECTS.contains(&plural) => {
            used.insert(plural.to_owned(), whole(1));
        }
        _ => {}
    }
    used
}

/// Returns whether the pod's resources count: those of terminated pods, and of pods past their deletion grace period, do not.
fn is_charged(pod: &Value, now: Timestamp) -> bool {
    if matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") {
        return false;
    }
    let grace = object::meta(pod, "deletionGracePeriodSeconds").and_then(Value::as_i64);
    let deleted = object::meta_str(pod, "deletionTimestamp").parse::<Timestamp>().ok();
    !deleted.zip(grace).is_some_and(|(deleted, grace)| {
        now > deleted.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX)
    })
}

/// Adds the pod's overhead; to limits only where a limit is set.
fn with_overhead<'v>(pod: &'v Value, side: &str) -> Amounts<'v> {
    let mut sums = of_pod(pod, side);
    let mut overhead = amounts(pod, "/spec/overhead");
    if side == "limits" {
        overhead.retain(|resource, _| sums.get(resource).is_some_and(|limit| limit.sign().is_gt()));
    }
    add(&mut sums, &overhead);
    sums
}

fn computed<'v>(requests: &Amounts<'v>, limits: &Amounts<'v>) -> Used<'v> {
    let mut used = Used::from([(PODS.to_owned(), whole(1))]);
    for (&resource, amount) in requests {
        match resource {
            "cpu" | "memory" | "ephemeral-storage" => {
                used.insert(resource.to_owned(), amount.clone());
                used.insert(format!("requests.{resource}"), amount.clone());
            }
            pages if pages.starts_with("hugepages-") => {
                used.insert(pages.to_owned(), amount.clone());
                used.insert(format!("requests.{pages}"), amount.clone());
            }
            other if other.contains('/') => {
                used.insert(format!("requests.{other}"), amount.clone());
            }
            _ => {}
        }
    }
    for (&resource, amount) in limits {
        if matches!(resource, "cpu" | "memory" | "ephemeral-storage") {
            used.insert(format!("limits.{resource}"), amount.clone());
        }
    }
    used
}

fn of_service(service: &Value) -> Used<'static> {
    let count = |number: usize| whole(i64::try_from(number).unwrap_or(i64::MAX));
    let ports = items(service, "/spec/ports").count();
    let told = items(service, "/spec/ports")
        .filter(|port| port.get("nodePort").and_then(Value::as_i64).is_some_and(|port| port != 0));
    let (node_ports, balancers) = match text(service, "/spec/type") {
        "NodePort" => (ports, 0),
        "LoadBalancer" => {
            let allocates =
                service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
            (if allocates { ports } else { told.count() }, 1)
        }
        _ => (0, 0),
    };
    Used::from([
        ("services".to_owned(), whole(1)),
        ("services.nodeports".to_owned(), count(node_ports)),
        ("services.loadbalancers".to_owned(), count(balancers)),
    ])
}

fn of_claim(claim: &Value) -> Used<'_> {
    let class = object::meta_map(claim, "annotations")
        .find(|(key, _)| *key == "volume.beta.kubernetes.io/storage-class")
        .map_or_else(|| text(claim, "/spec/storageClassName"), |(_, class)| class);
    let mut used = Used::from([(CLAIMS.to_owned(), whole(1))]);
    let asked = amounts(claim, "/spec/resources/requests").remove("storage");
    let allotted = amounts(claim, "/status/allocatedResources").remove("storage");
    // The larger of the requested and the allocated size counts.
    let size = match (asked, allotted) {
        (Some(asked), Some(allotted)) if allotted.compare(&asked).is_gt() => Some(allotted),
        (asked, _) => asked,
    };
    if let Some(size) = size {
        used.insert("requests.storage".to_owned(), size);
    }
    if !class.is_empty() {
        let of_class: Vec<_> =
            used.iter().map(|(name, amount)| (format!("{class}{OF_CLASS}{name}"), amount.clone())).collect();
        used.extend(of_class);
    }
    used
}

/// Returns what a quota counts and containers leave unset, as `requests.cpu for: a,b; …`; None if nothing is missing.
pub(super) fn unspecified(of: Counted<'_>, pod: &Value, counted: &[&str]) -> Option<String> {
    if (of.group, of.plural) != ("", PODS) {
        return None;
    }
    let said = |value: &Value, pointer: &str| -> BTreeSet<String> {
        let side = |side: &str| format!("{pointer}/{side}");
        let (requests, limits) = (side("requests"), side("limits"));
        computed(&amounts(value, &requests), &amounts(value, &limits)).into_keys().collect()
    };
    let of_whole = said(pod, "/spec/resources");
    let required: BTreeSet<&str> =
        counted.iter().copied().filter(|name| REQUIRED.contains(name) && !of_whole.contains(*name)).collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in STARTED.into_iter().flat_map(|list| items(pod, list)) {
        let own = said(container, "/resources");
        for name in required.iter().filter(|name| !own.contains(**name)) {
            missing.entry(name).or_default().insert(text(container, "/name"));
        }
    }
    let told = missing.into_iter().map(|(resource, containers)| {
        format!("{resource} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    Some(told.collect::<Vec<_>>().join("; ")).filter(|told| !told.is_empty())
}
