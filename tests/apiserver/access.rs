//! Tokens, roles and impersonation: who may do what, and in which words others are told that they may not.

use std::sync::Arc;

use admit_apiserver::{Identity, LogError, LogOptions, LogStream, PodLogs, Server};
use axum::body::Body;
use futures::StreamExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{answer, delete, get, post};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends a request with these headers as `identity`; answers the code and the message, or the body.
async fn ask(
    server: &Server,
    identity: Option<&str>,
    request: (&str, &str, Option<Value>),
    headers: &[(&str, &str)],
) -> (u16, String) {
    let (method, path, body) = request;
    let mut built = Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        built = built.header(*name, *value);
    }
    if let Some(user) = identity {
        built = built.extension(Identity::new(user, []));
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let response = server.router().oneshot(built.body(body).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = answer["message"].as_str().map(str::to_owned);
    (status, message.unwrap_or_else(|| answer.to_string()))
}

fn rule(verbs: &[&str], resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [""], "resources": resources})
}

async fn grant(server: &Server, name: &str, subject: Value, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    assert_eq!(post(server, ROLES, &role).await.status, 201);
    let binding = json!({
        "metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    });
    assert_eq!(post(server, BINDINGS, &binding).await.status, 201);
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

/// The server says it, whatever was written.
#[tokio::test]
async fn a_signing_request_tells_all_of_its_creator() {
    let kinds: Value = serde_json::from_str(include_str!("kinds.json")).unwrap();
    let mut request = kinds["certificatesigningrequests.certificates.k8s.io"].clone();
    request["metadata"] = json!({"name": "a"});
    for (field, forged) in [("username", json!("eve")), ("uid", json!("e")), ("extra", json!({"e": ["e"]}))] {
        request["spec"][field] = forged;
    }
    let server = Server::builder().build().await.unwrap();
    let mut who = Identity::admin();
    who.uid = "u-1".to_owned();
    who.extra.insert("example.com/of".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
    let post = Request::post("/apis/certificates.k8s.io/v1/certificatesigningrequests")
        .header("content-type", "application/json")
        .extension(who.clone());
    let made =
        answer(server.router().oneshot(post.body(Body::from(request.to_string())).unwrap()).await.unwrap());
    let made = made.await;
    assert_eq!(made.status, 201, "{}", made.body);
    let spec = &made.body["spec"];
    assert_eq!((&spec["username"], &spec["uid"]), (&json!(who.username), &json!("u-1")), "{spec}");
    assert_eq!(
        (&spec["groups"], &spec["extra"]),
        (&json!(who.groups), &json!({"example.com/of": ["a", "b"]}))
    );
}

/// Whoever a token is meant for may ask about it, and who names nobody asks whether it is meant for the server.
#[tokio::test]
async fn a_token_is_reviewed_for_whom_it_is_meant() {
    const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
    let server = Server::builder().build().await.unwrap();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(post(&server, accounts, &json!({"metadata": {"name": "joe"}})).await.status, 201);
    let token = async |audiences: &[&str]| {
        let asked = json!({"spec": {"audiences": audiences}});
        let answer = post(&server, &format!("{accounts}/joe/token"), &asked).await.body;
        answer["status"]["token"].as_str().unwrap().to_owned()
    };
    let review = async |token: &str, audiences: &[&str]| {
        let asked = json!({"spec": {"token": token, "audiences": audiences}});
        post(&server, REVIEWS, &asked).await.body["status"].clone()
    };
    let (own, vault) = (token(&[]).await, token(&["vault", "other"]).await);
    let known = review(&own, &[]).await;
    let here = known["audiences"].as_array().unwrap().clone();
    assert_eq!((&known["authenticated"], here.len()), (&json!(true), 1), "{known}");
    assert_eq!(known["user"]["username"], "system:serviceaccount:default:joe");
    let here = here[0].as_str().unwrap();
    let mixed = token(&[here, "vault"]).await;

    for (token, audiences, shared) in [
        (&own, &["vault", here][..], &[here][..]),
        (&vault, &["vault"], &["vault"]),
        (&vault, &["third", "other", "vault"], &["other", "vault"]),
        (&mixed, &[], &[here]),
        (&mixed, &["vault"], &["vault"]),
    ] {
        let status = review(token, audiences).await;
        assert_eq!(status["authenticated"], true, "{audiences:?}: {status}");
        assert_eq!(status["audiences"], json!(shared), "{audiences:?}");
    }
    for (token, audiences, error) in [
        (
            vault.as_str(),
            &[][..],
            format!(
                r#"[invalid bearer token, token audiences ["vault" "other"] is invalid for the target audiences ["{here}"]]"#
            ),
        ),
        (
            &own,
            &["vault"],
            format!(
                r#"[invalid bearer token, token audiences ["{here}"] is invalid for the target audiences ["vault"]]"#
            ),
        ),
        ("none", &["vault"], "invalid bearer token".to_owned()),
    ] {
        let status = review(token, audiences).await;
        assert_eq!(status, json!({"user": {}, "error": error}), "{audiences:?}");
    }
    // For another it opens nothing here.
    let bearer = [("authorization", &*format!("Bearer {vault}"))];
    let refused = ask(&server, None, ("GET", CONFIG_MAPS, None), &bearer).await;
    assert_eq!(refused, (401, "Unauthorized".to_owned()));
}

#[tokio::test]
async fn a_token_acts_as_its_account_for_as_long_as_the_account_is_there() {
    let server = Server::builder().build().await.unwrap();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(post(&server, accounts, &json!({"metadata": {"name": "joe"}})).await.status, 201);
    let asked = post(&server, &format!("{accounts}/joe/token"), &json!({"spec": {}})).await;
    assert_eq!((asked.status, &asked.body["spec"]["expirationSeconds"]), (201, &json!(3600)));
    let token = format!("Bearer {}", asked.body["status"]["token"].as_str().unwrap());
    let bearer = [("authorization", token.as_str())];
    let list = || ask(&server, None, ("GET", CONFIG_MAPS, None), &bearer);
    let refusal = "configmaps is forbidden: User \"system:serviceaccount:default:joe\" cannot list resource \"configmaps\" \
                   in API group \"\" in the namespace \"default\"";
    assert_eq!(list().await, (403, refusal.to_owned()));
    let subject = json!({"kind": "ServiceAccount", "name": "joe", "namespace": "default"});
    grant(&server, "readers", subject, json!([rule(&["list"], &["configmaps"])])).await;
    assert_eq!(list().await.0, 200);
    assert_eq!(delete(&server, &format!("{BINDINGS}/readers"), None).await.status, 200);
    assert_eq!(list().await.0, 403);
    assert_eq!(delete(&server, &format!("{accounts}/joe"), None).await.status, 200);
    assert_eq!(list().await, (401, "Unauthorized".to_owned()));
    let short = json!({"spec": {"expirationSeconds": 5}});
    assert_eq!(post(&server, &format!("{accounts}/joe/token"), &short).await.status, 404);
    assert_eq!(post(&server, accounts, &json!({"metadata": {"name": "joe"}})).await.status, 201);
    assert_eq!(list().await.0, 401, "another account of the same name");
    let refused = post(&server, &format!("{accounts}/joe/token"), &short).await;
    assert_eq!(
        (refused.status, refused.message()),
        (
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 5: may not specify \
             a duration less than 10 minutes"
        )
    );
}

#[tokio::test]
async fn nobody_grants_more_than_it_has() {
    let server = Server::builder().build().await.unwrap();
    let writer = json!([
        rule(&["get", "list"], &["pods"]),
        {"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}
    ]);
    grant(&server, "writer", user("ann"), writer).await;
    let role =
        |name: &str, verbs: &[&str]| json!({"metadata": {"name": name}, "rules": [rule(verbs, &["pods"])]});
    let create = |path: &'static str, body: Value| {
        let server = server.clone();
        async move { ask(&server, Some("ann"), ("POST", path, Some(body)), &[]).await }
    };
    assert_eq!(create(ROLES, role("own", &["get"])).await.0, 201);
    assert_eq!(
        create(ROLES, role("more", &["get", "delete"])).await,
        (
            403,
            "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"ann\" (groups=[\"system:authenticated\"]) is \
             attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], \
             Verbs:[\"delete\"]}"
                .to_owned()
        )
    );
    let binding = |kind: &str, name: &str| {
        json!({"metadata": {"name": name}, "subjects": [user("bob")],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}})
    };
    assert_eq!(create(BINDINGS, binding("Role", "own")).await.0, 201);
    assert_eq!(create(BINDINGS, binding("ClusterRole", "cluster-admin")).await.0, 403);
    let gone = "rolebindings.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(create(BINDINGS, binding("Role", "gone")).await, (404, gone.to_owned()));
    // Two kilobytes that are 24 million permissions, and as many rules as fit into one role.
    let many = |prefix: &str| (0..70).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>();
    let wide = json!({"verbs": many("v"), "apiGroups": many("g"), "resources": many("r"), "resourceNames": many("n")});
    let (code, told) = create(ROLES, json!({"metadata": {"name": "wide"}, "rules": [wide]})).await;
    assert!(code == 403 && told.ends_with("\nand 24000000 more"), "{code} {}", &told[told.len() - 100..]);
    let rules: Vec<Value> = (0..20_000).map(|at| rule(&["get"], &[&format!("r{at}")])).collect();
    let (code, told) = create(ROLES, json!({"metadata": {"name": "long"}, "rules": rules})).await;
    assert_eq!((code, told.lines().count()), (403, 10_002), "{}", &told[told.len() - 100..]);
    let bind = json!([{"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}]);
    grant(&server, "binder", user("ann"), bind).await;
    assert_eq!(create(BINDINGS, binding("ClusterRole", "cluster-admin")).await.0, 201);
}

#[tokio::test]
async fn impersonation_takes_permission() {
    let server = Server::builder().build().await.unwrap();
    let as_jane = [("impersonate-user", "jane"), ("impersonate-group", "devs")];
    let list = || ask(&server, Some("ann"), ("GET", CONFIG_MAPS, None), &as_jane);
    let refusal = "configmaps is forbidden: User \"ann\" cannot impersonate-on:user-info:list resource \"configmaps\" in API \
                   group \"\" in the namespace \"default\"";
    assert_eq!(list().await, (403, refusal.to_owned()));
    let role =
        json!({"metadata": {"name": "actor"}, "rules": [rule(&["impersonate"], &["users", "groups"])]});
    assert_eq!(post(&server, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.status, 201);
    let binding = json!({"metadata": {"name": "actor"}, "subjects": [user("ann")],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "actor"}});
    assert_eq!(
        post(&server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.status,
        201
    );
    let jane = "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the \
                namespace \"default\"";
    assert_eq!(list().await, (403, jane.to_owned()));
    let nobody = ask(&server, Some("ann"), ("GET", CONFIG_MAPS, None), &as_jane[1..]).await;
    assert_eq!(nobody.0, 400);
}

#[tokio::test]
async fn expressions_ask_the_same_roles() {
    let server = Server::builder().build().await.unwrap();
    grant(&server, "writer", user("ann"), json!([rule(&["create"], &["configmaps"])])).await;
    grant(&server, "paints", user("bob"), json!([rule(&["create", "paint"], &["configmaps"])])).await;
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "painters"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"]}]},
        "validations": [{"expression": "authorizer.requestResource.check('paint').allowed()", "message": "cannot paint"}]}});
    assert_eq!(post(&server, &format!("{admission}/validatingadmissionpolicies"), &policy).await.status, 201);
    let binding = json!({"metadata": {"name": "painters"}, "spec": {"policyName": "painters", "validationActions": ["Deny"]}});
    let bindings = format!("{admission}/validatingadmissionpolicybindings");
    assert_eq!(post(&server, &bindings, &binding).await.status, 201);
    let create = |who: &'static str| {
        let body = json!({"metadata": {"name": format!("of-{who}")}});
        let server = server.clone();
        async move { ask(&server, Some(who), ("POST", CONFIG_MAPS, Some(body)), &[]).await }
    };
    assert_eq!(create("bob").await.0, 201);
    let (status, message) = create("ann").await;
    assert_eq!(status, 422);
    assert!(message.contains("cannot paint"), "{message}");
}

#[derive(Debug)]
struct NoText;

impl PodLogs for NoText {
    fn open(&self, _: &Value, options: LogOptions) -> Result<LogStream, LogError> {
        match options.previous {
            true => Err(LogError::Refused("previous".to_owned())),
            false => Ok(futures::stream::empty().boxed()),
        }
    }
}

#[tokio::test]
async fn pods_without_a_node_have_empty_logs_and_no_streams() {
    let server = Server::builder().build().await.unwrap();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, node: Value, containers: &[&str]| {
        let containers: Vec<Value> =
            containers.iter().map(|name| json!({"name": name, "image": "registry.example/x:1"})).collect();
        json!({"metadata": {"name": name}, "spec": {"containers": containers, "nodeName": node}})
    };
    for body in [pod("free", Value::Null, &["a", "b"]), pod("bound", "n".into(), &["a"])] {
        assert_eq!(post(&server, pods, &body).await.status, 201);
    }
    server.set_pod_logs(Arc::new(NoText));
    let cases = [
        ("free/log?container=a", 204, ""),
        ("free/log", 400, "a container name must be specified for pod free, choose one of: [a b]"),
        ("free/log?container=c", 400, "container c is not valid for pod free"),
        ("free/exec?container=a&command=ls", 400, "pod free does not have a host assigned"),
        ("bound/portforward", 404, "pods \"n\" not found"),
        ("bound/log", 200, ""),
        ("bound/log?previous=true", 400, "previous"),
        (
            "bound/log?tailLines=-1&sinceSeconds=0&limitBytes=0",
            422,
            "PodLogOptions \"bound\" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, \
             limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]",
        ),
    ];
    for (path, status, message) in cases {
        let answer = get(&server, &format!("{pods}/{path}")).await;
        assert_eq!((answer.status, answer.message()), (status, message), "{path}");
    }
}
