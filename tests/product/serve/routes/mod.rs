//! What the routes answer to reviews, good and malformed, and when what they stand on fails: without sockets. Rows are those
//! of the acceptance table.

mod auditing;
mod converted;
mod limits;
mod mutated;
mod patches;
mod spelling;
pub(crate) mod support;
mod verified;

use http::StatusCode;
use serde_json::{Value, json};

use self::support::{Fault, Faulty, Post, config_map, pod_policies, policy, review, server, server_with};
use crate::soak::{percent, scaled};
use crate::support::reliability::Row;

#[tokio::test]
async fn a_request_that_no_policy_matches_is_allowed_under_its_uid() {
    let answer = server(&[]).post("/validate", &config_map("not-a-uuid")).await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(
        answer.json,
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "not-a-uuid", "allowed": true},
        })
    );
}

/// Row 4: the uid comes back byte for byte, whatever it looks like.
#[tokio::test]
async fn row_04_any_uid_is_echoed() {
    let mut row = Row::short(4, "odd uids");
    let server = server(&[]);
    for uid in ["u".repeat(1024), "ünï \"quoted\" \\ \u{1f980}".to_owned(), " ".to_owned()] {
        let answer = server.post("/validate", &config_map(&uid)).await;
        assert_eq!(answer.json["response"]["uid"], uid);
    }
    row.measured(json!({"uids": 3, "mismatches": 0}));
}

#[tokio::test]
async fn a_malformed_request_with_a_uid_is_denied_under_it() {
    let answer = server(&[]).post("/validate", &review(&json!({"uid": "u1", "operation": "PATCH"}))).await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(answer.json["response"]["uid"], "u1");
    assert_eq!(answer.json["response"]["allowed"], false);
    assert_eq!(answer.json["response"]["status"]["code"], 400);
}

