//! `/metrics`: the requests of one sequence are counted under the labels that kube-apiserver 1.36 gave the same sequence.

use std::collections::BTreeMap;

use admit_apiserver::{Identity, Server};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use tower::ServiceExt as _;

use crate::harness::{delete, get, merge, post, send};
use crate::webhook::{MAPS, Script, asking, map};

/// The samples of the metrics of these names, without the labels that are empty.
async fn samples(server: &Server, names: &[&str]) -> BTreeMap<String, u64> {
    let text = get(server, "/metrics").await.body.as_str().unwrap().to_owned();
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        if !names.contains(&name) {
            continue;
        }
        let mut labels: Vec<&str> =
            labels.trim_end_matches('}').split(',').filter(|label| !label.ends_with("=\"\"")).collect();
        labels.sort_unstable();
        found.insert(format!("{name} {}", labels.join(" ")), value.parse().unwrap());
    }
    found
}

async fn ask_for_everything(server: &Server) {
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m1"}, "data": {"a": "b"}});
    let one = format!("{MAPS}/m1");
    for (path, expected) in [(MAPS.to_owned(), 201), (MAPS.to_owned(), 409)] {
        assert_eq!(post(server, &path, &map).await.status, expected);
    }
    let other = json!({"metadata": {"name": "m2"}});
    assert_eq!(post(server, &format!("{MAPS}?dryRun=All"), &other).await.status, 201);
    assert_eq!(post(server, &format!("{MAPS}?dryRun=x"), &other).await.status, 422);
    for (path, expected) in [
        (one.clone(), 200),
        (format!("{MAPS}/none"), 404),
        (MAPS.to_owned(), 200),
        ("/api/v1/configmaps".to_owned(), 200),
        (format!("{MAPS}?fieldSelector=metadata.name%3Dm1"), 200),
        (format!("{MAPS}?labelSelector=%21%21"), 400),
        (format!("{MAPS}?watch=1&timeoutSeconds=1"), 200),
        ("/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1".to_owned(), 200),
        ("/api/v1/componentstatuses".to_owned(), 200),
        ("/api/v1/namespaces/default".to_owned(), 200),
        ("/api/v1/namespaces/default/pods/p/log".to_owned(), 404),
        ("/apis/apps/v1/namespaces/default/deployments/d/status".to_owned(), 404),
        ("/apis/none.example.com/v1/x".to_owned(), 404),
        ("/readyz".to_owned(), 200),
        ("/livez/ping".to_owned(), 200),
        ("/version".to_owned(), 200),
        ("/apis".to_owned(), 200),
    ] {
        assert_eq!(get(server, &path).await.status, expected, "{path}");
    }
    for (method, path, content_type, expected) in [
        ("PUT", &one, "application/json", 200),
        ("PATCH", &format!("{one}?fieldManager=x"), "application/apply-patch+yaml", 200),
        ("HEAD", &one, "application/json", 405),
        ("OPTIONS", &one, "application/json", 405),
    ] {
        let answer = send(server, method, path, content_type, Some(&map)).await;
        assert_eq!(answer.status().as_u16(), expected, "{method} {path}");
    }
    assert_eq!(merge(server, &one, &json!({"data": {"c": "d"}})).await.status, 200);
    assert_eq!(delete(server, &one, None).await.status, 200);
    assert_eq!(delete(server, MAPS, None).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_under_the_labels_of_kube_apiserver() {
    let server = Server::builder().build().await.unwrap();
    ask_for_everything(&server).await;
    let maps = |rest: &str| {
        format!("apiserver_request_total {rest} version=\"v1\"")
            .replace("MAPS", "component=\"apiserver\"")
            .replace("CM", "resource=\"configmaps\"")
    };
    let mut expected = BTreeMap::new();
    for (verb, scope, code, dry_run, count) in [
        ("APPLY", "resource", 200, "", 1),
        ("DELETE", "namespace", 200, "", 1),
        ("DELETE", "resource", 200, "", 1),
        ("GET", "resource", 200, "", 1),
        ("GET", "resource", 404, "", 1),
        ("LIST", "cluster", 200, "", 1),
        ("LIST", "namespace", 200, "", 2),
        ("LIST", "namespace", 400, "", 1),
        ("PATCH", "resource", 200, "", 1),
        ("POST", "resource", 201, "", 1),
        ("POST", "resource", 201, "dry_run=\"All\" ", 1),
        ("POST", "resource", 409, "", 1),
        ("POST", "resource", 422, "dry_run=\"invalid\" ", 1),
        ("PUT", "resource", 200, "", 1),
        ("WATCH", "namespace", 200, "", 2),
    ] {
        let labels = format!("code=\"{code}\" MAPS {dry_run}CM scope=\"{scope}\" verb=\"{verb}\"");
        expected.insert(maps(&labels), count);
    }
    for (labels, count) in [
        ("code=\"200\" MAPS resource=\"componentstatuses\" scope=\"cluster\" verb=\"LIST\"", 1),
        ("code=\"200\" MAPS resource=\"namespaces\" scope=\"resource\" verb=\"GET\"", 1),
        (
            "code=\"404\" MAPS group=\"apps\" resource=\"deployments\" scope=\"resource\" subresource=\"status\" verb=\"GET\"",
            1,
        ),
        ("code=\"404\" MAPS resource=\"pods\" scope=\"resource\" subresource=\"log\" verb=\"CONNECT\"", 1),
    ] {
        expected.insert(maps(labels), count);
    }
    expected
        .insert("apiserver_request_total code=\"200\" subresource=\"/readyz\" verb=\"GET\"".to_owned(), 1);
    assert_eq!(samples(&server, &["apiserver_request_total"]).await, expected);

    let others = samples(
        &server,
        &[
            "apiserver_requested_deprecated_apis",
            "apiserver_longrunning_requests",
            "apiserver_current_inflight_requests",
            "authentication_attempts",
            "authenticated_user_requests",
        ],
    )
    .await;
    // The last of them is that for the metrics.
    let asked = 30;
    let expected: BTreeMap<String, u64> = [
        ("apiserver_current_inflight_requests request_kind=\"mutating\"", 0),
        ("apiserver_current_inflight_requests request_kind=\"readOnly\"", 1),
        ("apiserver_longrunning_requests component=\"apiserver\" resource=\"configmaps\" scope=\"namespace\" verb=\"WATCH\" version=\"v1\"", 0),
        ("apiserver_requested_deprecated_apis resource=\"componentstatuses\" version=\"v1\"", 1),
        ("authenticated_user_requests username=\"admin\"", asked),
        ("authentication_attempts result=\"success\"", asked),
    ]
    .into_iter()
    .map(|(series, value)| (series.to_owned(), value))
    .collect();
    assert_eq!(others, expected);
}

/// Which steps of admission kube-apiserver 1.36 counts for each request.
#[tokio::test]
async fn steps_of_admission_are_counted_by_operation() {
    const COUNT: &str = "apiserver_admission_step_admission_duration_seconds_count";
    let server = Server::builder().build().await.unwrap();
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"a": "b"}});
    let (create, update, delete) = ("CREATE", "UPDATE", "DELETE");
    let [merge, apply] = ["application/merge-patch+json", "application/apply-patch+yaml"];
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}});
    for (method, path, kind, body, code, admitted, validated) in [
        ("POST", MAPS, "application/json", Some(map("a")), 201, create, create),
        ("POST", MAPS, "application/json", Some(map("a")), 409, create, create),
        ("POST", &*format!("{MAPS}?dryRun=All"), "application/json", Some(map("b")), 201, create, create),
        ("POST", MAPS, "application/json", Some(map("-bad-")), 422, create, ""),
        ("PUT", &format!("{MAPS}/a"), "application/json", Some(map("a")), 200, update, update),
        ("PATCH", &format!("{MAPS}/a"), merge, Some(json!({"data": {"a": "c"}})), 200, update, update),
        ("PATCH", &format!("{MAPS}/b?fieldManager=x"), apply, Some(applied), 201, create, create),
        ("DELETE", &format!("{MAPS}/a"), "application/json", None, 200, delete, delete),
        ("DELETE", &format!("{MAPS}/a"), "application/json", None, 404, "", ""),
        (
            "POST",
            "/api/v1/namespaces/none/configmaps",
            "application/json",
            Some(map("a")),
            404,
            "!CREATE",
            "",
        ),
        ("DELETE", "/api/v1/namespaces/kube-system", "application/json", None, 403, "!DELETE", ""),
        ("GET", MAPS, "application/json", None, 200, "", ""),
    ] {
        let before = samples(&server, &[COUNT]).await;
        let answer = send(&server, method, path, kind, body.as_ref()).await;
        assert_eq!(answer.status().as_u16(), code, "{method} {path}");
        let expected: Vec<String> = [("admit", admitted), ("validate", validated)]
            .into_iter()
            .filter(|(_, operation)| !operation.is_empty())
            .map(|(step, operation)| {
                let (name, rejected) = (operation.trim_start_matches('!'), operation.starts_with('!'));
                format!("{COUNT} operation=\"{name}\" rejected=\"{rejected}\" type=\"{step}\"")
            })
            .collect();
        let after = samples(&server, &[COUNT]).await;
        let counted = after.iter().filter(|(series, count)| before.get(*series) != Some(count));
        let counted: Vec<&String> = counted.map(|(series, _)| series).collect();
        assert_eq!(counted, expected.iter().collect::<Vec<_>>(), "{method} {path}");
    }
}

