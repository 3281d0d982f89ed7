//! Row 40: every processor is held by the worst that a tenant can send, and others do not notice much.

use std::fs::{self, File, OpenOptions};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::percent;
use crate::repository::root;
use crate::running::Workplace;
use crate::serve::server::{Place, policy, review};
use crate::support::https;
use crate::support::reliability::Row;

/// What is asked, in a build as shipped on a machine with nothing else to do.
const GOOD: Duration = Duration::from_secs(2);
const LIVEZ: Duration = Duration::from_millis(200);
/// What the gate asks of an unoptimised build on a busy machine.
const EVENTUALLY: Duration = Duration::from_mins(1);
/// The grace of every command, and what a busy machine adds.
const GRACE: Duration = Duration::from_secs(25);
const MARGIN: Duration = Duration::from_secs(35);
/// Rounds of good requests beside each kind of bad ones.
const ROUNDS: usize = 10;

const NAMESPACE: &str = "/api/v1/namespaces/default";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const MERGE: &str = "application/strategic-merge-patch+json";

/// One bad request.
#[derive(Clone)]
struct Worst {
    what: &'static str,
    method: &'static str,
    path: String,
    media_type: &'static str,
    body: Bytes,
}

impl Worst {
    fn new(
        what: &'static str,
        method: &'static str,
        path: &str,
        media_type: &'static str,
        body: &Value,
    ) -> Self {
        Self { what, method, path: path.to_owned(), media_type, body: body.to_string().into() }
    }

    fn posted(what: &'static str, path: &str, body: &Value) -> Self {
        Self::new(what, "POST", path, "application/json", body)
    }
}

/// The worst bodies that are known; `part` of so many hundred is of the full size, which is close to the 3 MiB that are taken.
fn worst(part: usize) -> Vec<Worst> {
    let many = |full: usize| 0..(full * part / 100).max(2);
    let named =
        |full: usize| many(full).map(|number| json!({"name": format!("c{number}")})).collect::<Vec<_>>();
    let wrong: Vec<u8> = many(1_400_000).map(|_| 1).collect();
    let finalizers: Vec<String> = many(150_000).map(|number| format!("example.com/f{number}")).collect();
    let variables: Vec<Value> =
        many(60_000).map(|number| json!({"name": format!("V{number}"), "value": "v"})).collect();
    let owner = |number| {
        let uid = format!("00000000-0000-0000-0000-{number:012}");
        json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{number}"), "uid": uid})
    };
    let owners: Vec<Value> = many(20_000).map(owner).collect();
    let words: Vec<String> = (0..(70 * part / 100).max(5)).map(|number| format!("w{number}")).collect();
    let product = json!({"verbs": words, "apiGroups": words, "resources": words, "resourceNames": words});
    let rule = |number| json!({"verbs": ["get"], "apiGroups": [""], "resources": [format!("r{number}")]});
    let rules: Vec<Value> = many(20_000).map(rule).collect();
    let empty: Vec<Value> = many(900_000).map(|_| json!({})).collect();
    let adds: Vec<Value> = many(10_000)
        .map(|number| json!({"op": "add", "path": format!("/data/k{number}"), "value": "v"}))
        .collect();
    let map = format!("{NAMESPACE}/configmaps/target");
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let configuration = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "applied"},
        "spec": {"containers": [{"name": "c", "image": "i", "env": variables}]},
    });
    vec![
        Worst::posted(
            "wrong items",
            "/apis/cyndi.cloud.redhat.com/v1alpha1/namespaces/default/cyndipipelines",
            &json!({
                "apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline", "metadata": {"name": "w"},
                "spec": {"appName": "a", "additionalFilters": wrong},
            }),
        ),
        Worst::new("finalizers", "PATCH", &map, MERGE, &json!({"metadata": {"finalizers": finalizers}})),
        Worst::new(
            "containers",
            "PATCH",
            &format!("{NAMESPACE}/pods/target"),
            MERGE,
            &json!({"spec": {"containers": named(100_000)}}),
        ),
        Worst::new(
            "variables",
            "PATCH",
            &format!("{NAMESPACE}/pods/applied?fieldManager=mallory"),
            "application/apply-patch+yaml",
            &configuration,
        ),
        Worst::posted(
            "owners",
            &format!("{NAMESPACE}/configmaps?dryRun=All"),
            &json!({"metadata": {"name": "owned", "ownerReferences": owners}}),
        ),
        Worst::posted("product of a rule", ROLES, &role("product", json!([product]))),
        Worst::posted("rules", ROLES, &role("rules", json!(rules))),
        Worst::posted(
            "empty containers",
            &format!("{NAMESPACE}/pods"),
            &json!({"metadata": {"name": "empty"}, "spec": {"containers": empty}}),
        ),
        Worst::new("additions", "PATCH", &map, "application/json-patch+json", &json!(adds)),
    ]
}

