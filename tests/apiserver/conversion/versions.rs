//! Objects that are stored in one version and wanted in another, by way of everything that can be done with them.

use admit_apiserver::Server;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::hook::{cattery, definition};
use super::{DEFINITIONS, apply, cats, put};
use crate::harness::{delete, get, merge, post, send};

fn tom(version: &str) -> Value {
    let spec = match version {
        "v1" => json!({"fullName": "Tom Cat"}),
        _ => json!({"first": "Tom", "last": "Cat"}),
    };
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Cat", "metadata": {"name": "tom"}, "spec": spec})
}

/// What the store holds, by name.
fn stored(server: &Server) -> Vec<Value> {
    let range = admit_apiserver::store::Range::default();
    let page = server.store().list("example.com/cats", range, 0, &mut |_| true).unwrap();
    page.items.iter().map(|kept| (*kept.object.values()).clone()).collect()
}

#[tokio::test]
async fn every_verb_speaks_the_version_of_its_path_and_one_is_stored() {
    let (server, hook, _) = cattery().await;
    let (v1, v2) = (cats("v1"), cats("v2"));
    let made = post(&server, &v2, &tom("v2")).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["spec"]["first"], "Tom");
    assert_eq!(made.body["apiVersion"], "example.com/v2");
    let names = vec!["tom".to_owned()];
    assert_eq!(hook.asked(), [("v1".to_owned(), names.clone()), ("v2".to_owned(), names.clone())]);
    assert_eq!(stored(&server)[0]["spec"]["fullName"], "Tom Cat");

    // Defaults are those of the version that was written in, and of the one that is stored.
    let seen = get(&server, &format!("{v2}/tom")).await.body;
    assert_eq!(seen["spec"], json!({"first": "Tom", "last": "Cat"}));
    let kept = get(&server, &format!("{v1}/tom")).await.body;
    assert_eq!(kept["spec"], json!({"fullName": "Tom Cat", "ofv1": "v1"}));
    for field in ["uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"] {
        assert_eq!(seen["metadata"][field], kept["metadata"][field], "{field}");
    }

    let patched = merge(&server, &format!("{v2}/tom"), &json!({"spec": {"last": "Cool"}})).await;
    assert_eq!((patched.status, &patched.body["spec"]["last"]), (200, &json!("Cool")), "{patched:?}");
    let mut sent = patched.body;
    sent["spec"]["first"] = "Thomas".into();
    let replaced = put(&server, &format!("{v2}/tom"), &sent).await;
    assert_eq!((replaced.status, &replaced.body["spec"]["first"]), (200, &json!("Thomas")), "{replaced:?}");
    let status = json!({"status": {"mood": "calm", "legs": 4}});
    let status = merge(&server, &format!("{v2}/tom/status"), &status).await;
    assert_eq!((status.status, &status.body["status"]["mood"]), (200, &json!("calm")), "{status:?}");
    let scaled = merge(&server, &format!("{v2}/tom/scale"), &json!({"spec": {"replicas": 3}})).await;
    assert_eq!((scaled.status, &scaled.body["spec"]["replicas"]), (200, &json!(3)), "{scaled:?}");
    assert_eq!(get(&server, &format!("{v2}/tom/scale")).await.body["status"]["replicas"], 4);
    let kept = &stored(&server)[0];
    assert_eq!(kept["apiVersion"], "example.com/v1");
    assert_eq!(kept["spec"]["fullName"], "Thomas Cool");
    assert_eq!((&kept["spec"]["legs"], &kept["status"]["mood"]), (&json!(3), &json!("calm")));

    let mut felix = tom("v2");
    felix["metadata"]["name"] = "felix".into();
    assert_eq!(post(&server, &format!("{v2}?dryRun=All"), &felix).await.status, 201);
    assert_eq!(stored(&server).len(), 1);
    assert_eq!(delete(&server, &format!("{v2}/tom"), None).await.status, 200);
    assert!(stored(&server).is_empty());
}