#[tokio::test]
async fn the_process_is_measured() {
    let server = Server::builder().build().await.unwrap();
    let text = get(&server, "/metrics").await.body.as_str().unwrap().to_owned();
    for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"] {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        assert!(text.contains(&format!("# TYPE {name} {kind}\n{name} ")), "{text}");
    }
}

#[tokio::test]
async fn a_watch_is_under_way_until_its_client_leaves() {
    let server = Server::builder().build().await.unwrap();
    let request = Request::get(format!("{MAPS}?watch=1&timeoutSeconds=3600&fieldSelector=metadata.name%3Da"))
        .extension(Identity::new("admin", ["system:masters".to_owned()]));
    let mut watch = server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_body();
    post(&server, MAPS, &json!({"metadata": {"name": "a"}})).await;
    assert!(watch.frame().await.unwrap().is_ok());
    let names = ["apiserver_longrunning_requests", "apiserver_request_total", "apiserver_watch_events_total"];
    let asked =
        "component=\"apiserver\" resource=\"configmaps\" scope=\"resource\" verb=\"WATCH\" version=\"v1\"";
    let before = samples(&server, &names).await;
    assert_eq!(before[&format!("apiserver_longrunning_requests {asked}")], 1);
    assert_eq!(before["apiserver_watch_events_total resource=\"configmaps\" version=\"v1\""], 1);
    assert!(
        !before.keys().any(|series| series.contains("apiserver_request_total") && series.contains("WATCH"))
    );
    drop(watch);
    let after = samples(&server, &names).await;
    assert_eq!(after[&format!("apiserver_longrunning_requests {asked}")], 0);
    let ended: Vec<&String> = after.keys().filter(|series| series.contains("WATCH")).collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
}

