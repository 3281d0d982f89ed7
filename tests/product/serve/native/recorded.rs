//! What kube-apiserver's own engine answered to 986 requests, asked of `admit serve` as the webhook of a cluster, for which
//! the embedded API server stands: the same verdicts, in the same words. `authorizer`, params and namespaces are the
//! cluster's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use kube::Client;
use serde_json::{Map, Value, json};

use super::super::server::{Place, Serving};
use super::{Asked, post, send, unframed, without_webhook};
use crate::running::Workplace;

/// Requests whose answer is not the policies' alone, each with the reason.
const OTHER_REASONS: &[(&str, &str)] = &[
    ("4/w49/create1", "which of several params that are selected is asked first was chance"),
    ("4/w49/create5", "which of several params that are selected is asked first was chance"),
];

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn rows(path: &Path) -> Vec<Value> {
    unpacked(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_get_the_recorded_answers_through_the_webhook() {
    let Some(folder) = testing::corpus("fresh").unwrap() else { return };
    let cluster = Workplace::new();
    // Recorded without nodes, so that nobody bound the Pods, and without accounts of Pods.
    let _running = cluster.start_with(&["--no-node", "--disable-admission-plugins", "ServiceAccount"]);
    let client = cluster.client().await;
    let rows = rows(&folder.join("serve-webhook.jsonl.gz"));
    for step in self::rows(&folder.join("vap.setup.jsonl.gz")) {
        let path = step["path"].as_str().unwrap();
        if !path.contains("admissionregistration") {
            set_up(&client, path, &step["body"]).await;
        }
    }
    for (path, object) in stored(&rows) {
        post(&client, &path, &object).await;
    }
    let place = Place::new();
    place.write("policies/all.yaml", &unpacked(&folder.join("serve-webhook.policies.yaml.gz")));
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let serving = place.start(&["--policies", "policies", "--kubeconfig", &kubeconfig, "--timeout", "30"]);
    register(&client, &place, &serving).await;
    let (mut passed, mut wrong) = (0, Vec::new());
    for row in &rows {
        match play(&client, row).await {
            None => passed += 1,
            Some(difference) => wrong.push((row["id"].as_str().unwrap(), difference)),
        }
    }
    let (known, wrong): (Vec<_>, Vec<_>) =
        wrong.into_iter().partition(|(id, _)| OTHER_REASONS.iter().any(|(known, _)| id == known));
    eprintln!(
        "serve-webhook: {passed} of {} answers as recorded; {} differ for other reasons, {} are wrong",
        rows.len(),
        known.len(),
        wrong.len()
    );
    assert!(rows.len() > 900, "only {} requests were found", rows.len());
    let wrong: Vec<String> = wrong.iter().map(|(id, difference)| format!("{id}: {difference}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (_, metrics) = serving.observed("/metrics").await;
    assert!(metrics.contains("admit_panics_total 0\n"), "{metrics}");
}

/// Creates what is not there yet; custom resources as soon as their kind is served.
async fn set_up(client: &Client, path: &str, body: &Value) {
    for _ in 0..1_000 {
        let told = send(client, &Asked { method: "POST", path, headers: &[], body }).await;
        match told.status {
            404 => tokio::task::yield_now().await,
            status => {
                assert!(status < 300 || status == 409, "{path}: {:#}", told.body);
                return;
            }
        }
    }
    panic!("{path} is not served");
}

/// The objects that were there before requests about them, by what the server answered to the gentlest of these: a patch of
/// a label. Their own label `pc`, by which policies select, was off.
fn stored(rows: &[Value]) -> Vec<(String, Value)> {
    let mut found: BTreeMap<String, (u8, Value)> = BTreeMap::new();
    for row in rows {
        let (method, path) = (row["request"]["method"].as_str().unwrap(), path_of(row));
        if method == "POST" {
            continue;
        }
        let whole = path.trim_end_matches("/status").trim_end_matches("/scale");
        let of_v1 = whole.replace("/v1beta1/", "/v1/");
        let answered = row["response"]["status"].as_u64().unwrap() < 300 && !path.ends_with("/scale");
        let (weight, object) = match (answered, method) {
            (true, "PATCH") => (3, &row["response"]["body"]),
            (true, _) if path.ends_with("/status") => (2, &row["response"]["body"]),
            (true, _) => (1, &row["response"]["body"]),
            (false, "PUT") => (0, &row["request"]["body"]),
            (false, _) => continue,
        };
        if found.get(&of_v1).is_none_or(|(known, _)| *known < weight) {
            found.insert(of_v1, (weight, object.clone()));
        }
    }
    let collection = |path: String| path.rsplit_once('/').unwrap().0.to_owned();
    found.into_iter().map(|(path, (_, object))| (collection(path), plain(object))).collect()
}

/// An object as it was sent: without what a server fills in.
fn plain(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    labels.insert("pc".to_owned(), json!("off"));
    let kept: Map<String, Value> = [
        ("name".to_owned(), metadata["name"].clone()),
        ("namespace".to_owned(), metadata["namespace"].clone()),
        ("labels".to_owned(), labels.into()),
    ]
    .into_iter()
    .collect();
    *metadata = kept.into();
    if object["apiVersion"] == "vap.oracle.io/v1beta1" {
        object["apiVersion"] = json!("vap.oracle.io/v1");
    }
    if let Some(spec) = object["spec"].as_object_mut()
        && spec.get("clusterIP").is_some_and(|address| address != "None")
    {
        spec.retain(|key, _| !key.starts_with("clusterIP"));
    }
    object.as_object_mut().unwrap().retain(|key, _| key != "status");
    object
}

fn path_of(row: &Value) -> String {
    let path = row["request"]["path"].as_str().unwrap();
    path.split('?').next().unwrap().to_owned()
}

/// `/enforce` and `/audit` as the manifests register them, for the kinds that the requests are about.
async fn register(client: &Client, place: &Place, serving: &Serving) {
    use base64::Engine as _;
    let bundle = base64::engine::general_purpose::STANDARD.encode(place.authority.certificate_pem());
    let webhook = |name: &str, route: &str, failure_policy: &str| {
        json!({
            "name": name, "failurePolicy": failure_policy, "sideEffects": "None", "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"], "matchPolicy": "Equivalent",
            "clientConfig": {"url": format!("https://localhost:{}{route}", serving.webhook.port()), "caBundle": bundle},
            "rules": [{
                "apiGroups": ["", "apps", "rbac.authorization.k8s.io", "vap.oracle.io"], "apiVersions": ["*"],
                "operations": ["*"], "resources": ["*/*"]}],
        })
    };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "serve"},
        "webhooks": [webhook("enforce.admit.local", "/enforce", "Fail"), webhook("audit.admit.local", "/audit", "Ignore")],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    post(client, path, &configuration).await;
}

/// Who the users of the recordings are to a server.
fn headers(user: &str) -> &'static [(&'static str, &'static str)] {
    match user {
        "alice" => &[
            ("impersonate-user", "alice"),
            ("impersonate-group", "system:masters"),
            ("impersonate-extra-scope", "a"),
        ],
        "bob" => &[("impersonate-user", "bob"), ("impersonate-group", "devs"), ("impersonate-uid", "u-1")],
        "sa" => &[("impersonate-user", "system:serviceaccount:va:default")],
        _ => &[],
    }
}

/// What differs from what was recorded.
async fn play(client: &Client, row: &Value) -> Option<String> {
    let (request, expected) = (&row["request"], &row["response"]);
    let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    let mut body = request["body"].clone();
    if method == "PUT" {
        let whole = path_of(row);
        let found = Asked {
            method: "GET",
            path: whole.trim_end_matches("/status"),
            headers: &[],
            body: &Value::Null,
        };
        body["metadata"]["resourceVersion"] =
            send(client, &found).await.body["metadata"]["resourceVersion"].clone();
    }
    let headers = headers(request["user"].as_str().unwrap());
    let told = send(client, &Asked { method, path, headers, body: &body }).await;
    let status = expected["status"].as_u64().unwrap();
    let of_policies = |warnings: Vec<String>| {
        let mut ours: Vec<String> =
            warnings.into_iter().filter(|text| text.contains("ValidatingAdmissionPolicy")).collect();
        ours.sort();
        ours
    };
    let recorded = expected["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let wanted = of_policies(recorded.map(unframed).collect());
    let words = |status: u64, body: &Value| match status {
        0..300 => Value::Null,
        _ => json!([body["reason"], without_webhook(body["message"].as_str().unwrap_or_default())]),
    };
    let expected = (status, words(status, &expected["body"]), wanted);
    let got = (u64::from(told.status), words(u64::from(told.status), &told.body), of_policies(told.warnings));
    (expected != got).then(|| format!("\n  expected {expected:?}\n  told     {got:?}"))
}