#[tokio::test]
async fn a_page_is_one_question_and_what_is_selected_is_what_was_converted() {
    let (server, hook, _) = cattery().await;
    let (v1, v2) = (cats("v1"), cats("v2"));
    for number in 0..7 {
        let mut cat = tom("v1");
        cat["metadata"] =
            json!({"name": format!("c{number}"), "labels": {"odd": (number % 2 == 1).to_string()}});
        cat["spec"]["fullName"] = format!("C{} Cat", number % 3).into();
        assert_eq!(post(&server, &v1, &cat).await.status, 201);
    }
    assert!(hook.asked().is_empty(), "nothing was to be converted");
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = get(&server, &v2).await.body;
    assert_eq!(names(&all), ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
    assert!(all["items"].as_array().unwrap().iter().all(|item| item["spec"]["last"] == "Cat"));
    assert_eq!(hook.asked(), [("v2".to_owned(), names(&all))]);

    let mut path = format!("{v2}?limit=3");
    let mut pages = Vec::new();
    loop {
        let page = get(&server, &path).await.body;
        pages.push(names(&page));
        let token = page["metadata"]["continue"].as_str().unwrap_or_default();
        if token.is_empty() {
            break;
        }
        assert_eq!(page["metadata"]["remainingItemCount"], 7 - 3 * pages.len());
        path = format!("{v2}?limit=3&continue={token}");
    }
    assert_eq!(pages.concat(), names(&all));
    let asked: Vec<_> = hook.asked().into_iter().map(|(_, names)| names).collect();
    assert_eq!(asked, pages, "one question for each page");

    let odd = get(&server, &format!("{v2}?labelSelector=odd%3Dtrue&limit=2")).await.body;
    assert_eq!(names(&odd), ["c1", "c3"]);
    let token = odd["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("{v2}?labelSelector=odd%3Dtrue&limit=2&continue={token}")).await.body;
    assert_eq!(names(&rest), ["c5"]);
    // A field that only the version that is asked for has.
    let first = get(&server, &format!("{v2}?fieldSelector=spec.first%3DC1")).await.body;
    assert_eq!(names(&first), ["c1", "c4"]);
    assert_eq!(delete(&server, &format!("{v2}?fieldSelector=spec.first%3DC1"), None).await.status, 200);
    assert_eq!(stored(&server).len(), 5);
}

#[tokio::test]
async fn watches_tell_of_objects_in_their_version() {
    let (server, hook, _) = cattery().await;
    let (v1, v2) = (cats("v1"), cats("v2"));
    for name in ["a", "b"] {
        let mut cat = tom("v1");
        cat["metadata"]["name"] = name.into();
        assert_eq!(post(&server, &v1, &cat).await.status, 201);
    }
    hook.asked();
    let path = format!("{v2}?watch=1&fieldSelector=spec.first%3DTom");
    let mut body = send(&server, "GET", &path, "", None).await.into_body();
    let mut seen = Vec::new();
    let mut text = Vec::new();
    // Each event is told by itself or with others.
    let mut step = 0;
    while seen.len() < 5 {
        let frame = body.frame().await.unwrap().unwrap();
        text.extend_from_slice(&frame.into_data().unwrap());
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(event["object"]["apiVersion"], "example.com/v2", "{event}");
            seen.push((event["type"].clone(), event["object"]["metadata"]["name"].clone()));
        }
        if seen.len() == 2 && step == 0 {
            step = 1;
            assert_eq!(
                merge(&server, &format!("{v1}/a"), &json!({"spec": {"fullName": "Tom Tit"}})).await.status,
                200
            );
            assert_eq!(
                merge(&server, &format!("{v1}/a"), &json!({"spec": {"fullName": "Tim Tit"}})).await.status,
                200
            );
            assert_eq!(delete(&server, &format!("{v1}/b"), None).await.status, 200);
        }
    }
    let expected = [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a"), ("DELETED", "b")];
    assert_eq!(seen, expected.map(|(kind, name)| (json!(kind), json!(name))));
    assert_eq!(hook.asked()[0], ("v2".to_owned(), vec!["a".to_owned(), "b".to_owned()]), "one question");

    // One that cannot be shown any more ends the watch.
    hook.twists(|_| axum::http::Response::builder().status(500).body("gone".into()).unwrap());
    assert_eq!(
        merge(&server, &format!("{v1}/a"), &json!({"spec": {"fullName": "Tom Cat"}})).await.status,
        200
    );
    let last = body.collect().await.unwrap().to_bytes();
    let last: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(500)), "{last}");
    let why = last["object"]["message"].as_str().unwrap();
    assert!(
        why.starts_with("conversion webhook for example.com/v1, Kind=Cat failed: an error on the server"),
        "{why}"
    );
}