/// A client that takes what it is told: by itself it would ask again after 429 and 504.
async fn client(place: &Workplace) -> Client {
    let file = Kubeconfig::read_from(place.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// The code of what is answered, and what is in it.
async fn send(client: &Client, bad: &Worst, query: &str) -> (StatusCode, String) {
    let mark = if bad.path.contains('?') { "&" } else { "?" };
    let request = Request::builder()
        .method(bad.method)
        .uri(format!("{}{mark}{query}", bad.path))
        .header("content-type", bad.media_type)
        .header("impersonate-user", "mallory")
        .body(kube::client::Body::from(bad.body.to_vec()))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    let code = answer.status();
    (code, String::from_utf8_lossy(&answer.into_body().collect_bytes().await.unwrap()).into_owned())
}

async fn good(client: &Client, method: &str, path: &str, body: &Value) -> Duration {
    let began = Instant::now();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = client.send(request.body(kube::client::Body::from(body)).unwrap()).await.unwrap();
    let code = answer.status();
    let text = answer.into_body().collect_bytes().await.unwrap();
    assert!(code.is_success(), "{method} {path}: {code}: {}", String::from_utf8_lossy(&text));
    began.elapsed()
}

/// A tenant: administrator of one namespace, who may have pipelines there, and what the bad requests change.
async fn settle(client: &Client) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}]);
    let bound = |role: &str| {
        json!({
            "metadata": {"name": role}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        })
    };
    let pipelines = json!({
        "metadata": {"name": "pipelines"},
        "rules": [{"apiGroups": ["cyndi.cloud.redhat.com"], "resources": ["*"], "verbs": ["*"]}],
    });
    let bindings = format!("{rbac}/namespaces/default/rolebindings");
    good(client, "POST", &format!("{rbac}/clusterroles"), &pipelines).await;
    good(client, "POST", &bindings, &bound("pipelines")).await;
    good(client, "POST", &bindings, &bound("admin")).await;
    good(client, "POST", &format!("{NAMESPACE}/configmaps"), &json!({"metadata": {"name": "target"}})).await;
    let pod = json!({"metadata": {"name": "target"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    good(client, "POST", &format!("{NAMESPACE}/pods"), &pod).await;
}

/// Bad requests, one after the other on each of so many connections, until the value goes.
struct Attack {
    over: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    attackers: JoinSet<()>,
}

impl Attack {
    async fn begin(place: &Workplace, bad: &Worst, query: &'static str) -> Self {
        let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut attackers = JoinSet::new();
        for _ in 0..std::thread::available_parallelism().map_or(2, |count| count.get().max(2)) {
            let (client, bad) = (client(place).await, bad.clone());
            let (over, sent) = (Arc::clone(&over), Arc::clone(&sent));
            attackers.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    sent.fetch_add(1, Ordering::Relaxed);
                    let (code, text) = send(&client, &bad, query).await;
                    let expected =
                        code.is_success() || code.is_client_error() || code == StatusCode::GATEWAY_TIMEOUT;
                    let shown: String = text.chars().take(300).collect();
                    assert!(expected, "{}: {code}: {shown}", bad.what);
                }
            });
        }
        while sent.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        Self { over, sent, attackers }
    }

    async fn end(mut self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.attackers.join_next().await {
            ended.unwrap();
        }
        self.sent.load(Ordering::Relaxed)
    }
}

