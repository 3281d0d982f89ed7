//! What runs in containers, as agents on nodes tell it: asked over TLS under the Service's name, with our token and nothing else; and told
//! where there are none.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use admit::gather::collect::{Row, Verdict};
use admit::gather::{Agents, Context};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::rights::Shipped;
use super::rows_of_gatherers::{DIGEST, context, gathered_by, pod, put, put_namespace, record, row, running};
use super::upload::ingress::tls;

const NAMESPACE: &str = "admit-system";
const TOKEN: &str = "canary-token-4711";
const OS: &str = "47DEQpj8HBSa";

/// An agent, what it was asked, and a cluster in which it runs on the node `one`.
struct Place {
    shipped: Shipped,
    port: u16,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    folder: tempfile::TempDir,
}

impl Place {
    /// `name` is what the agent's certificate says, `code` and `answer` what it answers.
    async fn new(name: &str, code: u16, answer: Value) -> Self {
        let (authority, acceptor) = tls(&[name]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let (seen, answer) = (Arc::clone(&seen), answer.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (seen, answer) = (Arc::clone(&seen), answer.clone());
                    async move {
                        let told = format!("{} {}", request.method(), request.uri().path());
                        let token = request.headers()["authorization"].to_str().unwrap().to_owned();
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let body = serde_json::from_slice(&body).unwrap();
                        seen.lock().unwrap().push((format!("{told} {token}"), body));
                        let body = Full::<Bytes>::from(answer.to_string());
                        Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
                    }
                });
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            }
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).unwrap();
        let place = Self { shipped: cluster(&authority).await, port, asked, folder };
        let mut agent = pod(NAMESPACE, "agent", &["extractor"], &running(&["extractor"], 0));
        agent["metadata"]["labels"] = json!({"app.kubernetes.io/name": "insights-runtime-extractor"});
        agent["status"]["podIP"] = json!("127.0.0.1");
        put(&place.shipped, agent).await;
        place
    }

    fn token(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    async fn gathered(&self) -> (Value, Row) {
        gathered(&self.shipped, Agents { port: self.port, ..Agents::of(NAMESPACE, self.token()) }).await
    }
}

/// Pods on two nodes, and the authority of Services.
async fn cluster(authority: &str) -> Shipped {
    let shipped = Shipped::new().await;
    put_namespace(&shipped, "shop").await;
    for (name, node, id) in
        [("a", "one", "cri-o://a"), ("b", "one", "cri-o://b"), ("c", "two", "cri-o://c"), ("d", "one", "")]
    {
        let mut object = pod("shop", name, &["till"], &running(&["till"], 0));
        object["spec"]["nodeName"] = json!(node);
        object["status"]["containerStatuses"][0]["containerID"] = json!(id);
        put(&shipped, object).await;
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "service-ca-bundle", "namespace": NAMESPACE},
        "data": {"service-ca.crt": authority},
    });
    put(&shipped, map).await;
    shipped
}

async fn gathered(shipped: &Shipped, agents: Agents) -> (Value, Row) {
    let asking = Context { agents: Some(agents), ..context(shipped) };
    let (records, rows) = gathered_by(asking, "workloads/workload_info").await;
    let record = record(&records, "config/workload_info.json");
    assert!(!record.contains("Java") && !record.contains("shop"), "{record}");
    (serde_json::from_str(record).unwrap(), row(&rows, "workloads/workload_info").clone())
}

/// Of the shapes of all namespaces what runs in them.
fn told(record: &Value) -> Vec<Value> {
    let namespaces = record["namespaces"].as_object().unwrap().values();
    let shapes = namespaces.flat_map(|namespace| namespace["shapes"].as_array().unwrap());
    let containers = shapes.flat_map(|shape| shape["containers"].as_array().unwrap());
    let containers = containers.inspect(|container| assert_eq!(container["imageID"], DIGEST));
    containers.map(|container| container["runtimeInfo"].clone()).collect()
}

#[tokio::test]
async fn dg_05_workload_info_tells_what_runs_in_containers_as_agents_tell_it() {
    let info = json!({"os": OS, "kind": "Java", "runtimes": [{"name": OS, "version": OS}]});
    let answer = json!({"shop": {
        "a": {"cri-o://a": info}, "b": {"cri-o://b": {}}, "x": {"cri-o://unasked": info},
    }});
    let place = Place::new("exporter.admit-system.svc.cluster.local", 200, answer).await;
    let (record, row) = place.gathered().await;
    assert_eq!(row.verdict, Verdict::Gathered { records: 1 }, "{row:?}");
    let asked = place.asked.lock().unwrap().clone();
    let expected = (
        format!("POST /gather_runtime_info Bearer {TOKEN}"),
        json!({"containerIds": ["cri-o://a", "cri-o://b"]}),
    );
    assert_eq!(asked, [expected]);
    let runtimes: Vec<_> = told(&record).into_iter().filter(|info| !info.is_null()).collect();
    assert_eq!(runtimes.len(), 1, "{record:#}");
    assert_eq!((&runtimes[0]["os"], &runtimes[0]["runtimes"]), (&info["os"], &info["runtimes"]));
    let warned = row.warnings.join("\n");
    assert!(warned.contains("of node two is not told: no insights-runtime-extractor runs on it"), "{warned}");
}

#[tokio::test]
async fn dg_05_workload_info_says_that_nobody_tells_what_runs_in_containers() {
    let shipped = cluster("").await;
    let (record, row) = gathered(&shipped, Agents::of(NAMESPACE, "/nowhere")).await;
    assert_eq!(row.verdict, Verdict::Gathered { records: 1 }, "{row:?}");
    assert!(told(&record).iter().all(Value::is_null));
    let warned = row.warnings.join("\n");
    assert!(warned.contains("no insights-runtime-extractor runs in namespace admit-system"), "{warned}");
}

/// Errors beside the record, which has no word of what runs, and none with the token.
async fn refused(place: &Place, agents: Agents) -> String {
    let (record, row) = gathered(&place.shipped, agents).await;
    assert!(told(&record).iter().all(Value::is_null), "{record:#}");
    let Verdict::GatheredWithErrors { records: 1, errors } = row.verdict else { panic!("{row:?}") };
    let errors = errors.join("\n");
    assert!(!errors.contains(TOKEN), "{errors}");
    errors
}

#[tokio::test]
async fn dg_05_an_agent_that_cannot_be_asked_is_an_error_and_gets_no_token() {
    let place = Place::new("another.example", 200, json!({})).await;
    let agents = Agents { port: place.port, ..Agents::of(NAMESPACE, place.token()) };
    let errors = refused(&place, agents).await;
    assert!(
        errors.contains("the containers of node one is not told") && errors.contains("certificate"),
        "{errors}"
    );
    assert!(place.asked.lock().unwrap().is_empty(), "the token travelled");
    let errors = refused(&place, Agents::of(NAMESPACE, place.folder.path().join("missing"))).await;
    assert!(errors.contains("without the token"), "{errors}");
    let elsewhere = Place::new("exporter.admit-system.svc.cluster.local", 403, json!({})).await;
    let errors =
        refused(&elsewhere, Agents { port: elsewhere.port, ..Agents::of(NAMESPACE, elsewhere.token()) })
            .await;
    assert!(errors.contains("answered 403"), "{errors}");
}
