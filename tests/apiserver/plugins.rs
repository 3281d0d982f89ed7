//! The choice of admission plugins, and what follows from it for a cluster.

use admit_apiserver::{AdmissionPlugins, Server};
use serde_json::{Value, json};

use crate::harness::{delete, get, merge, post};

async fn without(plugin: &str) -> Server {
    let plugins = AdmissionPlugins::new([""; 0], [plugin]).unwrap();
    Server::builder().admission_plugins(plugins).root_ca("PEM").build().await.unwrap()
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_plugin_that_is_disabled_does_nothing() {
    let server = without("ServiceAccount").await;
    let made = post(&server, PODS, &pod("a")).await;
    assert_eq!((made.status, made.body["spec"].get("serviceAccountName")), (201, None), "{made:?}");
    let accounts = get(&server, "/api/v1/serviceaccounts").await;
    assert_eq!(accounts.body["items"], json!([]));
    assert_eq!(get(&server, "/api/v1/configmaps").await.body["items"], json!([]));

    let server = without("DefaultTolerationSeconds").await;
    assert_eq!(post(&server, PODS, &pod("a")).await.body["spec"].get("tolerations"), None);
    let server = without("Priority").await;
    let mut high = pod("a");
    high["spec"]["priorityClassName"] = "nope".into();
    assert_eq!(post(&server, PODS, &high).await.status, 201);
    let server = without("NamespaceLifecycle").await;
    assert_eq!(delete(&server, "/api/v1/namespaces/default", None).await.status, 200);
}

#[tokio::test]
async fn policies_and_webhooks_are_plugins_too() {
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rules = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]}]});
    let policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": rules,
        "validations": [{"expression": "false"}]}});
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    for (plugin, status) in [("ValidatingAdmissionPolicy", 201), ("ServiceAccount", 422)] {
        let server = without(plugin).await;
        post(&server, &format!("{group}/validatingadmissionpolicies"), &policy).await;
        post(&server, &format!("{group}/validatingadmissionpolicybindings"), &binding).await;
        let made =
            post(&server, "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "a"}})).await;
        assert_eq!(made.status, status, "{plugin}: {made:?}");
    }
}

#[tokio::test]
async fn each_namespace_knows_the_authority_of_the_server() {
    let server = Server::builder().root_ca("PEM").build().await.unwrap();
    post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    for namespace in ["default", "kube-system", "n"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        let map = get(&server, &path).await;
        assert_eq!(map.body["data"], json!({"ca.crt": "PEM"}), "{map:?}");
        assert_eq!(map.body["metadata"]["managedFields"][0]["manager"], "kube-controller-manager");
        delete(&server, &path, None).await;
        assert_eq!(get(&server, &path).await.status, 200, "it comes back");
        merge(&server, &path, &json!({"data": {"ca.crt": "other", "more": "x"}})).await;
        assert_eq!(get(&server, &path).await.body["data"], json!({"ca.crt": "PEM"}), "and is what it was");
    }
    let renewed = Server::builder().store(server.store().clone()).root_ca("NEW").build().await.unwrap();
    let path = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt";
    assert_eq!(get(&renewed, path).await.body["data"], json!({"ca.crt": "NEW"}));
    // A namespace that goes keeps what it has until it is emptied, and gets nothing new.
    delete(&server, "/api/v1/namespaces/n", None).await;
    server.sweep().await.unwrap();
    server.sweep().await.unwrap();
    assert_eq!(get(&server, "/api/v1/namespaces/n").await.status, 404);
}

#[tokio::test]
async fn what_a_webhook_would_see_is_what_plugins_made() {
    let server = Server::builder().build().await.unwrap();
    let secrets = json!({"imagePullSecrets": [{"name": "p"}]});
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    assert_eq!(merge(&server, account, &secrets).await.status, 200);
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"]}]},
        "validations": [{"expression": "object.spec.imagePullSecrets[0].name == 'p' && object.spec.priority == 0 && \
            object.spec.volumes.size() == 1", "message": "plugins come later"}]}});
    let group = "/apis/admissionregistration.k8s.io/v1";
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    post(&server, &format!("{group}/validatingadmissionpolicies"), &policy).await;
    post(&server, &format!("{group}/validatingadmissionpolicybindings"), &binding).await;
    let made = post(&server, PODS, &pod("a")).await;
    assert_eq!(made.status, 201, "{made:?}");
}