/// The slowest answers to good requests beside `bad` ones.
async fn beside(place: &Workplace, bad: &Worst, query: &'static str, rounds: usize) -> Value {
    let client = client(place).await;
    let attack = Attack::begin(place, bad, query).await;
    let (mut livez, mut read, mut change) = Default::default();
    for round in 0..rounds {
        livez = good(&client, "GET", "/livez", &Value::Null).await.max(livez);
        read = good(&client, "GET", &format!("{NAMESPACE}/configmaps/target"), &Value::Null).await.max(read);
        let map = json!({"metadata": {"generateName": "good-"}, "data": {"round": round.to_string()}});
        change = good(&client, "POST", &format!("{NAMESPACE}/configmaps"), &map).await.max(change);
    }
    let sent = attack.end().await;
    let millis = |took: Duration| u64::try_from(took.as_millis()).unwrap();
    json!({
        "bad": sent, "bytes": bad.body.len(), "livezMs": millis(livez), "readMs": millis(read), "changeMs": millis(change),
    })
}

fn within(measured: &Value, name: &str, limit: Duration) -> bool {
    u128::from(measured[name].as_u64().unwrap()) <= limit.as_millis()
}

#[tokio::test(flavor = "multi_thread")]
async fn row_40_others_are_answered_while_every_processor_is_held() {
    let mut row = Row::short(40, "nine bad bodies at a fiftieth of their size, then SIGTERM");
    let place = Workplace::new();
    let running = place.start();
    let client = client(&place).await;
    settle(&client).await;
    let bodies = worst(2);
    for bad in &bodies {
        let measured = beside(&place, bad, "timeout=2s", 1).await;
        for name in ["livezMs", "readMs", "changeMs"] {
            assert!(within(&measured, name, EVENTUALLY), "{}: {measured}", bad.what);
        }
    }
    // A time that is over before anything can be done: nothing is.
    let (code, text) = send(&client, &bodies[4], "timeout=1us").await;
    assert_eq!(code, StatusCode::GATEWAY_TIMEOUT, "{text}");
    assert!(text.contains("\"reason\":\"Timeout\""), "{text}");
    let (code, text) = send(&client, &bodies[4], "timeout=soon").await;
    assert!(code == StatusCode::BAD_REQUEST && text.contains("invalid timeout specified"), "{text}");

    // It stops beside them, too.
    let attack = Attack::begin(&place, &worst(20)[7], "").await;
    let asked = Instant::now();
    assert!(tokio::task::spawn_blocking(|| running.terminate()).await.unwrap().code().is_some());
    let ended = asked.elapsed();
    assert!(ended < GRACE + MARGIN, "{ended:?}");
    drop(attack);
    row.measured(json!({"bodies": bodies.len(), "endedMs": ended.as_millis()}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_40_worst_bodies_of_three_megabytes() {
    let mut row = Row::full(40, "nine bad bodies of up to 3 MB on every processor", percent());
    let place = Workplace::new();
    let running = place.start();
    settle(&client(&place).await).await;
    let mut slowest = Vec::new();
    for bad in worst(percent()) {
        let measured = beside(&place, &bad, "", ROUNDS).await;
        row.measured(json!({bad.what: measured}));
        if !(within(&measured, "livezMs", LIVEZ)
            && within(&measured, "readMs", GOOD)
            && within(&measured, "changeMs", GOOD))
        {
            slowest.push(format!("{}: {measured}", bad.what));
        }
    }
    assert!(slowest.is_empty() || cfg!(debug_assertions), "{slowest:#?}");
    let attack = Attack::begin(&place, &worst(percent())[7], "").await;
    let asked = Instant::now();
    tokio::task::spawn_blocking(|| running.terminate()).await.unwrap();
    assert!(asked.elapsed() < GRACE, "{:?}", asked.elapsed());
    row.measured(json!({"endedMs": asked.elapsed().as_millis()}));
    drop(attack);
}

/// A command that reads a file which never says anything, and so hears nothing of a signal.
#[test]
fn row_40_a_process_that_hears_nothing_ends_within_its_grace() {
    let mut row = Row::short(40, "SIGTERM to a process that is held by a file without an end");
    let folder = tempfile::tempdir().unwrap();
    let silent = folder.path().join("kubeconfig");
    assert!(Command::new("mkfifo").arg(&silent).status().unwrap().success());
    let log = folder.path().join("log");
    let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["controllers", "--kubeconfig"])
        .arg(&silent)
        .stdin(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    // Opened once the process has opened it, too.
    let writer = OpenOptions::new().write(true).open(&silent).unwrap();
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    let ended = asked.elapsed();
    drop(writer);
    let said = fs::read_to_string(&log).unwrap();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("still busy 25 seconds after it was asked to stop"), "{said}");
    assert!(ended < GRACE + MARGIN, "{ended:?}");
    row.measured(json!({"endedMs": ended.as_millis()}));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_40_the_webhook_answers_beside_bad_reviews_and_refuses_when_held() {
    let mut row = Row::short(40, "reviews of 180 KB on every worker; then all workers held");
    let place = Place::new();
    let spin = "object.data.all(a, object.data.all(b, object.data.all(c, a + b != c + 'x')))";
    for number in 0..40 {
        place.write(&format!("policies/{number}.yaml"), &policy(&format!("p{number}"), spin));
    }
    let definition = fs::read_to_string(root().join("deploy/crds/cyndipipelines.yaml")).unwrap();
    place.write("policies/definition.yaml", &definition);
    let serving = place.start(&["--timeout", "10"]);
    let connect = async || https::Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let wrong: Vec<u8> = vec![1; 90_000];
    let bad = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "bad", "operation": "CREATE", "name": "w", "namespace": "n", "userInfo": {"username": "u"},
            "kind": {"group": "cyndi.cloud.redhat.com", "version": "v1alpha1", "kind": "CyndiPipeline"},
            "resource": {"group": "cyndi.cloud.redhat.com", "version": "v1alpha1", "resource": "cyndipipelines"},
            "object": {
                "apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
                "metadata": {"name": "w", "namespace": "n"}, "spec": {"appName": "a", "additionalFilters": wrong},
            },
        },
    });
    let (bad, good) = (Bytes::from(bad.to_string()), Bytes::from(review("good", &json!({}))));
    let workers = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let mut holding = JoinSet::new();
    for _ in 0..workers {
        let (mut client, bad) = (connect().await, bad.clone());
        holding.spawn(async move { client.post("/validate", bad).await.unwrap().json() });
    }
    let began = Instant::now();
    // Refused while the workers are held, and answered soon after.
    while connect().await.post("/validate", good.clone()).await.unwrap().code != StatusCode::OK {
        assert!(began.elapsed() < EVENTUALLY, "{:?}", began.elapsed());
    }
    let answered = began.elapsed();
    while let Some(answer) = holding.join_next().await {
        assert_eq!(answer.unwrap()["response"]["allowed"], false);
    }

    let data: serde_json::Map<String, Value> = (0..300).map(|n| (format!("k{n}"), json!("v"))).collect();
    let spinning = Bytes::from(review("spins", &Value::Object(data)));
    for _ in 0..workers {
        let (mut client, spinning) = (connect().await, spinning.clone());
        holding.spawn(async move { client.post("/validate", spinning).await.unwrap().json() });
    }
    let began = Instant::now();
    while connect().await.post("/validate", good.clone()).await.unwrap().code != StatusCode::TOO_MANY_REQUESTS
    {
        assert!(began.elapsed() < EVENTUALLY, "no worker was ever held");
    }
    row.measured(json!({"answeredMs": answered.as_millis(), "refusedMs": began.elapsed().as_millis()}));
}
