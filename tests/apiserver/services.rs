//! The addresses and ports on nodes of services: each is given to one of them, and free again when it goes.

use std::collections::HashSet;

use admit_apiserver::{Server, ServiceNetwork};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{delete, get, merge, post};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";

async fn server() -> Server {
    Server::builder().build().await.unwrap()
}

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    for (field, value) in spec.as_object().unwrap() {
        service["spec"][field] = value.clone();
    }
    service
}

/// Stores a service; what it was given.
async fn stored(server: &Server, name: &str, spec: &Value) -> Value {
    let answer = post(server, SERVICES, &service(name, spec)).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.body["spec"].clone()
}

/// The message of a refusal, without the words about whom it is.
async fn refused(server: &Server, name: &str, spec: &Value) -> String {
    let answer = post(server, SERVICES, &service(name, spec)).await;
    assert_eq!(answer.status, 422, "{:?}", answer.body);
    answer.message().replacen(&format!("Service \"{name}\" is invalid: "), "", 1)
}

async fn addresses(server: &Server) -> Vec<String> {
    let list = get(server, ADDRESSES).await.body;
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_cluster_has_a_service_by_which_pods_reach_it() {
    let server = server().await;
    let own = get(&server, &format!("{SERVICES}/kubernetes")).await.body;
    assert_eq!(own["spec"]["clusterIP"], "10.0.0.1");
    assert_eq!(
        own["spec"]["ports"],
        json!([{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}])
    );
    let range = get(&server, &format!("{RANGES}/kubernetes")).await.body;
    assert_eq!(range["spec"]["cidrs"], json!(["10.0.0.0/24"]));
    assert_eq!(range["status"]["conditions"][0]["status"], "True");
    let address = get(&server, &format!("{ADDRESSES}/10.0.0.1")).await.body;
    let parent = json!({"resource": "services", "namespace": "default", "name": "kubernetes"});
    assert_eq!(address["spec"]["parentRef"], parent);
    delete(&server, &format!("{SERVICES}/kubernetes"), None).await;
    assert_eq!(get(&server, &format!("{SERVICES}/kubernetes")).await.body["spec"]["clusterIP"], "10.0.0.1");
}

#[tokio::test]
async fn pods_find_the_server_where_it_is_said_to_be() {
    for (address, told) in [("192.0.2.7", true), ("127.0.0.1", false)] {
        let address = Some(address.parse().unwrap());
        let network = ServiceNetwork { address, port: 8443, ..ServiceNetwork::default() };
        let server = Server::builder().service_network(network).build().await.unwrap();
        let own = get(&server, &format!("{SERVICES}/kubernetes")).await.body;
        assert_eq!(own["spec"]["ports"][0]["targetPort"], 8443);
        let endpoints = get(&server, "/api/v1/namespaces/default/endpoints/kubernetes").await;
        let slices =
            get(&server, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").await;
        assert_eq!((endpoints.status, slices.status), if told { (200, 200) } else { (404, 404) });
        if told {
            assert_eq!(endpoints.body["subsets"][0]["addresses"], json!([{"ip": "192.0.2.7"}]));
            assert_eq!(slices.body["ports"][0]["port"], 8443);
        }
    }
}

#[tokio::test]
async fn an_address_has_one_service() {
    let server = server().await;
    assert_eq!(
        stored(&server, "a", &json!({"clusterIP": "10.0.0.50"})).await["clusterIPs"],
        json!(["10.0.0.50"])
    );
    assert_eq!(
        refused(&server, "b", &json!({"clusterIP": "10.0.0.50"})).await,
        "spec.clusterIPs: Invalid value: [\"10.0.0.50\"]: failed to allocate IP 10.0.0.50: provided IP is already \
         allocated"
    );
    for outside in ["1.2.3.4", "10.0.0.0", "10.0.0.255"] {
        let why = format!(
            "spec.clusterIPs: Invalid value: [\"{outside}\"]: failed to allocate IP {outside}: the provided network does \
             not match the current range"
        );
        assert_eq!(refused(&server, "b", &json!({"clusterIP": outside})).await, why);
    }
    assert_eq!(addresses(&server).await, ["10.0.0.1", "10.0.0.50"]);
    delete(&server, &format!("{SERVICES}/a"), None).await;
    assert_eq!(addresses(&server).await, ["10.0.0.1"]);
    stored(&server, "b", &json!({"clusterIP": "10.0.0.50"})).await;
    // It is let go by a service that becomes the name of something outside.
    let outside = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
    assert_eq!(merge(&server, &format!("{SERVICES}/b"), &outside).await.status, 200);
    assert_eq!(addresses(&server).await, ["10.0.0.1"]);
    let inside = json!({"spec": {"type": "ClusterIP", "externalName": null, "clusterIP": "10.0.0.50"}});
    assert_eq!(merge(&server, &format!("{SERVICES}/b"), &inside).await.status, 200);
    assert_eq!(addresses(&server).await, ["10.0.0.1", "10.0.0.50"]);
}

#[tokio::test]
async fn what_is_not_stored_is_free_again() {
    let server = server().await;
    let asks =
        json!({"clusterIP": "10.0.0.9", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]});
    let dry = post(&server, &format!("{SERVICES}?dryRun=All"), &service("a", &asks)).await;
    assert_eq!(dry.status, 201, "{:?}", dry.body);
    let wrong = json!({"clusterIP": "10.0.0.9", "type": "NodePort", "sessionAffinity": "Odd",
        "ports": [{"port": 80, "nodePort": 30123}]});
    assert!(refused(&server, "a", &wrong).await.contains("spec.sessionAffinity"));
    assert_eq!(addresses(&server).await, ["10.0.0.1"]);
    stored(&server, "a", &asks).await;
    let outside =
        post(&server, &format!("{SERVICES}?dryRun=All"), &service("b", &json!({"clusterIP": "1.2.3.4"})))
            .await;
    assert!(outside.message().ends_with("is not in the valid range. The range of valid IPs is 10.0.0.0/24"));
}

#[tokio::test]
async fn a_port_on_nodes_has_one_service() {
    let server = server().await;
    let asks = |port: u64| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    stored(&server, "a", &asks(30123)).await;
    assert_eq!(
        refused(&server, "b", &asks(30123)).await,
        "spec.ports[0].nodePort: Invalid value: 30123: provided port is already allocated"
    );
    assert!(refused(&server, "b", &asks(80)).await.ends_with("The range of valid ports is 30000-32767"));
    stored(&server, "b", &asks(30124)).await;
    // Who changes to another lets the first go.
    let other = json!({"spec": {"ports": [{"port": 80, "nodePort": 30125}]}});
    assert_eq!(merge(&server, &format!("{SERVICES}/a"), &other).await.status, 200);
    stored(&server, "c", &asks(30123)).await;
    assert_eq!(
        merge(&server, &format!("{SERVICES}/a"), &json!({"spec": {"type": "ClusterIP"}})).await.status,
        200
    );
    stored(&server, "d", &asks(30125)).await;
    delete(&server, &format!("{SERVICES}/d"), None).await;
    let taken = json!({"spec": {"ports": [{"port": 80, "nodePort": 30124}]}});
    let refused = merge(&server, &format!("{SERVICES}/c"), &taken).await;
    assert_eq!(refused.status, 422);
    stored(&server, "e", &asks(30125)).await;
}

#[tokio::test]
async fn a_range_that_is_full_is_told_and_another_one_helps() {
    let network = ServiceNetwork { range: "10.1.0.0/29".parse().unwrap(), ..ServiceNetwork::default() };
    let server = Server::builder().service_network(network).build().await.unwrap();
    let mut given = HashSet::new();
    for name in ["a", "b", "c", "d", "e"] {
        let spec = stored(&server, name, &json!({})).await;
        assert!(given.insert(spec["clusterIP"].as_str().unwrap().to_owned()));
    }
    let full = post(&server, SERVICES, &service("f", &json!({}))).await;
    assert_eq!(full.status, 500);
    assert_eq!(full.message(), "Internal error occurred: failed to allocate a serviceIP: range is full");
    let more = json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.2.0.0/24"]}});
    assert_eq!(post(&server, RANGES, &more).await.status, 201);
    assert!(stored(&server, "f", &json!({})).await["clusterIP"].as_str().unwrap().starts_with("10.2.0."));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_get_addresses_and_ports_of_their_own() {
    let server = server().await;
    let create = |at: usize| {
        let server = server.clone();
        tokio::spawn(async move { stored(&server, &format!("s{at}"), &json!({"type": "NodePort"})).await })
    };
    let given = join_all((0..100).map(create)).await;
    let given: Vec<Value> = given.into_iter().map(Result::unwrap).collect();
    let apart = |pointer: &str| {
        given.iter().map(|spec| spec.pointer(pointer).unwrap().to_string()).collect::<HashSet<_>>().len()
    };
    assert_eq!((apart("/clusterIP"), apart("/ports/0/nodePort")), (100, 100));
    let asked = |at: usize| {
        let server = server.clone();
        tokio::spawn(async move {
            let asks = json!({"clusterIP": "10.0.0.3"});
            post(&server, SERVICES, &service(&format!("t{at}"), &asks)).await.status
        })
    };
    let statuses = join_all((0..20).map(asked)).await;
    assert_eq!(statuses.iter().filter(|status| matches!(status, Ok(201))).count(), 1);
}

#[tokio::test]
async fn services_are_of_the_family_of_the_cluster() {
    let server = server().await;
    for (spec, why) in [
        (
            json!({"ipFamilies": ["IPv6"]}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"clusterIP": "fd00::1"}),
            "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
        ),
        (
            json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}),
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when \
             multiple IP families are specified",
        ),
    ] {
        assert_eq!(refused(&server, "a", &spec).await, why, "{spec}");
    }
    let preferred = stored(&server, "a", &json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    assert_eq!(preferred["ipFamilies"], json!(["IPv4"]));
}