#[tokio::test]
async fn managers_own_fields_in_the_version_that_they_wrote_in() {
    let (server, _hook, _) = cattery().await;
    let (v1, v2) = (cats("v1"), cats("v2"));
    let one = apply(&server, &format!("{v1}/tom"), &tom("v1")).await;
    assert_eq!(one.status, 201, "{one:?}");
    // Another manager that says the same, in the other version, shares; a third that says something else is told of both.
    let path = format!("{v2}/tom?fieldManager=other");
    let shared = crate::harness::answer(
        send(&server, "PATCH", &path, "application/apply-patch+yaml", Some(&tom("v2"))).await,
    );
    let shared = shared.await;
    assert_eq!(shared.status, 200, "{shared:?}");
    let managers: Vec<_> = shared.body["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["manager"].clone(), entry["apiVersion"].clone()))
        .collect();
    let of = |manager: &str, version: &str| (json!(manager), json!(format!("example.com/{version}")));
    assert!(managers.contains(&of("tester", "v1")) && managers.contains(&of("other", "v2")), "{managers:?}");
    let mut other = tom("v2");
    other["spec"]["first"] = "Tim".into();
    let path = format!("{v2}/tom?fieldManager=third");
    let refused = crate::harness::answer(
        send(&server, "PATCH", &path, "application/apply-patch+yaml", Some(&other)).await,
    );
    let refused = refused.await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let causes = refused.body["details"]["causes"].to_string();
    assert!(causes.contains(".spec.fullName") && causes.contains(".spec.first"), "{causes}");
}

#[tokio::test]
async fn what_is_stored_in_an_earlier_version_is_brought_into_todays_by_a_change_of_nothing() {
    let (server, _hook, client) = cattery().await;
    assert_eq!(post(&server, &cats("v1"), &tom("v1")).await.status, 201);
    let path = format!("{DEFINITIONS}/cats.example.com");
    assert_eq!(merge(&server, &path, &json!({"spec": definition("v2", &client)["spec"]})).await.status, 200);
    let seen = get(&server, &format!("{}/tom", cats("v2"))).await.body;
    assert_eq!(stored(&server)[0]["apiVersion"], "example.com/v1");
    assert_eq!(put(&server, &format!("{}/tom", cats("v2")), &seen).await.status, 200);
    assert_eq!(stored(&server)[0]["apiVersion"], "example.com/v2");
    assert_eq!(stored(&server)[0]["spec"]["first"], "Tom");
    let revision = stored(&server)[0]["metadata"]["resourceVersion"].clone();
    let again = merge(&server, &format!("{}/tom", cats("v2")), &json!({})).await;
    assert_eq!((again.status, &again.body["metadata"]["resourceVersion"]), (200, &revision), "{again:?}");
}

/// A policy that knows v1 alone is asked about v1, whatever version a request comes in; so is a webhook, and what it changes is
/// stored.
#[tokio::test]
async fn admission_sees_the_version_that_its_rules_name() {
    let (server, hook, _) = cattery().await;
    let rules = json!([{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["cats"]}]);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-dogs"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{
            "expression": "object.apiVersion == 'example.com/v1' && object.spec.fullName != 'Old Dog' && (oldObject == null || oldObject.spec.fullName != '')",
            "message": "no dogs",
        }]},
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-dogs"},
        "spec": {"policyName": "no-dogs", "validationActions": ["Deny"]},
    });
    let group = "/apis/admissionregistration.k8s.io/v1";
    assert_eq!(post(&server, &format!("{group}/validatingadmissionpolicies"), &policy).await.status, 201);
    assert_eq!(
        post(&server, &format!("{group}/validatingadmissionpolicybindings"), &binding).await.status,
        201
    );
    let v2 = cats("v2");
    assert_eq!(post(&server, &v2, &tom("v2")).await.status, 201);
    let mut dog = tom("v2");
    dog["metadata"]["name"] = "dog".into();
    dog["spec"] = json!({"first": "Old", "last": "Dog"});
    let refused = post(&server, &v2, &dog).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.message().contains("no dogs"), "{}", refused.message());
    let changed = merge(&server, &format!("{v2}/tom"), &json!({"spec": dog["spec"]})).await;
    assert_eq!(changed.status, 422, "{changed:?}");
    // Where the webhook does not convert, a policy that may refuse does.
    let before = get(&server, &format!("{v2}/tom")).await.body;
    hook.questions();
    hook.twists(|mut answer| {
        answer["response"]["result"] = json!({"status": "Failure", "message": "out of order"});
        axum::response::IntoResponse::into_response(axum::Json(answer))
    });
    let undecided = put(&server, &format!("{v2}/tom"), &before).await;
    assert_eq!(undecided.status, 500, "{undecided:?}");
}

#[tokio::test]
async fn mutating_webhooks_change_objects_in_their_version() {
    let (server, _hook, _) = cattery().await;
    let script = crate::webhook::Script::default();
    let (address, pem) = crate::webhook::serve(script.clone()).await;
    let bundle = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pem);
    let patch = json!([{"op": "replace", "path": "/spec/fullName", "value": "Sir Tom"}]).to_string();
    script.answers(json!({
        "allowed": true, "patchType": "JSONPatch",
        "patch": base64::Engine::encode(&base64::engine::general_purpose::STANDARD, patch),
    }));
    let rules = json!([{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["cats"]}]);
    let client = json!({"url": format!("https://{address}/validate"), "caBundle": bundle});
    let mut configuration = crate::webhook::configuration(&client, &json!({"rules": rules}));
    configuration["kind"] = "MutatingWebhookConfiguration".into();
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    assert_eq!(post(&server, path, &configuration).await.status, 201);
    let made = post(&server, &cats("v2"), &tom("v2")).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["spec"]["first"], "Sir");
    assert_eq!(stored(&server)[0]["spec"]["fullName"], "Sir Tom");
    let asked = script.asked();
    assert_eq!(asked[0]["request"]["object"]["spec"]["fullName"], "Tom Cat");
    assert_eq!(asked[0]["request"]["requestKind"]["version"], "v2");
}
