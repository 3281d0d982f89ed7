//! Computes cells of built-in kinds from several values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::controllers::short_modes;
use super::texts::{each, items, or, plain, selector_text, text};
use crate::object;

pub(super) type Cell = fn(&Value) -> String;

/// Returns the function that `values.txt` calls `name`.
pub(super) fn cell(name: &str) -> Option<Cell> {
    Some(match name {
        "access_modes" => access_modes,
        "addresses" => addresses,
        "api_service" => api_service,
        "available" => available,
        "claim" => claim,
        "claim_state" => claim_state,
        "dangling" => |schema| condition(schema, "/status/conditions", "Dangling").unwrap_or("?").to_owned(),
        "endpoints" => endpoints,
        "health" => health,
        "hosts" => hosts,
        "ingress_ports" => |ingress| match items(ingress, "/spec/tls") {
            [] => "80".to_owned(),
            _ => "80, 443".to_owned(),
        },
        "owner" => owner,
        "param_kind" => param_kind,
        "param_ref" => param_ref,
        "parameters" => parameters,
        "parent" => parent,
        "pod_selector" => |policy| selector_text(policy.pointer("/spec/podSelector")),
        "quota_limits" => |quota| quotas(quota, true),
        "quota_requests" => |quota| quotas(quota, false),
        "scaled" => |autoscaler| {
            let part = |name| text(autoscaler, name);
            format!("{}/{}", part("/spec/scaleTargetRef/kind"), part("/spec/scaleTargetRef/name"))
        },
        "slice_endpoints" => slice_endpoints,
        "slice_ports" => slice_ports,
        "targets" => targets,
        "volume_phase" => |volume| match volume.pointer("/metadata/deletionTimestamp") {
            Some(_) => "Terminating".to_owned(),
            None => text(volume, "/status/phase").to_owned(),
        },
        _ => return None,
    })
}

fn access_modes(volume: &Value) -> String {
    short_modes(items(volume, "/spec/accessModes"))
}

fn addresses(ingress: &Value) -> String {
    let points = items(ingress, "/status/loadBalancer/ingress").iter();
    points.map(|point| or(text(point, "/ip"), text(point, "/hostname"))).collect::<Vec<_>>().join(",")
}

fn api_service(service: &Value) -> String {
    match text(service, "/spec/service/name") {
        "" => "Local".to_owned(),
        name => format!("{}/{name}", text(service, "/spec/service/namespace")),
    }
}

fn claim(volume: &Value) -> String {
    match text(volume, "/spec/claimRef/name") {
        "" => String::new(),
        name => format!("{}/{name}", text(volume, "/spec/claimRef/namespace")),
    }
}

fn health(component: &Value) -> String {
    let word = match condition(component, "/conditions", "Healthy") {
        Some("True") => "Healthy",
        Some("False") => "Unhealthy",
        _ => "Unknown",
    };
    word.to_owned()
}

/// Lists the first three hosts, and how many rules are beyond three if a rule follows the third host, with or without host.
fn hosts(ingress: &Value) -> String {
    let rules = items(ingress, "/spec/rules");
    let named = rules.iter().enumerate().map(|(at, rule)| (at, text(rule, "/host")));
    let shown: Vec<(usize, &str)> = named.filter(|(_, host)| !host.is_empty()).take(3).collect();
    let hosts = shown.iter().map(|(_, host)| *host).collect::<Vec<_>>().join(",");
    match shown.as_slice() {
        [] => "*".to_owned(),
        [_, _, (last, _)] if last.saturating_add(1) < rules.len() => {
            format!("{hosts} + {} more...", rules.len().saturating_sub(3))
        }
        _ => hosts,
    }
}

fn owner(revision: &Value) -> String {
    let owners = items(revision, "/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".to_owned();
    };
    qualified(
        &text(owner, "/kind").to_lowercase(),
        object::group_of(text(owner, "/apiVersion")),
        text(owner, "/name"),
    )
}

fn parameters(class: &Value) -> String {
    match class.pointer("/spec/parameters") {
        None | Some(Value::Null) => "<none>".to_owned(),
        Some(to) => qualified(text(to, "/kind"), text(to, "/apiGroup"), text(to, "/name")),
    }
}

/// Formats `kind.group/name`.
fn qualified(kind: &str, group: &str, name: &str) -> String {
    if group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{group}/{name}") }
}

fn parent(address: &Value) -> String {
    let part = |name: &str| text(address, &format!("/spec/parentRef/{name}"));
    let name = match part("namespace") {
        "" => part("name").to_owned(),
        namespace => format!("{namespace}/{}", part("name")),
    };
    qualified(part("resource"), part("group"), &name)
}

fn slice_endpoints(slice: &Value) -> String {
    let all = items(slice, "/endpoints").iter().flat_map(|one| items(one, "/addresses")).map(plain);
    shortened(&all.collect::<Vec<_>>(), "<unset>", 3)
}

fn slice_ports(slice: &Value) -> String {
    let ports = items(slice, "/ports").iter();
    let ports = ports.map(|port| port.get("port").map_or_else(|| "*".to_owned(), plain));
    shortened(&ports.collect::<Vec<_>>(), "<unset>", 3)
}

