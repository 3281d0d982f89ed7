//! Webhooks that name a Service: where it is found, and the words of kube-apiserver v1.36.2 where it is not. Those about
//! ExternalName are its words by default, all others those with `--enable-aggregator-routing=true`.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use admit_apiserver::Server;
use admit_apiserver::store::{Expect, Key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::{delete, merge, post};
use crate::webhook::{CONFIGURATIONS, MAPS, Script, configuration, map, serve};

const SERVICES: &str = "/api/v1/namespaces/demo/services";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const REACHED: &str = "admission webhook \"validate.hook.example\" denied the request: reached";
const NO_ENDPOINTS: &str = "no endpoints available for service \"hook\"";

/// A server with the namespace `demo`, and a webhook that refuses everything that reaches it.
struct Demo {
    server: Server,
    script: Script,
    address: SocketAddr,
    pem: String,
}

impl Demo {
    async fn new() -> Self {
        let script = Script::default();
        script.answers(json!({"allowed": false, "status": {"message": "reached"}}));
        let (address, pem) = serve(script.clone()).await;
        let server = Server::builder().build().await.unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}});
        assert_eq!(post(&server, "/api/v1/namespaces", &namespace).await.status, 201);
        Self { server, script, address, pem }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    /// The `clientConfig` of the webhook behind a port of this Service.
    fn client(&self, service: &str, port: u16) -> Value {
        json!({
            "service": {"namespace": "demo", "name": service, "path": "/validate", "port": port},
            "caBundle": STANDARD.encode(&self.pem),
        })
    }

    async fn register(&self, client: &Value) {
        let stored = post(&self.server, CONFIGURATIONS, &configuration(client, &json!({}))).await;
        assert_eq!(stored.status, 201, "{stored:?}");
    }

    async fn unregister(&self) {
        delete(&self.server, &format!("{CONFIGURATIONS}/hook"), None).await;
    }

    async fn service(&self, name: &str, spec: &Value) {
        let service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        let stored = post(&self.server, SERVICES, &service).await;
        assert_eq!(stored.status, 201, "{stored:?}");
    }

    /// Past the API, which takes no endpoints of this machine.
    async fn slice(&self, name: &str, slice: &Value) {
        let mut object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": "demo", "labels": {"kubernetes.io/service-name": "hook"}},
        });
        for (field, value) in slice.as_object().unwrap() {
            object[field] = value.clone();
        }
        let key =
            Key { resource: "endpointslices".into(), namespace: "demo".to_owned(), name: name.to_owned() };
        self.server.store().put(&key, Expect::Absent, object).await.unwrap();
    }

    /// What a client is told whose object the webhook is to be asked about.
    async fn told(&self) -> String {
        post(&self.server, MAPS, &map("one")).await.message().to_owned()
    }
}

fn failed(url: &str, why: &str) -> String {
    format!(
        "Internal error occurred: failed calling webhook \"validate.hook.example\": failed to call webhook: Post \
         \"{url}?timeout=10s\": {why}"
    )
}

fn named(number: u16) -> Value {
    json!({"ports": [{"name": "https", "port": number, "protocol": "TCP"}], "endpoints": [{"addresses": ["127.0.0.1"]}]})
}

/// `named` with endpoints of these conditions at addresses of this machine.
fn conditioned(number: u16, conditions: &[Value]) -> Value {
    let mut slice = named(number);
    let endpoint = |(at, conditions): (usize, &Value)| json!({"addresses": [format!("127.0.0.{}", at + 1)], "conditions": conditions});
    slice["endpoints"] = conditions.iter().enumerate().map(endpoint).collect();
    slice
}

