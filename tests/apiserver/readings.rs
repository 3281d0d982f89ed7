//! What a request says is read once: what roles are asked about is what is done.

use admit_apiserver::{Identity, Server};
use axum::body::Body;
use http::{HeaderValue, Request};
use serde_json::json;
use tower::ServiceExt as _;

use crate::harness::post;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

/// A server on which `ann` may do this to secrets.
async fn server_with(verbs: &[&str], names: &[&str]) -> Server {
    let server = Server::builder().build().await.unwrap();
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": verbs, "resourceNames": names});
    let role = json!({"metadata": {"name": "some"}, "rules": [rule]});
    assert_eq!(post(&server, &format!("{RBAC}/roles"), &role).await.status, 201);
    let binding = json!({"metadata": {"name": "some"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"}});
    assert_eq!(post(&server, &format!("{RBAC}/rolebindings"), &binding).await.status, 201);
    for name in ["one", "two"] {
        assert_eq!(post(&server, SECRETS, &json!({"metadata": {"name": name}})).await.status, 201);
    }
    server
}

/// The code of the answer to `ann`, and its media type; the body is not waited for.
async fn ask(server: &Server, method: &str, path: &str) -> u16 {
    let request = Request::builder().method(method).uri(path).extension(Identity::new("ann", []));
    let request = request.header("content-type", "application/json");
    let body = match method {
        "POST" => Body::from(json!({"metadata": {"name": "three"}}).to_string()),
        _ => Body::empty(),
    };
    server.router().oneshot(request.body(body).unwrap()).await.unwrap().status().as_u16()
}

/// Spellings of a query by which a list becomes a watch.
const WATCHES: &[&str] = &[
    "watch=true",
    "watch=1",
    "watch=True",
    "watch=TRUE",
    "watch=tRuE",
    "watch=yes",
    "watch=t",
    "watch=on",
    "watch=01",
    "watch=f",
    "watch=no",
    "watch=",
    "watch",
    "watch=%20",
    "watch=00",
    "watch=false%20",
    "%77atch=1",
    "watch=1&watch=0",
    "&watch=1",
    "limit=x&watch=1",
];

/// And those by which it stays one.
const LISTS: &[&str] =
    &["", "watch=0", "watch=false", "watch=False", "watch=FALSE", "watch=0&watch=1", "Watch=1", "watch%zz=1"];

#[tokio::test]
async fn a_list_that_is_done_as_a_watch_takes_the_right_to_watch() {
    let lists = server_with(&["list"], &[]).await;
    let watches = server_with(&["watch"], &[]).await;
    for query in WATCHES {
        let path = format!("{SECRETS}?timeoutSeconds=1&{query}");
        assert_eq!(ask(&lists, "GET", &path).await, 403, "{query}");
        let expected = if query.contains("limit=x") { 400 } else { 200 };
        assert_eq!(ask(&watches, "GET", &path).await, expected, "{query}");
    }
    for query in LISTS {
        let path = format!("{SECRETS}?timeoutSeconds=1&{query}");
        assert_eq!(ask(&lists, "GET", &path).await, 200, "{query}");
        assert_eq!(ask(&watches, "GET", &path).await, 403, "{query}");
    }
}

#[tokio::test]
async fn below_the_old_prefix_there_are_watches_alone() {
    let watch = "/api/v1/watch/namespaces/default/secrets";
    let all = server_with(&["list", "get", "create", "delete", "deletecollection"], &[]).await;
    for (method, path) in
        [("GET", watch.to_owned()), ("POST", watch.to_owned()), ("DELETE", format!("{watch}/one"))]
    {
        assert_eq!(ask(&all, method, &path).await, 403, "{method}");
    }
    let watches = server_with(&["watch"], &[]).await;
    for (method, path, status) in [
        ("GET", watch.to_owned(), 200),
        ("GET", format!("{watch}/one"), 200),
        ("POST", watch.to_owned(), 405),
        ("DELETE", watch.to_owned(), 405),
        ("DELETE", format!("{watch}/one"), 405),
    ] {
        assert_eq!(
            ask(&watches, method, &format!("{path}?timeoutSeconds=1")).await,
            status,
            "{method} {path}"
        );
    }
}

/// A role may name the objects that may be listed and watched, one by one.
#[tokio::test]
async fn a_selector_of_one_name_is_that_name_to_roles() {
    let server = server_with(&["list", "watch"], &["one"]).await;
    for (selector, status) in [
        ("metadata.name=one", 200),
        ("metadata.name==one", 200),
        ("metadata.namespace=default,metadata.name=one", 200),
        ("metadata.name=two", 403),
        ("metadata.name!=one", 403),
        ("metadata.name=two,metadata.name=one", 403),
        ("", 403),
    ] {
        for watch in ["0", "1"] {
            let path = format!("{SECRETS}?timeoutSeconds=1&watch={watch}&fieldSelector={selector}");
            assert_eq!(ask(&server, "GET", &path).await, status, "{path}");
        }
    }
}

/// Without its headers a request would be done with the caller's own rights, which are more.
#[tokio::test]
async fn headers_that_are_no_ascii_count() {
    let server = server_with(&["get"], &[]).await;
    for (name, value) in [
        ("impersonate-user", "jörg".as_bytes()),
        ("impersonate-user", b"\xff"),
        ("impersonate-group", "wärter".as_bytes()),
        ("authorization", "Bearer tökchen".as_bytes()),
        ("authorization", b"bearer nobody"),
        ("authorization", b"BEARER nobody"),
    ] {
        // A caller in process is the administrator.
        let value = HeaderValue::from_bytes(value).unwrap();
        let request = Request::builder().uri(SECRETS).header(name, value).body(Body::empty()).unwrap();
        let status = server.router().oneshot(request).await.unwrap().status().as_u16();
        let expected = match name {
            "impersonate-user" => 403,
            "impersonate-group" => 400,
            _ => 401,
        };
        assert_eq!(status, expected, "{name}");
    }
}