/// Formats the kind of a policy's params.
pub(super) fn param_kind(policy: &Value) -> String {
    policy.pointer("/spec/paramKind").map_or_else(
        || "<unset>".to_owned(),
        |kind| format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")),
    )
}

/// Formats the params that a binding refers to.
pub(super) fn param_ref(binding: &Value) -> String {
    binding.pointer("/spec/paramRef").map_or_else(
        || "<unset>".to_owned(),
        |reference| match (text(reference, "/name"), text(reference, "/namespace")) {
            ("", _) => reference.get("selector").map_or_else(|| "<unset>".to_owned(), go_selector),
            (name, "") => format!("*/{name}"),
            (name, namespace) => format!("{namespace}/{name}"),
        },
    )
}

/// Formats a label selector like Go's generated `String()`, which upstream shows for bindings.
fn go_selector(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels: BTreeMap<_, _> = labels.into_iter().flatten().collect();
    let labels: String = labels.iter().map(|(key, value)| format!("{key}: {},", plain(value))).collect();
    let expression = |expression: &Value| {
        let values: Vec<String> = items(expression, "/values").iter().map(plain).collect();
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(expression, "/key"),
            text(expression, "/operator"),
            values.join(" ")
        )
    };
    let expressions: String = items(selector, "/matchExpressions").iter().map(expression).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

/// Lists the first `most` items, and the number of those that are left out.
fn shortened(all: &[String], none: &str, most: usize) -> String {
    let shown = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(",");
    match all.len().checked_sub(most) {
        _ if all.is_empty() => none.to_owned(),
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn condition<'v>(object: &'v Value, list: &str, kind: &str) -> Option<&'v str> {
    let found = items(object, list).iter().find(|condition| condition["type"] == kind);
    found.map(|condition| text(condition, "/status"))
}

fn available(service: &Value) -> String {
    let found = items(service, "/status/conditions").iter().find(|one| one["type"] == "Available");
    match found.map(|one| (text(one, "/status"), text(one, "/reason"))) {
        None => "Unknown".to_owned(),
        Some(("True", _)) => "True".to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    }
}

fn claim_state(claim: &Value) -> String {
    let mut states = Vec::new();
    if claim.pointer("/metadata/deletionTimestamp").is_some() {
        states.push("deleted");
    }
    match claim.pointer("/status/allocation") {
        None | Some(Value::Null) => states.push("pending"),
        Some(_) => states.push("allocated"),
    }
    if !items(claim, "/status/reservedFor").is_empty() {
        states.push("reserved");
    }
    states.join(",")
}

fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(object, "/subsets") {
        let addresses = each(subset, "/addresses", "/ip");
        let ports = each(subset, "/ports", "/port");
        if ports.is_empty() {
            all.extend(addresses);
        } else {
            all.extend(ports.iter().flat_map(|port| addresses.iter().map(move |ip| format!("{ip}:{port}"))));
        }
    }
    shortened(&all, "<none>", 3)
}

/// Lists used and hard amounts of requests or of limits: `cpu: 0/1`.
fn quotas(quota: &Value, limits: bool) -> String {
    let hard = quota.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let used = |name: &str| quota.get("status").and_then(|status| status.get("used")?.get(name));
    let mut all: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, most)| {
            format!("{name}: {}/{}", used(name).map_or_else(|| "0".to_owned(), plain), plain(most))
        })
        .collect();
    all.sort();
    all.join(", ")
}

/// Lists current and target values of an autoscaler's metrics.
fn targets(autoscaler: &Value) -> String {
    if let Some(load) = autoscaler.pointer("/spec/targetCPUUtilizationPercentage") {
        let now = autoscaler.pointer("/status/currentCPUUtilizationPercentage");
        let now = now.map_or_else(|| "<unknown>".to_owned(), |now| format!("{}%", plain(now)));
        return format!("cpu: {now}/{}%", plain(load));
    }
    let current = items(autoscaler, "/status/currentMetrics");
    let shown = items(autoscaler, "/spec/metrics")
        .iter()
        .enumerate()
        .map(|(at, metric)| target(metric, current.get(at)));
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [] => "<none>".to_owned(),
        [first, second, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second} + {} more...", rest.len())
        }
        all => all.join(", "),
    }
}

fn target(metric: &Value, current: Option<&Value>) -> String {
    let source = text(metric, "/type");
    let member = format!(
        "{}{}",
        source.get(..1).unwrap_or_default().to_lowercase(),
        source.get(1..).unwrap_or_default()
    );
    let (wanted, suffix) = ["averageUtilization", "averageValue", "value"]
        .into_iter()
        .find_map(|field| {
            let value = metric.pointer(&format!("/{member}/target/{field}"))?;
            Some((field, plain(value)))
        })
        .unwrap_or(("", "<auto>".to_owned()));
    let now = current.and_then(|now| now.pointer(&format!("/{member}/current/{wanted}"))).map(plain);
    let percent = if wanted == "averageUtilization" { "%" } else { "" };
    let now = now.map_or_else(|| "<unknown>".to_owned(), |now| format!("{now}{percent}"));
    let average =
        if wanted == "averageValue" && matches!(source, "Object" | "External") { " (avg)" } else { "" };
    let name =
        if source == "Resource" { format!("{}: ", text(metric, "/resource/name")) } else { String::new() };
    format!("{name}{now}/{suffix}{percent}{average}")
}
