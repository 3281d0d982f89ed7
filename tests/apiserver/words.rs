//! Messages are in the words of Go and of Kubernetes: what they quote, and which names and quantities they let pass.

use admit_apiserver::Server;
use serde_json::json;

use crate::harness::{get, post};

#[tokio::test]
async fn what_does_not_print_is_escaped_as_go_escapes_it() {
    let server = Server::builder().build().await.unwrap();
    let service = json!({"metadata": {"name": "s"},
        "spec": {"type": "Cluster\u{200b}IP", "ports": [{"port": 80}]}});
    let refused = post(&server, "/api/v1/namespaces/default/services", &service).await;
    let words = r#"spec.type: Unsupported value: "Cluster\u200bIP": supported values: "ClusterIP""#;
    assert!(refused.message().contains(words), "{}", refused.message());
    let absent = get(&server, "/api/v1/namespaces/default/configmaps/%E2%80%8Bx").await;
    assert_eq!(absent.message(), r#"configmaps "\u200bx" not found"#);
    let late = get(&server, "/api/v1/namespaces/default/configmaps?timeout=1%E2%80%8Bs").await;
    assert!(
        late.message().contains(r#"unknown unit "\xe2\x80\x8bs" in duration "1\xe2\x80\x8bs""#),
        "{}",
        late.message()
    );
}

/// A secret's value may end in bits that belong to no byte: Go reads past them.
#[tokio::test]
async fn base64_is_read_as_go_reads_it() {
    let server = Server::builder().build().await.unwrap();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |text: &str| json!({"metadata": {"name": "s"}, "data": {"k": text}});
    let refused = post(&server, secrets, &secret("aGVs\n\nbG8")).await;
    assert!(refused.message().contains("illegal base64 data at input byte 6"), "{}", refused.message());
    let made = post(&server, secrets, &secret("aGV=")).await;
    assert_eq!((made.status, &made.body["data"]["k"]), (201, &json!("aGU=")));
}

/// The beginning of a name is judged with something in the place of what will follow its dash.
#[tokio::test]
async fn beginnings_of_names_are_judged_as_upstream_masks_them() {
    let server = Server::builder().build().await.unwrap();
    let named = |prefix: &str| json!({"metadata": {"generateName": prefix}});
    let maps = "/api/v1/namespaces/default/configmaps";
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    for (path, prefix) in [(maps, "a-"), ("/api/v1/namespaces", "n-"), (roles, "..")] {
        let answer = post(&server, path, &named(prefix)).await;
        assert_eq!(answer.status, 201, "{prefix}: {}", answer.message());
    }
    // What the mask hides is found in the name that is made.
    for (prefix, field) in [("ab_-", "metadata.name"), ("a_b-", "metadata.generateName")] {
        let answer = post(&server, maps, &named(prefix)).await;
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        assert_eq!(causes[0]["field"], field, "{}", answer.message());
        assert_eq!(causes.len(), if prefix == "ab_-" { 1 } else { 2 }, "{}", answer.message());
    }
}

#[tokio::test]
async fn quantities_are_of_any_size_and_never_rounded_down() {
    let server = Server::builder().build().await.unwrap();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    for (name, written, kept) in [
        ("large", "1e30", "1e30"),
        ("small", "0.0000000001", "1n"),
        ("half", "0.5", "500m"),
        ("kept", "1500m", "1500m"),
    ] {
        let quota = json!({"metadata": {"name": name}, "spec": {"hard": {"cpu": written}}});
        let answer = post(&server, quotas, &quota).await;
        assert_eq!(
            (answer.status, &answer.body["spec"]["hard"]["cpu"]),
            (201, &json!(kept)),
            "{}",
            answer.message()
        );
    }
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1Kii"}}});
    let answer = post(&server, quotas, &quota).await;
    assert!(answer.message().contains("unable to parse quantity's suffix"), "{}", answer.message());
}
