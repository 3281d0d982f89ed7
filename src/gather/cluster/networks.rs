//! Finds the IPv4 networks of a cluster, whose addresses are replaced by others of the same network. Addresses of networks that are
//! not found here are hidden all the same: they become 0.0.0.0, which says less to a reader of the archive.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use regex_automata::meta::Regex;
use serde_json::Value;
use tracing::debug;

use super::super::obfuscate::Network;
use super::configuration;
use crate::telemetry::with_causes;

/// The number of nodes and other objects per request; only their networks are kept.
const PAGE: u32 = 100;
/// The egress network of clusters that name none.
const EGRESS: &str = "192.168.126.0/18";

/// Returns the networks that the cluster names: in its `Network` and its install configuration, pod networks of nodes, service
/// networks, egress networks. The result is empty if the server has none of these kinds; the caller adds the configured
/// networks.
pub async fn networks(client: &Client) -> Vec<Network> {
    let mut found = Vec::new();
    match configuration(client, "Network", "networks").await {
        Ok(network) => network.iter().for_each(|network| named(network, &mut found)),
        Err(error) => debug!(error = with_causes(&error), "no networks of the configuration"),
    }
    match Api::<ConfigMap>::namespaced(client.clone(), "kube-system").get_opt("cluster-config-v1").await {
        Ok(map) => {
            let text = map.and_then(|map| map.data?.remove("install-config"));
            found.extend(text.iter().flat_map(|text| written(text)));
        }
        Err(error) => debug!(error = with_causes(&error), "no networks of the installation"),
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let cidrs = |node: Node| node.spec.and_then(|spec| spec.pod_cidrs).unwrap_or_default();
    of_each(&nodes, "nodes", cidrs, &mut found).await;
    let services: Api<ServiceCIDR> = Api::all(client.clone());
    let cidrs = |range: ServiceCIDR| range.spec.and_then(|spec| spec.cidrs).unwrap_or_default();
    of_each(&services, "service networks", cidrs, &mut found).await;
    egress(client, &mut found).await;
    // IPv6 networks do not parse: IPv6 addresses are not rewritten.
    let mut networks: Vec<Network> = found.iter().filter_map(|text| text.parse().ok()).collect();
    networks.sort_unstable();
    networks.dedup();
    networks
}

async fn egress(client: &Client, found: &mut Vec<String>) {
    let kind = GroupVersionKind::gvk("network.openshift.io", "v1", "HostSubnet");
    let resource = ApiResource::from_gvk_with_plural(&kind, "hostsubnets");
    let subnets: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let before = found.len();
    let cidrs = |subnet: DynamicObject| texts(subnet.data.get("egressCIDRs"), "").collect();
    of_each(&subnets, "egress networks", cidrs, found).await;
    if found.len() == before {
        found.push(EGRESS.to_owned());
    }
}

async fn of_each<K>(api: &Api<K>, what: &str, cidrs: impl Fn(K) -> Vec<String>, found: &mut Vec<String>)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    loop {
        match api.list(&params).await {
            Ok(page) => {
                params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
                found.extend(page.items.into_iter().flat_map(&cidrs));
            }
            Err(error) => return debug!(error = with_causes(&error), what, "no networks of these"),
        }
        if params.continue_token.is_none() {
            return;
        }
    }
}

/// Adds the pod, service and external networks in a `Network` to `found`.
fn named(network: &Value, found: &mut Vec<String>) {
    for part in ["/spec", "/status"] {
        let Some(part) = network.pointer(part) else { continue };
        found.extend(texts(part.get("clusterNetwork"), "cidr"));
        found.extend(texts(part.get("serviceNetwork"), ""));
        for outside in [
            "/externalIP/policy/allowedCIDRs",
            "/externalIP/policy/rejectedCIDRs",
            "/externalIP/autoAssignCIDRs",
        ] {
            found.extend(texts(part.pointer(outside), ""));
        }
    }
}

/// Returns the strings in a list, or in one field of its items.
fn texts<'v>(list: Option<&'v Value>, field: &'static str) -> impl Iterator<Item = String> + 'v {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    let text = move |item: &'v Value| if field.is_empty() { Some(item) } else { item.get(field) };
    items.filter_map(move |item| text(item)?.as_str()).map(str::to_owned)
}

/// Finds all networks in CIDR notation in an install configuration.
fn written(text: &str) -> Vec<String> {
    let Ok(pattern) = Regex::new(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9]{1,2}") else { return Vec::new() };
    pattern.find_iter(text).map(|found| text[found.range()].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn networks_are_found_where_clusters_name_them() {
        let mut found = Vec::new();
        named(
            &json!({
                "spec": {
                    "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
                    "serviceNetwork": ["172.30.0.0/16"],
                    "externalIP": {"policy": {"allowedCIDRs": ["10.1.0.0/16"]}, "autoAssignCIDRs": ["10.2.0.0/16"]},
                },
                "status": {"serviceNetwork": ["172.31.0.0/16"]},
            }),
            &mut found,
        );
        let expected = ["10.128.0.0/14", "172.30.0.0/16", "10.1.0.0/16", "10.2.0.0/16", "172.31.0.0/16"];
        assert_eq!(found, expected);
        let installed = "networking:\n  machineNetwork:\n  - cidr: 10.0.0.0/16\nimage: a.b/c@1.2.3.4\n";
        assert_eq!(written(installed), ["10.0.0.0/16"]);
    }
}
