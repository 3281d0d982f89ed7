//! Lists of many pages: every object is read once and counted, whatever becomes of the token in between.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use admit::gather::collect::{Row, Verdict, collect};
use admit::gather::{Context, GATHERERS};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::archive::{archive, entries};
use super::collect::context;

/// A server of so many pods, of which a page may be asked for with a token that is too old.
fn server(pods: usize, expires: bool) -> (Client, Arc<Mutex<Vec<usize>>>) {
    let pages = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&pages);
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = page(request.uri(), pods, expires, &mut seen.lock().unwrap());
        async { Ok::<_, Infallible>(answer) }
    });
    (Client::new(service, "default"), pages)
}

fn page(uri: &http::Uri, pods: usize, expires: bool, pages: &mut Vec<usize>) -> Response<Full<Bytes>> {
    let asked = |name: &str| {
        let pairs = uri.query().unwrap_or_default().split('&');
        pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).next().map(str::to_owned)
    };
    let token = asked("continue").unwrap_or_default();
    let (code, body) = if token == "500" && expires {
        (
            410,
            json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old",
                     "metadata": {"continue": "now-500"}}),
        )
    } else {
        let from: usize = token.trim_start_matches("now-").parse().unwrap_or(0);
        let limit: usize = asked("limit").unwrap().parse().unwrap();
        let to = pods.min(from + limit);
        pages.push(to - from);
        let pod = |n: usize| {
            json!({"metadata": {"name": format!("p-{n}"), "namespace": "kube-system"},
                   "status": {"startTime": "2026-11-02T00:00:00Z", "containerStatuses": [{"image": "a:1"}]}})
        };
        let items: Vec<Value> = (from..to).map(pod).collect();
        let next = if to < pods { to.to_string() } else { String::new() };
        (200, json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": next}, "items": items}))
    };
    Response::builder().status(code).body(Full::from(body.to_string())).unwrap()
}

async fn counted(context: &Context) -> (Row, String) {
    let images = GATHERERS.iter().filter(|gatherer| gatherer.id == "clusterconfig/container_images");
    let row = collect(images.collect(), context, NonZeroUsize::MIN).await.remove(0);
    let read = entries(&archive(context.keeper.close().unwrap(), &[]));
    (row, read.into_iter().find(|entry| entry.path == "config/running_containers.json").unwrap().text)
}

#[tokio::test]
async fn all_pods_of_all_pages_are_counted() {
    let (client, pages) = server(8_123, false);
    let (row, images) = counted(&context(client)).await;
    assert_eq!((row.verdict, row.warnings), (Verdict::Gathered { records: 1 }, vec![]));
    assert_eq!(images, r#"{"2026-11":{"a:1":8123}}"#);
    assert_eq!(*pages.lock().unwrap(), [vec![500; 16], vec![123]].concat());
}

#[tokio::test]
async fn a_token_that_is_too_old_is_told_and_the_list_goes_on() {
    let (client, _) = server(1_200, true);
    let (row, images) = counted(&context(client)).await;
    assert_eq!(row.verdict, Verdict::Gathered { records: 1 });
    assert!(row.warnings[0].contains("the list changed"), "{:?}", row.warnings);
    assert_eq!(images, r#"{"2026-11":{"a:1":1200}}"#);
}