#[tokio::test]
async fn stored_objects_are_counted_by_resource() {
    let server = Server::builder().build().await.unwrap();
    let names = ["apiserver_resource_objects", "apiserver_storage_objects"];
    let count = |samples: &BTreeMap<String, u64>| {
        (
            samples["apiserver_resource_objects resource=\"configmaps\""],
            samples["apiserver_storage_objects resource=\"configmaps\""],
        )
    };
    let (before, _) = count(&samples(&server, &names).await);
    for name in ["a", "b"] {
        post(&server, MAPS, &json!({"metadata": {"name": name}})).await;
    }
    delete(&server, &format!("{MAPS}/a"), None).await;
    assert_eq!(count(&samples(&server, &names).await), (before + 1, before + 1));
}

#[tokio::test]
async fn failed_rules_of_policies_are_counted_by_what_followed() {
    let server = Server::builder().build().await.unwrap();
    let group = "/apis/admissionregistration.k8s.io/v1";
    for (name, expression, on_failure, actions) in [
        ("warns", "object.metadata.name != 'bad'", "Fail", json!(["Warn", "Audit"])),
        ("denies", "object.metadata.name != 'bad'", "Fail", json!(["Deny"])),
        ("ignores", "object.data.x == 'y'", "Ignore", json!(["Deny"])),
    ] {
        let rules = [
            json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}),
        ];
        let policy = json!({"metadata": {"name": name}, "spec": {
            "failurePolicy": on_failure,
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": expression}],
        }});
        let made = post(&server, &format!("{group}/validatingadmissionpolicies"), &policy).await;
        assert_eq!(made.status, 201, "{made:?}");
        let binding = json!({
            "metadata": {"name": format!("{name}-here")},
            "spec": {"policyName": name, "validationActions": actions},
        });
        let made = post(&server, &format!("{group}/validatingadmissionpolicybindings"), &binding).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    for (name, expected) in [("good", 201), ("bad", 422)] {
        assert_eq!(post(&server, MAPS, &json!({"metadata": {"name": name}})).await.status, expected);
    }
    let names = ["apiserver_validating_admission_policy_check_total"];
    let check = |action: &str, policy: &str| {
        format!(
            "{} enforcement_action=\"{action}\" error_type=\"invalid_error\" policy=\"{policy}\" \
             policy_binding=\"{policy}-here\"",
            names[0]
        )
    };
    let expected = BTreeMap::from([
        (check("allow", "ignores"), 2),
        (check("audit", "warns"), 1),
        (check("deny", "denies"), 1),
        (check("warn", "warns"), 1),
    ]);
    assert_eq!(samples(&server, &names).await, expected);
}