#[tokio::test]
async fn a_service_is_reached_at_its_ready_endpoints() {
    let demo = Demo::new().await;
    let at = demo.port();
    let https = json!({"ports": [{"name": "https", "port": 443, "targetPort": "https"}]});
    let unnamed = json!({"ports": [{"port": 443, "targetPort": 8443}]});
    let several = json!({"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]});
    let headless = json!({"clusterIP": "None", "ports": [{"name": "https", "port": 443}]});
    let portless = json!({"clusterIP": "None"});
    let with = |field: &str, value: Value| {
        let mut slice = named(at);
        slice[field] = value;
        slice
    };
    let not_ready = json!({"ready": false});
    let ports = json!([{"name": "http", "port": 1}, {"name": "https", "port": at}]);
    let of_another =
        json!({"name": "a", "namespace": "demo", "labels": {"kubernetes.io/service-name": "other"}});
    let ready_second =
        json!([{"addresses": ["127.0.0.9"], "conditions": not_ready}, {"addresses": ["127.0.0.1"]}]);
    let no_port = |port: u16| format!("no service port {port} found for service \"hook\"");
    let cases: Vec<(&Value, u16, Vec<Value>, String)> = vec![
        (&https, 443, vec![named(at)], REACHED.to_owned()),
        (&https, 443, vec![], NO_ENDPOINTS.to_owned()),
        (&https, 8443, vec![named(at)], no_port(8443)),
        (&https, 443, vec![conditioned(at, &[json!({"ready": true})])], REACHED.to_owned()),
        (&https, 443, vec![conditioned(at, &[json!({})])], REACHED.to_owned()),
        (&https, 443, vec![conditioned(at, std::slice::from_ref(&not_ready))], NO_ENDPOINTS.to_owned()),
        (
            &https,
            443,
            vec![conditioned(at, &[json!({"ready": false, "serving": true, "terminating": true})])],
            NO_ENDPOINTS.to_owned(),
        ),
        (&https, 443, vec![with("endpoints", ready_second)], REACHED.to_owned()),
        (&https, 443, vec![with("endpoints", Value::Null)], NO_ENDPOINTS.to_owned()),
        (&https, 443, vec![with("ports", json!([{"name": "other", "port": at}]))], NO_ENDPOINTS.to_owned()),
        (&https, 443, vec![with("ports", json!([{"name": "https"}]))], NO_ENDPOINTS.to_owned()),
        (&https, 443, vec![with("metadata", of_another)], NO_ENDPOINTS.to_owned()),
        (&https, 443, vec![conditioned(1, &[not_ready]), named(at)], REACHED.to_owned()),
        (&unnamed, 443, vec![with("ports", json!([{"name": "", "port": at}]))], REACHED.to_owned()),
        (&unnamed, 443, vec![named(at)], NO_ENDPOINTS.to_owned()),
        (&several, 443, vec![with("ports", ports.clone())], REACHED.to_owned()),
        (
            &several,
            80,
            vec![with("ports", ports)],
            "dial tcp 127.0.0.1:1: connect: connection refused".to_owned(),
        ),
        (&headless, 443, vec![named(at)], REACHED.to_owned()),
        (&headless, 443, vec![], NO_ENDPOINTS.to_owned()),
        (&portless, 443, vec![named(at)], no_port(443)),
    ];
    for (number, (spec, port, slices, expected)) in cases.into_iter().enumerate() {
        demo.service("hook", spec).await;
        for (at, slice) in slices.iter().enumerate() {
            demo.slice(&format!("s{number}-{at}"), slice).await;
        }
        demo.register(&demo.client("hook", port)).await;
        let url = format!("https://hook.demo.svc:{port}/validate");
        let expected = if expected == REACHED { expected } else { failed(&url, &expected) };
        assert_eq!(demo.told().await, expected, "{number}: {spec} at {port}, {slices:?}");
        demo.unregister().await;
        delete(&demo.server, "/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices", None).await;
        delete(&demo.server, &format!("{SERVICES}/hook"), None).await;
    }
}

#[tokio::test]
async fn a_service_may_stand_for_a_name() {
    let demo = Demo::new().await;
    let free = testing::free_port().unwrap();
    let external = |name: &str| json!({"type": "ExternalName", "externalName": name});
    // The ports that it lists are nobody's.
    let listing = json!({"type": "ExternalName", "externalName": "localhost", "ports": [{"port": 1}]});
    let refused = format!("dial tcp 127.0.0.1:{free}: connect: connection refused");
    let cases = [
        (external("localhost"), demo.port(), REACHED),
        (external("127.0.0.1"), demo.port(), REACHED),
        (listing, demo.port(), REACHED),
        (external("127.0.0.1"), free, &refused),
        (external("nowhere.invalid"), 443, "dial tcp: lookup nowhere.invalid: no such host"),
    ];
    for (spec, port, expected) in cases {
        demo.service("hook", &spec).await;
        demo.register(&demo.client("hook", port)).await;
        let url = format!("https://hook.demo.svc:{port}/validate");
        let expected = if expected == REACHED { expected.to_owned() } else { failed(&url, expected) };
        assert_eq!(demo.told().await, expected, "{spec} at {port}");
        demo.unregister().await;
        delete(&demo.server, &format!("{SERVICES}/hook"), None).await;
    }
}

#[tokio::test]
async fn a_service_that_comes_and_goes_is_looked_up_each_time() {
    let demo = Demo::new().await;
    demo.register(&demo.client("hook", demo.port())).await;
    let url = format!("https://hook.demo.svc:{}/validate", demo.port());
    let absent = failed(&url, "service \"hook\" not found");
    assert_eq!(demo.told().await, absent);
    demo.service("hook", &json!({"type": "ExternalName", "externalName": "localhost"})).await;
    assert_eq!(demo.told().await, REACHED);
    delete(&demo.server, &format!("{SERVICES}/hook"), None).await;
    assert_eq!(demo.told().await, absent);

    let ignore = json!({"failurePolicy": "Ignore"});
    let tolerant = configuration(&demo.client("hook", demo.port()), &ignore)["webhooks"].clone();
    let changed =
        merge(&demo.server, &format!("{CONFIGURATIONS}/hook"), &json!({"webhooks": tolerant})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(post(&demo.server, MAPS, &map("one")).await.status, 201);
}

/// The name is the Service's, whatever the endpoint is.
#[tokio::test]
async fn certificates_are_those_of_the_service() {
    let demo = Demo::new().await;
    demo.service("other", &json!({"type": "ExternalName", "externalName": "127.0.0.1"})).await;
    demo.register(&demo.client("other", demo.port())).await;
    let why =
        "tls: failed to verify certificate: x509: certificate is valid for hook.demo.svc, not other.demo.svc";
    let url = format!("https://other.demo.svc:{}/validate", demo.port());
    assert_eq!(demo.told().await, failed(&url, why));
    assert!(demo.script.asked().is_empty());
}

#[tokio::test]
async fn mutating_webhooks_name_services_too() {
    let demo = Demo::new().await;
    let patch = json!([{"op": "add", "path": "/data/b", "value": "2"}]).to_string();
    demo.script.answers(json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch)}));
    let mut stored = configuration(&demo.client("hook", demo.port()), &json!({}));
    stored["kind"] = "MutatingWebhookConfiguration".into();
    assert_eq!(post(&demo.server, MUTATING, &stored).await.status, 201);
    let url = format!("https://hook.demo.svc:{}/validate", demo.port());
    assert_eq!(demo.told().await, failed(&url, "service \"hook\" not found"));
    demo.service("hook", &json!({"type": "ExternalName", "externalName": "localhost"})).await;
    let made = post(&demo.server, MAPS, &map("one")).await;
    assert_eq!((made.status, &made.body["data"]), (201, &json!({"a": "1", "b": "2"})));
}

/// Each is asked at some time; those of another IP family than the Service's first are not while others are ready.
#[tokio::test]
async fn all_ready_endpoints_take_their_turns() {
    let demo = Demo::new().await;
    demo.service("hook", &json!({"ports": [{"name": "https", "port": 443}]})).await;
    demo.slice("v4", &conditioned(1, &[json!({}), json!({"ready": true}), json!({"ready": false})])).await;
    demo.slice("v4-too", &named(2)).await;
    let mut other_family = named(3);
    other_family["addressType"] = "IPv6".into();
    demo.slice("v6", &other_family).await;
    demo.register(&demo.client("hook", 443)).await;
    let mut told = BTreeSet::new();
    // The chance that one of three is never drawn is one in 10^17.
    for _ in 0..100 {
        told.insert(demo.told().await);
    }
    let expected = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.2:1"]
        .map(|at| format!("dial tcp {at}: connect: connection refused"))
        .map(|why| failed("https://hook.demo.svc:443/validate", &why));
    assert_eq!(told, BTreeSet::from(expected));
}
