//! Definitions over their life: names that are taken and become free, warnings about what is new, versions that lose what
//! they do not know.

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(plural: &str, kind: &str, versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
            "versions": versions,
        },
    })
}

fn version(name: &str, storage: bool, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

async fn condition(server: &Server, name: &str, kind: &str) -> String {
    let stored = harness::get(server, &format!("{DEFINITIONS}/{name}")).await.body;
    let conditions = stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind).expect("a condition");
    format!("{} {}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
}

#[tokio::test]
async fn a_name_is_accepted_once_it_is_free() {
    let server = Server::builder().build().await.unwrap();
    let versions = json!([version("v1", true, &json!({}))]);
    harness::post(&server, DEFINITIONS, &definition("cats", "Cat", &versions)).await;
    harness::post(&server, DEFINITIONS, &definition("tomcats", "Cat", &versions)).await;
    assert_eq!(condition(&server, "tomcats.example.com", "NamesAccepted").await, "False ListKindConflict");
    assert_eq!(condition(&server, "tomcats.example.com", "Established").await, "False NotAccepted");
    assert_eq!(harness::get(&server, "/apis/example.com/v1/tomcats").await.status, 404);
    let answer = harness::delete(&server, &format!("{DEFINITIONS}/cats.example.com"), None).await;
    assert_eq!(answer.status, 200);
    assert_eq!(condition(&server, "tomcats.example.com", "NamesAccepted").await, "True NoConflicts");
    assert_eq!(harness::get(&server, "/apis/example.com/v1/tomcats").await.status, 200);
}

#[tokio::test]
async fn a_definition_of_which_no_version_is_served_goes_with_its_objects() {
    let server = Server::builder().build().await.unwrap();
    let path = format!("{DEFINITIONS}/cats.example.com");
    let served = json!([version("v1", false, &json!({})), version("v2", true, &json!({}))]);
    let cats = definition("cats", "Cat", &served);
    harness::post(&server, DEFINITIONS, &cats).await;
    let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "a"}});
    assert_eq!(harness::post(&server, "/apis/example.com/v1/cats", &cat).await.status, 201);
    let mut withdrawn = served.clone();
    withdrawn.as_array_mut().unwrap().iter_mut().for_each(|version| version["served"] = json!(false));
    let answer = harness::merge(&server, &path, &json!({"spec": {"versions": withdrawn}})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(harness::get(&server, "/apis/example.com/v1/cats/a").await.status, 404);
    assert_eq!(harness::delete(&server, &path, None).await.status, 200);
    assert_eq!(harness::get(&server, &path).await.status, 404);
    // Who defines the kind again finds nothing of before.
    harness::post(&server, DEFINITIONS, &cats).await;
    assert_eq!(harness::get(&server, "/apis/example.com/v2/cats").await.body["items"], json!([]));
    assert_eq!(harness::delete(&server, &path, None).await.status, 200);
    // One that never was served.
    harness::post(&server, DEFINITIONS, &definition("cats", "Cat", &withdrawn)).await;
    assert_eq!(condition(&server, "cats.example.com", "Established").await, "True InitialNamesAccepted");
    assert_eq!(harness::delete(&server, &path, None).await.status, 200);
    assert_eq!(harness::get(&server, &path).await.status, 404);
}

#[tokio::test]
async fn a_definition_that_was_never_established_goes_alone() {
    let server = Server::builder().build().await.unwrap();
    let versions = json!([version("v1", true, &json!({}))]);
    harness::post(&server, DEFINITIONS, &definition("cats", "Cat", &versions)).await;
    let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "a"}});
    harness::post(&server, "/apis/example.com/v1/cats", &cat).await;
    harness::post(&server, DEFINITIONS, &definition("tomcats", "Cat", &versions)).await;
    assert_eq!(condition(&server, "tomcats.example.com", "Established").await, "False NotAccepted");
    let path = format!("{DEFINITIONS}/tomcats.example.com");
    assert_eq!(harness::delete(&server, &path, None).await.status, 200);
    assert_eq!(harness::get(&server, &path).await.status, 404);
    assert_eq!(harness::get(&server, "/apis/example.com/v1/cats/a").await.status, 200);
}

#[tokio::test]
async fn certificates_that_cannot_be_read_keep_a_definition_from_being_served() {
    let server = Server::builder().build().await.unwrap();
    let mut cats = definition("cats", "Cat", &json!([version("v1", true, &json!({}))]));
    let client = json!({"url": "https://a/", "caBundle": "Cg=="});
    cats["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}});
    assert_eq!(harness::post(&server, DEFINITIONS, &cats).await.status, 201);
    assert_eq!(condition(&server, "cats.example.com", "Established").await, "False InvalidCABundle");
    let url_alone = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}});
    harness::merge(&server, &format!("{DEFINITIONS}/cats.example.com"), &url_alone).await;
    assert_eq!(condition(&server, "cats.example.com", "Established").await, "True InitialNamesAccepted");
}