#[tokio::test]
async fn calls_of_webhooks_are_counted_by_how_they_ended() {
    let script = Script::default();
    let server = asking(&script, "/validate", &json!({"failurePolicy": "Ignore"})).await;
    for (name, answer, expected) in [
        ("admitted", json!({"allowed": true}), 201),
        ("denied", json!({"allowed": false, "status": {"code": 418, "message": "no"}}), 418),
        // A validating webhook that patches has failed, and this one may.
        ("failed", json!({"allowed": true, "patchType": "JSONPatch", "patch": "W10="}), 201),
    ] {
        script.answers(answer);
        let made = post(&server, MAPS, &map(name)).await;
        assert_eq!(made.status, expected, "{made:?}");
    }
    let names = [
        "apiserver_admission_webhook_request_total",
        "apiserver_admission_webhook_admission_duration_seconds_count",
        "apiserver_admission_webhook_rejection_count",
        "apiserver_admission_webhook_fail_open_count",
    ];
    let hook = "name=\"validate.hook.example\"";
    let call = |code: u16, rejected: bool| {
        format!(
            "{} code=\"{code}\" {hook} operation=\"CREATE\" rejected=\"{rejected}\" type=\"validating\"",
            names[0]
        )
    };
    let took = |rejected: bool| {
        format!("{} {hook} operation=\"CREATE\" rejected=\"{rejected}\" type=\"validating\"", names[1])
    };
    let expected = BTreeMap::from([
        (call(200, false), 1),
        (call(418, true), 1),
        (call(503, false), 1),
        (took(false), 2),
        (took(true), 1),
        (
            format!(
                "{} error_type=\"no_error\" {hook} operation=\"CREATE\" rejection_code=\"418\" type=\"validating\"",
                names[2]
            ),
            1,
        ),
        (format!("{} {hook} type=\"validating\"", names[3]), 1),
    ]);
    assert_eq!(samples(&server, &names).await, expected);
}

/// Whoever renames the versions of a definition again and again makes no series without end.
#[tokio::test]
async fn versions_of_custom_resources_are_bounded_as_labels() {
    let server = Server::builder().build().await.unwrap();
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    for batch in 0..12 {
        let plural = format!("things{batch}");
        let version = |number: usize| json!({"name": format!("v{}", number + 1), "served": true, "storage": number == 0, "schema": schema});
        let definition = json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": format!("Thing{batch}")},
                "versions": (0..100).map(version).collect::<Vec<_>>(),
            },
        });
        let made =
            post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        assert_eq!(made.status, 201, "{made:?}");
        for number in 1..=100 {
            let path = format!("/apis/example.com/v{number}/{plural}");
            assert_eq!(get(&server, &path).await.status, 200, "{path}");
        }
    }
    let counted = samples(&server, &["apiserver_request_total"]).await;
    let own = counted.keys().filter(|series| series.contains("group=\"example.com\"")).count();
    assert_eq!(own, 1_000);
    let others: Vec<u64> =
        counted.iter().filter(|(series, _)| series.contains("(other)")).map(|(_, count)| *count).collect();
    assert_eq!(others, [200]);
}
