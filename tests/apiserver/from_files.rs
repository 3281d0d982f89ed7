//! Policies and bindings that are in force from files, shown as objects: who may write them, what becomes of them, and
//! who decides by them.

use std::time::Duration;

use admit_apiserver::store::{RedbBackend, Store};
use admit_apiserver::{FromFile, Server};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{Answer, delete, get, merge, post};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MARK: &str = "admit.dev/from-file";
const REMEDY: &str = "it is in force from the file rules/p.yaml and read-only here; change it in the file, or remove it \
                      from there";

/// A policy against the name `bad-NAME`.
fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": {"team": "blue"}, "annotations": {"why": "because"}},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]
            }]},
            "validations": [{"expression": format!("object.metadata.name != 'bad-{name}'")}],
        },
    })
}

fn binding(name: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": ["Deny"]},
    })
}

fn from(file: &str, object: Value) -> FromFile {
    FromFile { file: file.to_owned(), object }
}

async fn showing(objects: &[Value]) -> Server {
    let server = Server::builder().build().await.unwrap();
    server.show_from_files(objects.iter().map(|object| from("rules/p.yaml", object.clone())).collect()).await;
    server
}

async fn made(server: &Server, name: &str) -> Answer {
    post(server, MAPS, &json!({"metadata": {"name": name}})).await
}

#[tokio::test]
async fn they_are_marked_with_their_file_and_have_defaults() {
    let mut held = policy("p");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let server = showing(&[held, binding("b", "p")]).await;
    let shown = get(&server, &format!("{POLICIES}/p")).await.body;
    assert_eq!(shown["metadata"]["annotations"], json!({MARK: "rules/p.yaml", "why": "because"}));
    assert_eq!(shown["metadata"]["labels"], json!({MARK: "true", "team": "blue"}));
    assert_eq!(shown["metadata"]["finalizers"], Value::Null, "nothing holds up its removal");
    assert_eq!(shown["spec"]["failurePolicy"], "Fail");
    assert_eq!(shown["metadata"]["managedFields"][0]["manager"], "admit");
    let listed = get(&server, &format!("{BINDINGS}?labelSelector={MARK}")).await.body;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["spec"]["policyName"], "p");
}

#[tokio::test]
async fn who_writes_them_is_told_the_file() {
    let server = showing(&[policy("p"), binding("b", "p")]).await;
    let path = format!("{POLICIES}/p");
    let before = get(&server, &path).await.body;
    let resource = "validatingadmissionpolicies.admissionregistration.k8s.io";
    let forbidden = format!("{resource} \"p\" is forbidden: {REMEDY}");
    let change = json!({"metadata": {"labels": {"team": "red"}}});
    let taken_off = json!({"metadata": {"annotations": {MARK: null}, "labels": {MARK: null}}});
    let status = json!({"status": {"observedGeneration": 7}});
    for answer in [
        merge(&server, &path, &change).await,
        merge(&server, &path, &taken_off).await,
        merge(&server, &format!("{path}?dryRun=All"), &change).await,
        merge(&server, &format!("{path}/status"), &status).await,
        delete(&server, &path, None).await,
        delete(&server, &format!("{POLICIES}?labelSelector=team=blue"), None).await,
    ] {
        assert_eq!((answer.status, answer.message()), (403, forbidden.as_str()));
    }
    // A client that creates what is not there yet goes on as it does for any other object.
    let taken = post(&server, POLICIES, &policy("p")).await;
    let exists = format!("{resource} \"p\" already exists: {REMEDY}");
    assert_eq!((taken.status, taken.message()), (409, exists.as_str()));
    assert_eq!(get(&server, &path).await.body, before);
    assert_eq!(delete(&server, &format!("{BINDINGS}/b"), None).await.status, 403);
}

/// What `kubectl get -o yaml` gives is not to look as if it were of a file when it is applied under another name.
#[tokio::test]
async fn nobody_else_sets_the_mark() {
    let server = showing(&[]).await;
    for map in ["annotations", "labels"] {
        let mut marked = policy("q");
        marked["metadata"][map][MARK] = "x.yaml".into();
        let answer = post(&server, POLICIES, &marked).await;
        let why = format!(
            "metadata.{map}[{MARK}]: Forbidden: is set by the server on what is in force from files; leave it out"
        );
        assert_eq!(answer.status, 422, "{answer:?}");
        assert!(answer.message().ends_with(&why), "{answer:?}");
        assert_eq!(post(&server, POLICIES, &policy(map)).await.status, 201);
        let change = json!({"metadata": {map: {MARK: "x.yaml"}}});
        assert_eq!(merge(&server, &format!("{POLICIES}/{map}"), &change).await.status, 422);
    }
}