#[tokio::test]
async fn formats_are_warned_of_when_they_are_new() {
    let server = Server::builder().build().await.unwrap();
    let formats = |formats: &[&str]| {
        let property = |format: &&str| ((*format).to_owned(), json!({"type": "string", "format": format}));
        json!({"spec": {"versions": [version("v1", true, &formats.iter().map(property).collect())]}})
    };
    let mut first = definition("cats", "Cat", &json!([]));
    first["spec"]["versions"] = formats(&["fur"])["spec"]["versions"].clone();
    let answer = harness::post(&server, DEFINITIONS, &first).await;
    assert_eq!(answer.warnings, [r#"299 - "unrecognized format \"fur\"""#]);
    let path = format!("{DEFINITIONS}/cats.example.com");
    let answer = harness::merge(&server, &path, &formats(&["fur", "claw"])).await;
    assert_eq!(answer.warnings, [r#"299 - "unrecognized format \"claw\"""#]);
}

#[tokio::test]
async fn finalizers_are_warned_of_when_they_are_new() {
    let server = Server::builder().build().await.unwrap();
    let versions = json!([version("v1", true, &json!({}))]);
    harness::post(&server, DEFINITIONS, &definition("cats", "Cat", &versions)).await;
    let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "a", "finalizers": ["purr"]}});
    let answer = harness::post(&server, "/apis/example.com/v1/cats", &cat).await;
    let advice = "to avoid accidental conflicts with other finalizer writers";
    let warning = |name: &str, path: &str| {
        format!(
            r#"299 - "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name {path}{advice}""#
        )
    };
    assert_eq!(answer.warnings, [warning("purr", "")]);
    let more = json!({"metadata": {"finalizers": ["purr", "fur.example.com", "a.b/c"]}});
    let answer = harness::merge(&server, "/apis/example.com/v1/cats/a", &more).await;
    assert_eq!(answer.warnings, [warning("fur.example.com", "including a path (/) ")]);
}

#[tokio::test]
async fn a_version_loses_what_the_stored_one_does_not_know() {
    let server = Server::builder().build().await.unwrap();
    let text = json!({"type": "string"});
    let stored = json!({"name": text, "legs": {"type": "integer", "default": 4}});
    let versions =
        json!([version("v1", false, &json!({"name": text, "tail": text})), version("v2", true, &stored)]);
    harness::post(&server, DEFINITIONS, &definition("cats", "Cat", &versions)).await;
    let cat = json!({
        "apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "a"},
        "spec": {"name": "x", "tail": "long"},
    });
    let answer = harness::post(&server, "/apis/example.com/v1/cats", &cat).await;
    assert_eq!(answer.body["spec"], json!({"name": "x"}));
    let answer = harness::get(&server, "/apis/example.com/v2/cats/a").await;
    assert_eq!(answer.body["spec"], json!({"legs": 4, "name": "x"}));
}

#[tokio::test]
async fn a_version_that_upstream_knows_and_one_that_it_does_not() {
    let server = Server::builder().build().await.unwrap();
    let mut cats = definition("cats", "Cat", &json!([version("v1", true, &json!({}))]));
    for (sent, text) in [
        (
            "apiextensions.k8s.io/v1beta1",
            "the API version in the data (apiextensions.k8s.io/v1beta1) does not match the expected API version \
             (apiextensions.k8s.io/v1)",
        ),
        ("apiextensions.k8s.io/v9", "no kind \"CustomResourceDefinition\" is registered for version"),
    ] {
        cats["apiVersion"] = json!(sent);
        let answer = harness::post(&server, DEFINITIONS, &cats).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body["message"].as_str().unwrap().contains(text), "{answer:?}");
    }
}

#[tokio::test]
async fn names_are_not_made_of_nothing() {
    let server = Server::builder().build().await.unwrap();
    let cats = definition("cats", "", &json!([version("v1", true, &json!({}))]));
    let answer = harness::post(&server, DEFINITIONS, &cats).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(
        answer.body["message"].as_str().unwrap().contains("spec.names.listKind: Required value"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn what_became_an_embedded_resource_loses_malformed_metadata_when_it_is_read() {
    let server = Server::builder().build().await.unwrap();
    let versions = |embedded: bool| {
        let part = json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": embedded,
        });
        let mut version = version("v1", true, &json!({"part": part}));
        version["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        version["subresources"] = json!({"status": {}});
        json!([version])
    };
    harness::post(&server, DEFINITIONS, &definition("cats", "Cat", &versions(false))).await;
    let cats = "/apis/example.com/v1/cats";
    let part = json!({
        "apiVersion": 5, "kind": "Pod",
        "metadata": {"name": "a", "labels": {"a": 1, "b": "x"}, "unknown": 3, "annotations": {}},
    });
    let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "a"}, "spec": {"part": part}});
    assert_eq!(harness::post(&server, cats, &cat).await.status, 201);
    let path = format!("{DEFINITIONS}/cats.example.com");
    let answer = harness::merge(&server, &path, &json!({"spec": {"versions": versions(true)}})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    // As kube-apiserver 1.36.2 shows it.
    let shown = json!({"kind": "Pod", "metadata": {"name": "a"}});
    let mut read = harness::get(&server, &format!("{cats}/a")).await.body;
    assert_eq!(read["spec"]["part"], shown);
    assert_eq!(harness::get(&server, cats).await.body["items"][0]["spec"]["part"], shown);
    read["status"] = json!({"mood": "good"});
    let answer = harness::put(&server, &format!("{cats}/a/status"), &read).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = harness::put(&server, &format!("{cats}/a"), &answer.body).await;
    assert_eq!(
        (answer.status, answer.body["details"]["causes"][0]["field"].as_str()),
        (422, Some("spec.part.apiVersion"))
    );
}
