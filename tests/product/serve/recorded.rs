//! Every recorded AdmissionReview, posted over TLS to a running server with the policies of its scenario in force, gets the
//! recorded decision, code, message, warnings and audit annotations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admit::admission::tls::{Authority, server_config};
use admit::admission::{self, Admission, InForce, Port, Shutdown, Workers};
use admit::telemetry::{Metrics, Readiness, Traces};
use admit_policy::{PolicySet, manifest};
use rustls::version::TLS13;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::support::https::{Client, tls};

/// The group that may do everything in every scenario; access rules are part of a scenario.
const BASE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: everything}
rules:
- {verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*']}
- {verbs: ['*'], apiGroups: ['*'], resources: ['*/*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: testers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: everything}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: testers}
";

#[tokio::test(flavor = "multi_thread")]
async fn recorded_reviews_get_the_recorded_answers() {
    let Some(folder) = testing::corpus("vap-matrix").unwrap() else { return };
    let mut scenarios: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let (mut lines, mut without_review) = (0, BTreeMap::new());
    for line in fs::read_to_string(folder.join("cases.jsonl")).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        lines += 1;
        if case["admissionReview"].is_object() {
            scenarios.entry(case["scenarioFile"].as_str().unwrap().to_owned()).or_default().push(case);
        } else {
            // Creations of policies, and requests that never came to admission.
            *without_review.entry(case["recorded"]["verdict"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
    }
    let strange: Vec<_> = without_review
        .keys()
        .filter(|verdict| !["not-reached", "accepted", "refused"].contains(&verdict.as_str()))
        .collect();
    assert!(strange.is_empty(), "without a review, and yet decided: {strange:?}");
    let (in_force, mut client) = serving().await;
    let (mut passed, mut undecidable, mut wrong) = (0, 0, Vec::new());
    for (file, cases) in &scenarios {
        let set = load(&folder, file);
        // Which of several bindings that fail is told was chance.
        let several = set.policies().any(|(_, bindings)| bindings.len() > 1);
        in_force.send_replace(Arc::new(InForce::new(Arc::new(set), file.clone())));
        for case in cases {
            let answered = client.post("/validate", case["admissionReview"].to_string()).await.unwrap();
            match differences(case, &answered.json(), several) {
                // What was sent is written otherwise than what the webhook got: the review alone does not decide.
                _ if case.get("sentAs").is_some() => {
                    let review = &case["admissionReview"]["request"];
                    assert_eq!(answered.json()["response"]["uid"], review["uid"], "{}", case["id"]);
                    undecidable += 1;
                }
                None => passed += 1,
                Some(difference) => wrong.push(format!("{}: {difference}", case["id"])),
            }
        }
    }
    eprintln!(
        "vap-matrix over TLS, of {lines} cases: {passed} answers as recorded, {} others; {undecidable} that the review does \
         not decide; without a review: {without_review:?}",
        wrong.len()
    );
    assert_eq!(passed + wrong.len() + undecidable + without_review.values().sum::<usize>(), lines);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), passed + wrong.len(), wrong.join("\n"));
    assert!(passed > 800, "only {passed} cases were found");
}

async fn serving() -> (watch::Sender<Arc<InForce>>, Client) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::open(folder.path(), OffsetDateTime::now_utc()).unwrap();
    let leaf = authority.issue_server(&["localhost".to_owned()], OffsetDateTime::now_utc()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (in_force, policies) = watch::channel(Arc::default());
    let metrics = Arc::new(Metrics::default());
    let admission = Admission {
        policies,
        cluster: None,
        workers: Workers::start().unwrap(),
        metrics: Arc::clone(&metrics),
        beta: false,
        traces: Traces::default(),
        readiness: Readiness::default(),
        converters: admit::cli::converters(),
        // Some cases spend the whole budget of CEL, which takes an unoptimised build on a busy machine long.
        timeout: Duration::from_secs(300),
    };
    let config = watch::channel(Arc::new(server_config(&leaf, None).unwrap())).1;
    let port = Port { listener, tls: Some(config), router: admission.router(), metrics };
    let shutdown = Shutdown { asked: CancellationToken::new(), linger: Duration::ZERO };
    tokio::spawn(admission::serve(port, shutdown));
    let client = Client::connect(address, &tls(authority.certificate_pem(), None, &[&TLS13])).await.unwrap();
    (in_force, client)
}

fn load(folder: &Path, scenario: &str) -> PolicySet {
    let mut documents = manifest::read("base", BASE).unwrap();
    for file in ["crds.yaml", scenario] {
        let text = quote_letters(&fs::read_to_string(folder.join(file)).unwrap());
        documents.extend(manifest::read(file, &text).unwrap());
    }
    let mut builder = PolicySet::builder();
    for document in documents {
        builder.add(&document.value).unwrap();
    }
    builder.finish()
}

/// The writer of the recordings left the letters `y` and `n` unquoted and meant text.
fn quote_letters(text: &str) -> String {
    let quote = |line: &str| match line.rsplit_once(' ') {
        Some((front, letter @ ("y" | "Y" | "n" | "N"))) if front.ends_with([':', '-']) => {
            format!("{front} '{letter}'\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(quote).collect()
}

/// What the answer should have been, and was, where they differ.
fn differences(case: &Value, answer: &Value, several: bool) -> Option<String> {
    let recorded = without_generated_name(case);
    let denied = recorded["verdict"] == "denied";
    let response = &answer["response"];
    let status = if denied { recorded["status"].clone() } else { Value::Null };
    // Of several policies that deny, which one is told was chance.
    let any = case["firstOfSeveralUnordered"] == true;
    let parts = |status: &Value| {
        let told = ["code", "reason", "message"].map(|key| status[key].clone());
        let details = ["name", "group", "kind", "causes"].map(|key| status["details"][key].clone());
        if any { json!(null) } else { json!([told, details]) }
    };
    let expected = json!({
        "uid": case["admissionReview"]["request"]["uid"], "allowed": !denied, "status": parts(&status),
        "warnings": sorted(warnings(&recorded)), "annotations": annotations(&recorded),
    });
    let told = json!({
        "uid": response["uid"], "allowed": response["allowed"], "status": parts(&response["status"]),
        "warnings": sorted(texts(&response["warnings"])),
        "annotations": by_key(response["auditAnnotations"].as_object().cloned().unwrap_or_default()),
    });
    let same = if several { without_binding(&expected) == without_binding(&told) } else { expected == told };
    (!same).then(|| format!("\n  expected {expected}\n  told     {told}"))
}

fn without_binding(answer: &Value) -> String {
    let binding = regex_automata::meta::Regex::new("with binding '[^']*'").unwrap();
    let (text, mut masked, mut at) = (answer["status"].to_string(), String::new(), 0);
    for found in binding.find_iter(&text) {
        masked.push_str(&text[at..found.start()]);
        at = found.end();
    }
    let rest = ["uid", "allowed", "warnings", "annotations"].map(|key| answer[key].to_string());
    format!("{masked}{} {rest:?}", &text[at..])
}

/// A generated name differs between the recorded review and the recorded answer: the review's is put in its place.
fn without_generated_name(case: &Value) -> Value {
    let (review, recorded) = (&case["admissionReview"]["request"], &case["recorded"]);
    let generated = review.pointer("/object/metadata/generateName").is_some();
    match (recorded.pointer("/status/details/name"), &review["name"]) {
        (Some(Value::String(answered)), Value::String(asked)) if generated => {
            serde_json::from_str(&recorded.to_string().replace(answered, asked)).unwrap()
        }
        _ => recorded.clone(),
    }
}

/// The texts of the policies' `299` headers.
fn warnings(recorded: &Value) -> Vec<String> {
    let unframed = |header: String| {
        let text = header.strip_prefix("299 - \"")?.strip_suffix('"')?;
        Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    let ours = |text: &String| text.contains("ValidatingAdmissionPolicy");
    texts(&recorded["warnings"]).into_iter().filter_map(unframed).filter(ours).collect()
}

/// Under the keys that an API server takes from a webhook.
fn annotations(recorded: &Value) -> Value {
    let all = recorded["auditAnnotations"].as_object().cloned().unwrap_or_default();
    let ours = |key: &String| !key.contains(".k8s.io/") || key.starts_with("validation.policy.");
    let ours = all.into_iter().filter(|(key, _)| ours(key));
    by_key(ours.map(|(key, value)| (key.replace('/', "."), value)).collect())
}

fn by_key(mut map: Map<String, Value>) -> Value {
    map.sort_keys();
    map.into()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}
