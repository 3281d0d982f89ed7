//! Traces, as a collector reads them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;
use tokio::net::TcpListener;

use super::server::{Place, policy, review};
use crate::support::https::Client;

/// Path and content type of each delivery, and what it holds.
type Deliveries = Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>;

async fn collector() -> (SocketAddr, Deliveries) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, deliveries) = (listener.local_addr().unwrap(), Deliveries::default());
    let taken = Arc::clone(&deliveries);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let taken = Arc::clone(&taken);
            let service = service_fn(move |request: Request<Incoming>| {
                let taken = Arc::clone(&taken);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let what =
                        format!("{} {}", head.uri.path(), head.headers["content-type"].to_str().unwrap());
                    taken.lock().unwrap().push((what, ExportTraceServiceRequest::decode(body).unwrap()));
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    (address, deliveries)
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes
        .iter()
        .find(|attribute| attribute.key == key)
        .unwrap_or_else(|| panic!("no {key}: {attributes:?}"));
    match found.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{key}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_is_sent_a_span_for_each_review() {
    let (address, deliveries) = collector().await;
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    let endpoint = format!("http://{address}");
    let serving = place.start(&["--otlp-endpoint", &endpoint, "--shutdown-delay", "0"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    for (uid, value, flags) in [("one", "good", "01"), ("two", "bad", "01"), ("not-sampled", "good", "00")] {
        client.headers = vec![("traceparent".to_owned(), format!("00-{trace}-{parent}-{flags}"))];
        client.post("/enforce", review(uid, &json!({"v": value}))).await.unwrap();
    }
    client.headers.clear();
    client.post("/validate", "[").await.unwrap();
    assert!(serving.terminate().success());

    let deliveries = std::mem::take(&mut *deliveries.lock().unwrap());
    assert!(deliveries.iter().all(|(what, _)| what == "/v1/traces application/x-protobuf"), "{deliveries:?}");
    let resources: Vec<_> = deliveries.into_iter().flat_map(|(_, request)| request.resource_spans).collect();
    for resource in &resources {
        assert_eq!(text(&resource.resource.as_ref().unwrap().attributes, "service.name"), "admit");
    }
    let spans: Vec<Span> = resources
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect();
    assert_eq!(spans.len(), 3, "{spans:?}");
    let of = |route: &str, answer: &str| {
        let is = |span: &&Span| {
            text(&span.attributes, "admission.route") == route
                && text(&span.attributes, "admission.answer") == answer
        };
        spans.iter().find(is).unwrap_or_else(|| panic!("no span of {route}, {answer}: {spans:?}"))
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (answer, uid) in [("allowed", "one"), ("denied", "two")] {
        let span = of("enforce", answer);
        assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (trace.to_owned(), parent.to_owned()));
        assert_eq!((span.name.as_str(), span.kind), ("admission review", 2), "a server's");
        assert!(span.end_time_unix_nano > span.start_time_unix_nano);
        let about = ["uid", "operation", "resource", "namespace", "name"]
            .map(|key| text(&span.attributes, &format!("admission.{key}")));
        assert_eq!(about, [uid, "CREATE", "configmaps", "n", "c"]);
        assert_eq!(text(&span.attributes, "http.response.status_code"), "200");
    }
    let malformed = of("validate", "malformed");
    assert_eq!(malformed.status.as_ref().unwrap().code, 2, "an error: {malformed:?}");
    assert!(malformed.parent_span_id.is_empty(), "nobody asked for it");
}

/// Nobody is there to take traces: requests are answered as ever, and it is said once.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_holds_up_nothing() {
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoint = format!("http://{gone}");
    let serving = place.start(&["--otlp-endpoint", &endpoint, "--shutdown-delay", "0"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    for _ in 0..10 {
        let answered = client.post("/validate", review("u", &json!({}))).await.unwrap();
        assert_eq!(answered.json()["response"]["allowed"], true);
    }
    serving.signal("-TERM");
    let log = serving.log_until(|log| log.contains("traces cannot be delivered"));
    assert_eq!(log.matches("traces cannot be delivered").count(), 1, "{log}");

    for wrong in ["localhost:4318", "ftp://h", "http://", "no url"] {
        let output = place.fails(&["--otlp-endpoint", wrong]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {said}");
        assert!(said.starts_with(&format!("admit: --otlp-endpoint: `{wrong}` is no address")), "{said}");
    }
}
