//! Lists of many pages: every object is read once and counted, whatever becomes of the token in between.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit::gather::collect::{Row, Verdict, collect};
use admit::gather::{Begin, Context, Failure, GATHERERS, Gatherer, Look, Run, Shared};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::archive::{archive, entries};
use super::collect::context;
use super::runs::PODS;
use crate::support::cluster::FakeCluster;

const OPERATORS: &str = "/apis/config.openshift.io/v1/clusteroperators";

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
    let read = entries(&archive(context.recorder.close().unwrap(), &[]));
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

/// All gatherers that look at pods, and all that look at ClusterOperators, by one list each.
#[tokio::test]
async fn a_list_that_several_gatherers_look_at_is_read_once() {
    let cluster = FakeCluster::new(&[PODS, OPERATORS]);
    let condition = json!({"type": "Degraded", "status": "True"});
    let related = json!([{"group": "", "resource": "namespaces", "name": "kube-system"}]);
    cluster.put(
        OPERATORS,
        json!({"metadata": {"name": "dns"}, "status": {"conditions": [condition], "relatedObjects": related}}),
    );
    let status =
        json!({"startTime": "2026-11-02T00:00:00Z", "containerStatuses": [{"name": "a", "image": "a:1"}]});
    let pod = json!({"metadata": {"name": "p", "namespace": "kube-system"}, "spec": {"containers": [{"name": "a"}]}, "status": status});
    cluster.put(PODS, pod);
    let rows = collect(GATHERERS.iter().collect(), &context(cluster.client()), NonZeroUsize::MIN).await;
    assert_eq!(
        rows.iter().map(|row| &row.id).collect::<Vec<_>>(),
        GATHERERS.iter().map(|it| it.id).collect::<Vec<_>>()
    );
    for (id, records) in [
        ("clusterconfig/container_images", 1),
        ("workloads/workload_info", 1),
        ("clusterconfig/operators", 1),
    ] {
        let row = rows.iter().find(|row| row.id == id).unwrap();
        assert_eq!(row.verdict, Verdict::Gathered { records }, "{row:?}");
    }
    assert_eq!(cluster.count(&Method::GET, PODS), 1);
    assert_eq!(cluster.count(&Method::GET, OPERATORS), 1);
}

/// Keeps a record of how many objects it was shown.
struct Counted(Context, &'static str, usize);

impl Look for Counted {
    fn at<'l>(&'l mut self, _: &'l Value) -> BoxFuture<'l, Result<(), Failure>> {
        self.2 += 1;
        let (id, count) = (self.1, self.2);
        async move {
            match (id, count) {
                ("panics", 3) => panic!("boom"),
                ("breaks", 2) => Err(Failure::MissingApi("x/v1 ys".to_owned())),
                ("stalls", 4) => std::future::pending().await,
                _ => Ok(()),
            }
        }
        .boxed()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        async move { self.0.raw(format!("config/{}", self.1), self.2.to_string()).await }.boxed()
    }
}

const fn looking(id: &'static str, begin: Begin) -> Gatherer {
    Gatherer { id, collects: "", path: "", run: Run::Each(Shared::Pods, begin) }
}

async fn begun(context: Context, id: &'static str) -> Result<Box<dyn Look>, Failure> {
    Ok(Box::new(Counted(context, id, 0)))
}

static TOGETHER: &[Gatherer] = &[
    looking("odd/panics", |context| begun(context, "panics").boxed()),
    looking("odd/breaks", |context| begun(context, "breaks").boxed()),
    looking("odd/refuses", |_| async { Err(Failure::MissingApi("x/v1 xs".to_owned())) }.boxed()),
    looking("odd/late", |context| {
        async {
            tokio::time::sleep(Duration::from_mins(2)).await;
            begun(context, "late").await
        }
        .boxed()
    }),
    looking("odd/never", |_| std::future::pending().boxed()),
    looking("odd/good", |context| begun(context, "good").boxed()),
    looking("odd/stalls", |context| begun(context, "stalls").boxed()),
    looking("odd/other", |context| begun(context, "other").boxed()),
];

fn told<'r>(rows: &'r [Row], id: &str) -> &'r Verdict {
    &rows.iter().find(|row| row.id == id).unwrap().verdict
}

/// One that takes long to begin has a list of its own, in time; the others do not wait for it.
#[tokio::test(start_paused = true)]
async fn who_fails_panics_or_is_late_disturbs_nobody_that_looks_at_the_same_list() {
    let (client, pages) = server(1_100, false);
    let context = context(client);
    let rows = collect(TOGETHER.iter().collect(), &context, NonZeroUsize::MIN).await;
    for (id, expected) in [
        ("odd/panics", Verdict::Panicked("boom".to_owned())),
        ("odd/breaks", Verdict::NoData("the server does not serve x/v1 ys".to_owned())),
        ("odd/refuses", Verdict::NoData("the server does not serve x/v1 xs".to_owned())),
        ("odd/late", Verdict::Gathered { records: 1 }),
        ("odd/never", Verdict::Failed("no answer within 300 s".to_owned())),
        ("odd/good", Verdict::Gathered { records: 1 }),
        ("odd/stalls", Verdict::Failed("no answer within 30 s".to_owned())),
        ("odd/other", Verdict::Gathered { records: 1 }),
    ] {
        assert_eq!(*told(&rows, id), expected, "{id}");
    }
    let good = rows.iter().find(|row| row.id == "odd/good").unwrap();
    assert!(good.duration < Duration::from_secs(91), "{good:?}");
    assert_eq!(*pages.lock().unwrap(), [500, 500, 100, 500, 500, 100]);
    let read = entries(&archive(context.recorder.close().unwrap(), &[]));
    for path in ["config/late", "config/good", "config/other"] {
        assert_eq!(read.iter().find(|entry| entry.path == path).unwrap().text, "1100");
    }
}
