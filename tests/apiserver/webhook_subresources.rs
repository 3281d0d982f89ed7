//! What webhooks are asked about subresources that have kinds of their own: once, and as kube-apiserver v1.36.2 asks.

use serde_json::{Value, json};

use crate::harness::{merge, post};
use crate::webhook::{Script, asking};

fn asked(script: &Script) -> Vec<Value> {
    let about = |review: &Value| {
        let request = &review["request"];
        let kind = ["group", "version", "kind"].map(|part| request["kind"][part].as_str().unwrap());
        json!([
            request["operation"],
            kind.join("/"),
            request["subResource"],
            request["object"]["kind"],
            request["oldObject"]["kind"]
        ])
    };
    script.asked().iter().map(about).collect()
}

#[tokio::test]
async fn each_is_asked_about_once_in_its_own_kind() {
    let script = Script::default();
    script.answers(json!({"allowed": true}));
    let rules = json!({"rules": [{"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["deployments/scale", "pods", "pods/binding", "pods/eviction"]}]});
    let server = asking(&script, "/validate", &rules).await;

    let spec = json!({"containers": [{"name": "c", "image": "registry.example/x:1"}]});
    let labels = json!({"app": "web"});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(post(&server, deployments, &deployment).await.status, 201);
    let scaled = merge(&server, &format!("{deployments}/web/scale"), &json!({"spec": {"replicas": 2}})).await;
    assert_eq!(scaled.status, 200, "{scaled:?}");
    assert_eq!(asked(&script), [json!(["UPDATE", "autoscaling/v1/Scale", "scale", "Scale", "Scale"])]);

    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    assert_eq!(post(&server, pods, &pod).await.status, 201);
    assert_eq!(asked(&script), [json!(["CREATE", "/v1/Pod", null, "Pod", null])]);
    for (subresource, object, kind) in [
        (
            "binding",
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
            "/v1/Binding",
        ),
        (
            "eviction",
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
            "policy/v1/Eviction",
        ),
    ] {
        let done = post(&server, &format!("{pods}/p/{subresource}"), &object).await;
        assert_eq!(done.status, 201, "{done:?}");
        let own = kind.rsplit('/').next().unwrap();
        assert_eq!(asked(&script), [json!(["CREATE", kind, subresource, own, null])]);
    }
}
