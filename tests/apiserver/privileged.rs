//! Servers that refuse privileged containers, in pods and in every kind that has a template of them.

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{get, merge, post};

const WHY: &str = "Forbidden: disallowed by cluster policy";

fn spec(privileged: bool) -> Value {
    json!({"restartPolicy": "Always", "containers": [
        {"name": "a", "image": "a:1"},
        {"name": "b", "image": "b:1", "securityContext": {"privileged": privileged}}
    ]})
}

fn template(privileged: bool) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": spec(privileged)})
}

fn workload(privileged: bool) -> Value {
    let selector = json!({"matchLabels": {"app": "a"}});
    json!({"metadata": {"name": "a"}, "spec": {"selector": selector, "template": template(privileged)}})
}

/// Where an object with a privileged container is sent, the object, and where the field is.
fn requests() -> Vec<(&'static str, Value, &'static str)> {
    const DEFAULT: &str = "spec.template.spec.containers[1].securityContext.privileged";
    let mut job = template(true);
    job["spec"]["restartPolicy"] = "Never".into();
    let mut stateful = workload(true);
    stateful["spec"]["serviceName"] = "a".into();
    let mut first = spec(false);
    first["initContainers"] = json!([{"name": "c", "image": "c:1", "securityContext": {"privileged": true}}]);
    vec![
        (
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "a"}, "spec": spec(true)}),
            "spec.containers[1].securityContext.privileged",
        ),
        (
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "b"}, "spec": first}),
            "spec.initContainers[0].securityContext.privileged",
        ),
        (
            "/api/v1/namespaces/default/podtemplates",
            json!({"metadata": {"name": "a"}, "template": template(true)}),
            "template.spec.containers[1].securityContext.privileged",
        ),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            json!({"metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}, "template": template(true)}}),
            DEFAULT,
        ),
        ("/apis/apps/v1/namespaces/default/deployments", workload(true), DEFAULT),
        ("/apis/apps/v1/namespaces/default/replicasets", workload(true), DEFAULT),
        ("/apis/apps/v1/namespaces/default/daemonsets", workload(true), DEFAULT),
        ("/apis/apps/v1/namespaces/default/statefulsets", stateful, DEFAULT),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": {"name": "a"}, "spec": {"template": job}}),
            DEFAULT,
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"metadata": {"name": "a"}, "spec": {"schedule": "0 0 * * *",
                "jobTemplate": {"spec": {"template": job}}}}),
            "spec.jobTemplate.spec.template.spec.containers[1].securityContext.privileged",
        ),
    ]
}

#[tokio::test]
async fn privileged_containers_are_refused_wherever_pods_are_described() {
    let strict = Server::builder().allow_privileged(false).build().await.unwrap();
    let fork = strict.fork().await;
    let lenient = Server::builder().build().await.unwrap();
    for (path, object, field) in requests() {
        for server in [&strict, &fork] {
            let refused = post(server, path, &object).await;
            assert_eq!(refused.status, 422, "{path}: {refused:?}");
            assert_eq!(
                refused.body["details"]["causes"],
                json!([{"reason": "FieldValueForbidden", "message": WHY, "field": field}]),
                "{path}"
            );
            assert!(refused.message().ends_with(&format!("is invalid: {field}: {WHY}")), "{refused:?}");
        }
        let taken = post(&lenient, path, &object).await;
        assert_eq!(taken.status, 201, "{path}: {taken:?}");
    }
}

#[tokio::test]
async fn a_template_that_becomes_privileged_is_refused_and_stays_as_it_was() {
    const PATH: &str = "/apis/apps/v1/namespaces/default/deployments";
    let server = Server::builder().allow_privileged(false).build().await.unwrap();
    assert_eq!(post(&server, PATH, &workload(false)).await.status, 201);
    let change = json!({"spec": {"template": template(true)}});
    let refused = merge(&server, &format!("{PATH}/a"), &change).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.message().contains(WHY), "{refused:?}");
    let kept = get(&server, &format!("{PATH}/a")).await.body;
    assert_eq!(
        kept.pointer("/spec/template/spec/containers/1/securityContext/privileged"),
        Some(&json!(false))
    );
}