/// Row 3: version and kind; what has no uid is a bad request.
#[tokio::test]
async fn row_03_what_is_no_v1_review_is_refused() {
    let mut row = Row::short(3, "what is no v1 review");
    let request = r#""request":{"uid":"u1"}"#;
    let cases = [
        (String::new(), 400),
        ("{".to_owned(), 400),
        ("[]".to_owned(), 400),
        ("{}".to_owned(), 400),
        ("null".to_owned(), 400),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_owned(), 400),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}"#.to_owned(), 400),
        (format!(r#"{{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview",{request}}}"#), 200),
        (format!(r#"{{"apiVersion":"admission.k8s.io/v9","kind":"AdmissionReview",{request}}}"#), 200),
        (format!(r#"{{"apiVersion":"v1","kind":"AdmissionReview",{request}}}"#), 200),
        (format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"Review",{request}}}"#), 200),
        (format!(r#"{{"kind":"AdmissionReview",{request}}}"#), 200),
    ];
    let server = server(&[]);
    for (body, code) in cases {
        let answer = server.post("/validate", &body).await;
        assert_eq!(answer.code.as_u16(), code, "{body}");
        if code == 200 {
            assert_eq!(answer.json["response"]["uid"], "u1", "{body}");
            assert_eq!(answer.json["response"]["allowed"], false, "{body}");
            assert_eq!(answer.json["response"]["status"]["code"], 400, "{body}");
        } else {
            assert_eq!(answer.json["kind"], "Status", "{body}");
        }
    }
    let answer = server.send(Post { content_type: "application/yaml", ..Post::to("/validate") }, "").await;
    assert_eq!(answer.code, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    row.measured(json!({"vectors": 12, "exact": 12}));
}

/// Row 3: v1beta1 is answered only where it is switched on, and then in kind, whatever comes of the request.
#[tokio::test]
async fn row_03_v1beta1_is_answered_in_kind() {
    let mut row = Row::short(3, "v1beta1");
    let (beta, v1) = ("admission.k8s.io/v1beta1", "admission.k8s.io/v1");
    let good = config_map("u1").replacen(v1, beta, 1);
    assert!(good.contains(beta));
    let on = support::server_of_beta(&[policy("p", "!has(object.data)")]);
    let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
    let cases = [
        (good.clone(), beta, true),
        (good.replacen(r#""object":{}"#, r#""object":{"data":{}}"#, 1), beta, false),
        (good.replacen("CREATE", "PATCH", 1), beta, false),
        (good.replacen(r#""object":{}"#, r#""object":{"a":1,"a":2}"#, 1), beta, false),
        (good.replacen(r#""object":{}"#, &format!(r#""object":{{"a":{deep}}}"#), 1), beta, false),
        (config_map("u1"), v1, true),
        (config_map("u1").replacen(v1, "admission.k8s.io/v1alpha1", 1), v1, false),
    ];
    for (body, version, allowed) in &cases {
        let answer = on.post("/validate", body).await.json;
        assert_eq!(answer["apiVersion"], *version, "{body}");
        assert_eq!(
            (&answer["response"]["uid"], &answer["response"]["allowed"]),
            (&json!("u1"), &json!(allowed)),
            "{body}"
        );
    }
    let off = server(&[]).post("/validate", &good).await.json;
    assert_eq!((&off["apiVersion"], &off["response"]["allowed"]), (&json!(v1), &json!(false)));
    row.measured(json!({"vectors": cases.len() + 1, "echoed": 5}));
}

/// Row 7, the short form: two objects of 3 MiB pass, 8 MiB and a byte do not.
#[tokio::test]
async fn row_07_a_body_over_the_limit_is_refused() {
    let mut row = Row::short(7, "sizes around the limit");
    let server = server(&[]);
    let answer = server.post("/validate", &" ".repeat(8 * 1024 * 1024 + 1)).await;
    assert_eq!(answer.code, StatusCode::PAYLOAD_TOO_LARGE);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"v": "x".repeat(3 * 1024 * 1024)}});
    let mut request: Value = serde_json::from_str(&config_map("u1")).unwrap();
    request["request"]["object"] = object.clone();
    request["request"]["oldObject"] = object;
    let answer = server.post("/validate", &request.to_string()).await;
    assert_eq!(answer.json["response"]["allowed"], true);
    row.measured(json!({"passed": "3 MiB + 3 MiB", "refused": "8 MiB + 1 byte"}));
}

/// Row 8: depth is data up to the budget of 512 levels, and a denial under the right uid beyond it.
#[tokio::test]
async fn row_08_nesting_beyond_the_budget_is_denied_under_the_uid() {
    /// Levels around the lists: review, request, object.
    const AROUND: usize = 3;
    let mut row = Row::short(8, "depths around the budget");
    let server = server(&[policy("p", "has(object.data)")]);
    let depths = [100, 124, 125, 511, 512, 513, 9_999, 100_000];
    for depth in depths {
        let nested = format!("{}{}", "[".repeat(depth - AROUND), "]".repeat(depth - AROUND));
        let object = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","data":{nested}}}"#);
        let body = config_map("u1").replace(r#""object":{}"#, &format!(r#""object":{object}"#));
        assert!(body.len() > depth, "the object is in its place");
        let answer = server.post("/validate", &body).await;
        assert_eq!(answer.code, StatusCode::OK, "{depth}");
        assert_eq!(answer.json["response"]["uid"], "u1", "{depth}");
        assert_eq!(answer.json["response"]["allowed"], depth <= 512, "{depth}: {}", answer.json);
    }
    row.measured(json!({"depths": depths, "aborts": 0, "rightUid": depths.len()}));
}

/// Row 14: a panic denies its own request, and nothing else.
#[tokio::test]
async fn row_14_a_panic_denies_one_request() {
    panics(2_000, Row::short(14, "injected panics")).await;
}

#[tokio::test]
#[ignore = "long; scripts/soak runs it"]
async fn row_14_panics_in_full() {
    let requests = scaled(20_000).next_multiple_of(100);
    panics(requests, Row::full(14, "injected panics", percent())).await;
}

async fn panics(requests: usize, mut row: Row) {
    let server = server_with(&[policy("p", "namespaceObject != null")], Faulty::every(100, Fault::Panic));
    let mut denied = 0;
    for number in 1..=requests {
        let answer = server.post("/validate", &config_map(&number.to_string())).await;
        assert_eq!(answer.json["response"]["uid"], number.to_string());
        if answer.json["response"]["allowed"] == false {
            assert_eq!(answer.json["response"]["status"]["code"], 500);
            assert_eq!(answer.json["response"]["status"]["reason"], "InternalError");
            assert_eq!(number % 100, 0, "{}", answer.json);
            denied += 1;
        }
    }
    assert_eq!(denied, requests / 100);
    let counted = format!("admit_panics_total {denied}\n");
    assert!(server.metrics().contains(&counted), "{}", server.metrics());
    row.measured(json!({"requests": requests, "denied": denied, "otherFailures": 0}));
}

/// Row 20: what cannot be looked up is a failure under failurePolicy, never "no match".
#[tokio::test]
async fn row_20_faults_of_the_surroundings_follow_the_failure_policy() {
    let mut row = Row::short(20, "faults of lookups");
    let mut cases = 0;
    for failure_policy in ["Fail", "Ignore"] {
        for (what, policies) in support::looking_up(failure_policy) {
            let server = server_with(&policies, Faulty::every(1, Fault::Error));
            let answer = server.post("/validate", &config_map("u1")).await;
            let denied = failure_policy == "Fail";
            assert_eq!(
                answer.json["response"]["allowed"], !denied,
                "{what} {failure_policy}: {}",
                answer.json
            );
            let let_through =
                server.metrics().contains("admit_let_through_total{cause=\"failure_policy_ignore\"} 1");
            assert_eq!(let_through, !denied, "{what} {failure_policy}: {}", server.metrics());
            cases += 1;
        }
    }
    assert_eq!(cases, 16);
    row.measured(json!({"cases": cases, "right": cases}));
}

/// Row 21: nothing an object says about itself exempts it.
#[tokio::test]
async fn row_21_objects_do_not_exempt_themselves() {
    let mut row = Row::short(21, "claims of objects");
    let server = server(&[policy("p", "false")]);
    for metadata in [
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}),
        json!({"labels": {"admission.gatekeeper.sh/ignore": "true", "control-plane": "x"}}),
        json!({"annotations": {"policies.kyverno.io/exclude": "true"}}),
        json!({"generateName": "kube-", "namespace": "kube-system"}),
        json!({"ownerReferences": [{"kind": "Node", "name": "a", "uid": "b", "apiVersion": "v1"}]}),
        json!({"managedFields": [{"manager": "kube-controller-manager"}]}),
        json!({"name": "admit", "namespace": "admit-system"}),
        json!(null),
        json!([]),
        json!("name"),
    ] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
        let body = config_map("u1").replacen(r#""object":{}"#, &format!(r#""object":{object}"#), 1);
        let answer = server.post("/validate", &body).await;
        assert_eq!(answer.json["response"]["allowed"], false, "{object}");
    }
    row.measured(json!({"vectors": 10, "exempted": 0}));
}

#[tokio::test]
async fn each_route_asks_its_own_policies() {
    let server = server(&pod_policies());
    let cases = [
        ("/validate", false, 1),
        ("/enforce", false, 0),
        ("/audit", true, 1),
        ("/validate/denies", false, 0),
        ("/validate/warns", true, 1),
    ];
    for (route, allowed, warnings) in cases {
        let answer = server.post(route, &config_map("u1")).await;
        assert_eq!(answer.json["response"]["allowed"], allowed, "{route}");
        let told = answer.json["response"]["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!(told, warnings, "{route}: {}", answer.json);
    }
    let answer = server.post("/validate/unknown", &config_map("u1")).await;
    assert_eq!(answer.code, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_denial_is_the_status_of_the_api_server() {
    let server = server(&[policy("p", "false")]);
    let answer = server.post("/validate", &config_map("u1")).await;
    let message = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: false";
    assert_eq!(
        answer.json["response"]["status"],
        json!({
            "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid",
            "message": format!("configmaps \"c\" is forbidden: {message}"),
            "details": {"name": "c", "kind": "configmaps", "causes": [{"message": message}]},
        })
    );
}

#[tokio::test]
async fn definitions_are_enforced_with_the_causes_of_the_api_server() {
    let server = server(&[support::definition()]);
    let widget = |spec: &Value, old: Option<&Value>| {
        let object = |spec: &Value| {
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"},
                   "spec": spec})
        };
        review(&json!({
            "uid": "u1", "operation": if old.is_some() { "UPDATE" } else { "CREATE" }, "name": "w", "namespace": "n",
            "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
            "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
            "object": object(spec), "oldObject": old.map(object),
        }))
    };
    let answer = server.post("/validate", &widget(&json!({"size": 7, "colour": 1}), None)).await;
    let status = &answer.json["response"]["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    let text =
        "spec.colour: Invalid value: \"integer\": spec.colour in body must be of type string: \"integer\"";
    assert!(status["message"].as_str().unwrap().contains(text), "{status}");
    assert_eq!(status["details"]["kind"], "Widget");
    assert_eq!(status["details"]["causes"][0]["field"], "spec.colour");

    let answer = server.post("/validate", &widget(&json!({"size": 7}), None)).await;
    let status = &answer.json["response"]["status"];
    assert_eq!(
        status["message"],
        "Widget.example.com \"w\" is invalid: spec: Invalid value: size must be even"
    );
    let old = json!({"size": 2});
    let answer = server.post("/validate", &widget(&json!({"size": 4}), Some(&old))).await;
    assert_eq!(answer.json["response"]["allowed"], true, "{}", answer.json);
    let answer = server.post("/validate/any", &widget(&json!({"size": 7}), None)).await;
    assert_eq!(answer.code, StatusCode::NOT_FOUND);
}

/// Where a file is all there is, selecting namespaces by name works, and by other labels fails rather than guesses.
#[tokio::test]
async fn namespaces_are_known_by_name_without_a_cluster() {
    for (selector, allowed) in [
        (json!({"matchLabels": {"kubernetes.io/metadata.name": "n"}}), false),
        (json!({"matchLabels": {"kubernetes.io/metadata.name": "other"}}), true),
        (
            json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["n"]}]}),
            true,
        ),
        (json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}), false),
        (json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}), false),
    ] {
        let mut documents = policy("p", "false");
        documents[0]["spec"]["matchConstraints"]["namespaceSelector"] = selector.clone();
        let server = server(&[documents]);
        let answer = server.post("/validate", &config_map("u1")).await;
        assert_eq!(answer.json["response"]["allowed"], allowed, "{selector}: {}", answer.json);
        assert!(server.metrics().contains("admit_evaluation_cost_count 1\n"), "{}", server.metrics());
    }
}
