//! What users are told of webhooks that cannot be reached, do not answer, or warn: the words of kube-apiserver v1.36.2 for the
//! same webhooks.

use admit_apiserver::Server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::net::TcpListener;

use crate::harness::{delete, post};
use crate::webhook::{CONFIGURATIONS, MAPS, Script, asking, configuration, hooked, map, serve};

#[tokio::test]
async fn what_is_no_answer_is_told_as_kube_apiserver_tells_it() {
    const JSON: &str = "application/json";
    const TEXT: &str = "text/plain; charset=utf-8";
    const NO_OBJECT: &str = "couldn't get version/kind; json parse error: json: cannot unmarshal ";
    const TYPE: &str = r#" into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let script = Script::default();
    let server = asking(&script, "/raw", &json!({})).await;
    let status = json!({"kind": "Status", "apiVersion": "v1", "message": "busy", "code": 503}).to_string();
    let typed = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind}).to_string();
    let allowed = json!({"response": {"allowed": "true"}}).to_string();
    let cases = [
        (500, JSON, "boom", "an error on the server (\"unknown\") has prevented the request from succeeding"),
        (500, TEXT, "boom", "an error on the server (\"boom\") has prevented the request from succeeding"),
        (503, JSON, &status, "busy"),
        (503, TEXT, "", "the server is currently unable to handle the request"),
        (429, TEXT, "", "the server has received too many requests and has asked us to try again later"),
        (403, JSON, "no", "unknown"),
        (404, JSON, "no", "the server could not find the requested resource"),
        (413, TEXT, "", "the server responded with the status code 413 but did not return more information"),
        (200, JSON, "", "0-length response with status code: 200 and content type: application/json"),
        (204, JSON, "", "0-length response with status code: 204 and content type: application/json"),
        (
            200,
            JSON,
            &typed("admission.k8s.io/v1beta1", "AdmissionReview"),
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            200,
            JSON,
            &typed("admission.k8s.io/v1", "Other"),
            "no kind \"Other\" is registered for version \"admission.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (200, JSON, "some text", &format!("{NO_OBJECT}string{TYPE}")),
        (200, JSON, "[]", &format!("{NO_OBJECT}array{TYPE}")),
        (
            200,
            JSON,
            &allowed,
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
    ];
    for (code, kind, body, why) in cases {
        script.answers(json!({"code": code, "type": kind, "body": body}));
        let refused = post(&server, MAPS, &map("one")).await;
        let told = format!(
            "Internal error occurred: failed calling webhook \"validate.hook.example\": failed to call webhook: {why}"
        );
        assert_eq!((refused.status, refused.message()), (500, told.as_str()));
    }
}

#[tokio::test]
async fn a_webhook_out_of_reach_is_told_as_kube_apiserver_tells_it() {
    let (address, pem) = serve(Script::default()).await;
    let server = Server::builder().build().await.unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = silent.local_addr().unwrap();
    drop(silent);
    let cases = [
        (format!("https://{free}/"), format!("dial tcp {free}: connect: connection refused")),
        ("https://nowhere.invalid/".to_owned(), "dial tcp: lookup nowhere.invalid: no such host".to_owned()),
        (
            format!("https://localhost:{}/", address.port()),
            "tls: failed to verify certificate: x509: certificate is valid for hook.demo.svc, not localhost"
                .to_owned(),
        ),
    ];
    for (url, why) in cases {
        let client = json!({"url": url, "caBundle": STANDARD.encode(&pem)});
        post(&server, CONFIGURATIONS, &configuration(&client, &json!({}))).await;
        let refused = post(&server, MAPS, &map("one")).await;
        let told = format!("failed to call webhook: Post \"{url}?timeout=10s\": {why}");
        assert!(refused.message().ends_with(&told), "{}\n{told}", refused.message());
        delete(&server, &format!("{CONFIGURATIONS}/hook"), None).await;
    }
}

/// Those that no header can hold are left out; where there are too many, each is cut.
#[tokio::test]
async fn warnings_are_sent_as_kube_apiserver_sends_them() {
    let script = Script::default();
    let server = asking(&script, "/validate", &json!({})).await;
    script.answers(json!({"allowed": true, "warnings": ["a \"b\" \\", "two\nlines", "x".repeat(300)]}));
    let made = post(&server, &format!("{MAPS}?dryRun=All"), &map("one")).await;
    assert_eq!(
        made.warnings,
        ["299 - \"a \\\"b\\\" \\\\\"".to_owned(), format!("299 - \"{}\"", "x".repeat(300))]
    );
    let many: Vec<String> = (10..40).map(|number| format!("{number}{}", "x".repeat(300))).collect();
    script.answers(json!({"allowed": true, "warnings": many}));
    let made = post(&server, &format!("{MAPS}?dryRun=All"), &map("one")).await;
    assert_eq!(made.warnings.len(), 16);
    assert!(made.warnings.iter().all(|warning| warning.len() == 256 + r#"299 - """#.len()));
}

/// The first version of its list that is known is the one that a webhook is asked in. Of an answer in v1beta1 neither the uid nor
/// the type of the patch is looked at.
#[tokio::test]
async fn a_webhook_is_asked_in_the_first_version_that_it_takes() {
    let script = Script::default();
    let (server, client) = hooked(&script, "/validate").await;
    let versions = |versions: &[&str]| configuration(&client, &json!({"admissionReviewVersions": versions}));
    let mut mutating = versions(&["v2", "v1beta1", "v1"]);
    mutating["kind"] = json!("MutatingWebhookConfiguration");
    let mutations = CONFIGURATIONS.replace("validating", "mutating");
    let made = post(&server, &mutations, &mutating).await;
    assert_eq!(made.status, 201, "{made:?}");
    let patch = STANDARD.encode(json!([{"op": "add", "path": "/data/b", "value": "2"}]).to_string());
    script.answers(json!({"allowed": true, "uid": "another", "patch": patch}));
    let made = post(&server, MAPS, &map("one")).await;
    assert_eq!((made.status, &made.body["data"]), (201, &json!({"a": "1", "b": "2"})), "{made:?}");
    let asked = script.asked();
    assert_eq!(asked[0]["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(
        asked[0]["request"]["requestKind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    assert_eq!(delete(&server, &format!("{mutations}/hook"), None).await.status, 200);

    // A validating webhook of v1beta1 may answer with a patch, which changes nothing.
    assert_eq!(post(&server, CONFIGURATIONS, &versions(&["v1beta1"])).await.status, 201);
    let made = post(&server, MAPS, &map("two")).await;
    assert_eq!((made.status, &made.body["data"]), (201, &json!({"a": "1"})), "{made:?}");
    script.answers(json!({"allowed": false, "status": {"message": "no"}}));
    let refused = post(&server, MAPS, &map("three")).await;
    assert_eq!(refused.message(), "admission webhook \"validate.hook.example\" denied the request: no");
}

#[tokio::test]
async fn an_answer_in_another_version_than_the_question_is_none() {
    let script = Script::default();
    let server = asking(&script, "/raw", &json!({"admissionReviewVersions": ["v1beta1"]})).await;
    for (answer, why) in [
        (
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
            "failed to call webhook: converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion",
        ),
        (json!({}), "received invalid webhook response: webhook response was absent"),
    ] {
        script.answers(json!({"code": 200, "type": "application/json", "body": answer.to_string()}));
        let refused = post(&server, MAPS, &map("one")).await;
        let told =
            format!("Internal error occurred: failed calling webhook \"validate.hook.example\": {why}");
        assert_eq!((refused.status, refused.message()), (500, told.as_str()));
    }
}

/// Where the webhook may fail, only a patch that is none, or of no type that is known, is passed over.
#[tokio::test]
async fn a_patch_that_cannot_be_applied_is_told_in_the_words_of_the_server_s_library() {
    let script = Script::default();
    let (server, client) = hooked(&script, "/validate").await;
    let mutations = CONFIGURATIONS.replace("validating", "mutating");
    let called = "failed calling webhook \"validate.hook.example\": ";
    let operation = |op: &str, path: &str| json!([{"op": op, "path": path, "value": 1}]).to_string();
    let cases = [
        (
            "[{",
            "JSONPatch",
            format!("{called}received undecodable patch in webhook response: unexpected end of JSON input"),
            true,
        ),
        (
            "{}",
            "JSONPatch",
            format!(
                "{called}received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
            ),
            true,
        ),
        (&operation("add", "/x"), "Other", format!("{called}unsupported patch type \"Other\""), true),
        (&operation("leap", "/x"), "JSONPatch", "Unexpected kind: leap".to_owned(), false),
        (
            &operation("test", "/kind"),
            "JSONPatch",
            "testing value /kind failed: test failed".to_owned(),
            false,
        ),
        (
            &operation("remove", "/data/none"),
            "JSONPatch",
            "error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value"
                .to_owned(),
            false,
        ),
        (
            &operation("replace", "/data/none"),
            "JSONPatch",
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string".to_owned(),
            false,
        ),
    ];
    for policy in ["Fail", "Ignore"] {
        let mut mutating = configuration(&client, &json!({"failurePolicy": policy}));
        mutating["kind"] = json!("MutatingWebhookConfiguration");
        assert_eq!(post(&server, &mutations, &mutating).await.status, 201);
        for (patch, patch_type, why, may_fail) in &cases {
            let patch = STANDARD.encode(patch);
            script.answers(json!({"allowed": true, "patchType": patch_type, "patch": patch}));
            let answer = post(&server, &format!("{MAPS}?dryRun=All"), &map("one")).await;
            if *may_fail && policy == "Ignore" {
                assert_eq!(answer.status, 201, "{why}: {answer:?}");
                continue;
            }
            let told = format!("Internal error occurred: {why}");
            assert_eq!((answer.status, answer.message()), (500, told.as_str()));
        }
        assert_eq!(delete(&server, &format!("{mutations}/hook"), None).await.status, 200);
    }
}

#[tokio::test]
async fn what_a_webhook_makes_of_the_metadata_is_checked_as_what_a_client_sends() {
    let script = Script::default();
    let (server, client) = hooked(&script, "/validate").await;
    let mutations = CONFIGURATIONS.replace("validating", "mutating");
    let mut mutating = configuration(&client, &json!({}));
    mutating["kind"] = json!("MutatingWebhookConfiguration");
    assert_eq!(post(&server, &mutations, &mutating).await.status, 201);
    let set = |path: &str, value: serde_json::Value| {
        let patch = json!([{"op": "add", "path": path, "value": value}]).to_string();
        script.answers(json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch)}));
    };
    set("/metadata/namespace", json!("other"));
    let refused = post(&server, MAPS, &map("one")).await;
    let told = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!((refused.status, refused.message()), (400, told));
    set("/metadata/managedFields", json!([]));
    let made = post(&server, MAPS, &map("one")).await;
    assert_eq!((made.status, made.body["metadata"].get("managedFields")), (201, None), "{made:?}");
    set("/metadata/managedFields", json!([{}]));
    let made = post(&server, MAPS, &map("two")).await;
    assert_eq!(made.body["metadata"]["managedFields"][0]["operation"], "Update", "{made:?}");
    assert!(
        made.warnings[0].ends_with("please fix your requests: operation must be `Apply` or `Update`\""),
        "{made:?}"
    );
}