#[tokio::test]
async fn they_follow_their_files() {
    let server = showing(&[policy("p"), policy("q")]).await;
    let at = format!("{POLICIES}/p");
    let first = get(&server, &at).await.body;
    // Nothing changed: nobody who watches is told anything.
    server.show_from_files(vec![from("rules/p.yaml", policy("p")), from("rules/p.yaml", policy("q"))]).await;
    assert_eq!(get(&server, &at).await.body, first);

    let mut changed = policy("p");
    changed["spec"]["failurePolicy"] = "Ignore".into();
    server.show_from_files(vec![from("rules/other.yaml", changed)]).await;
    let second = get(&server, &at).await.body;
    assert_eq!(second["spec"]["failurePolicy"], "Ignore");
    assert_eq!(second["metadata"]["generation"], 2);
    assert_eq!(second["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(second["metadata"]["annotations"][MARK], "rules/other.yaml");
    assert_eq!(get(&server, &format!("{POLICIES}/q")).await.status, 404);

    server.show_from_files(Vec::new()).await;
    assert_eq!(get(&server, &at).await.status, 404);
    assert_eq!(post(&server, POLICIES, &policy("p")).await.status, 201, "the name is free");
}

/// The store outlives the process, and the file may be gone when the next one starts.
#[tokio::test]
async fn what_went_between_two_starts_goes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.redb");
    let open = async || {
        let backend = timeout(PATIENCE, async {
            loop {
                // The file is free once the writer of the first server has ended.
                match RedbBackend::open(&file) {
                    Ok(backend) => return backend,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
        let store = Store::open(Box::new(backend.await.unwrap())).unwrap();
        Server::builder().store(store).build().await.unwrap()
    };
    let server = open().await;
    server.show_from_files(vec![from("a.yaml", policy("p")), from("a.yaml", policy("q"))]).await;
    assert_eq!(post(&server, POLICIES, &policy("client")).await.status, 201);
    let before = get(&server, &format!("{POLICIES}/p")).await.body;
    drop(server);

    let server = open().await;
    // Until it is told what is in force, it lets nobody write what was.
    assert_eq!(delete(&server, &format!("{POLICIES}/q"), None).await.status, 403);
    server.show_from_files(vec![from("a.yaml", policy("p"))]).await;
    assert_eq!(get(&server, &format!("{POLICIES}/p")).await.body, before);
    assert_eq!(get(&server, &format!("{POLICIES}/q")).await.status, 404);
    assert_eq!(get(&server, &format!("{POLICIES}/client")).await.status, 200);
}

#[tokio::test]
async fn only_pairs_with_an_object_of_a_client_are_decided_here() {
    let server =
        showing(&[policy("p"), policy("q"), binding("p", "p"), binding("of-file", "of-client")]).await;
    assert_eq!(made(&server, "bad-p").await.status, 201, "whoever shows them decides");
    // A client binds a policy of a file, as it would in a cluster.
    assert_eq!(post(&server, BINDINGS, &binding("q", "q")).await.status, 201);
    assert_eq!(made(&server, "bad-q").await.status, 422);
    // A binding of a file, for a policy that a client makes.
    assert_eq!(post(&server, POLICIES, &policy("of-client")).await.status, 201);
    assert_eq!(made(&server, "bad-of-client").await.status, 422);
    // Its file gone, nobody decides by it.
    server.show_from_files(vec![from("rules/p.yaml", policy("q"))]).await;
    assert_eq!(made(&server, "bad-of-client").await.status, 201);
    assert_eq!(made(&server, "bad-q").await.status, 422);
}

#[tokio::test]
async fn an_object_of_a_client_keeps_its_name_until_it_goes() {
    let server = Server::builder().build().await.unwrap();
    for (path, object) in [(POLICIES, policy("p")), (BINDINGS, binding("p", "p"))] {
        assert_eq!(post(&server, path, &object).await.status, 201);
    }
    let before = get(&server, &format!("{POLICIES}/p")).await.body;
    let mut other = policy("p");
    other["spec"]["failurePolicy"] = "Ignore".into();
    server.show_from_files(vec![from("p.yaml", other), from("p.yaml", binding("p", "p"))]).await;
    assert_eq!(get(&server, &format!("{POLICIES}/p")).await.body, before);
    assert_eq!(made(&server, "bad-p").await.status, 422, "it is enforced as it says");
    let change = json!({"metadata": {"labels": {"team": "red"}}});
    assert_eq!(merge(&server, &format!("{POLICIES}/p"), &change).await.status, 200, "and is the client's");

    // Deleted, it gives way to that of the file.
    for path in [POLICIES, BINDINGS] {
        assert_eq!(delete(&server, &format!("{path}/p"), None).await.status, 200);
        let shown = get(&server, &format!("{path}/p")).await.body;
        assert_eq!(shown["metadata"]["annotations"][MARK], "p.yaml");
    }
    assert_eq!(get(&server, &format!("{POLICIES}/p")).await.body["spec"]["failurePolicy"], "Ignore");
    assert_eq!(made(&server, "bad-p").await.status, 201);
}

/// What a server does not take is in force all the same, and holds up nothing else.
#[tokio::test]
async fn what_cannot_be_shown_holds_up_nothing() {
    let mut unusual = policy("p");
    unusual["metadata"]["labels"] = json!({"team": "not a label"});
    let server = showing(&[unusual, policy("q")]).await;
    assert_eq!(get(&server, &format!("{POLICIES}/p")).await.status, 404);
    assert_eq!(get(&server, &format!("{POLICIES}/q")).await.status, 200);
}
