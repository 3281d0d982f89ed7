//! Controllers of pods are typed, defaulted, checked and shown like the kinds that the server runs itself.

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{answer, get, merge, post, send};

/// A controller of `kind` whose pods have the label `app: a`.
fn controller(kind: &str, template_label: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": template_label}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/tool:1"}]}
            }
        }
    })
}

const KINDS: [(&str, &str, &str); 4] = [
    ("Deployment", "deployments", "/spec/strategy/rollingUpdate/maxSurge"),
    ("ReplicaSet", "replicasets", "/spec/replicas"),
    ("StatefulSet", "statefulsets", "/spec/updateStrategy/rollingUpdate/partition"),
    ("DaemonSet", "daemonsets", "/spec/updateStrategy/rollingUpdate/maxUnavailable"),
];

#[tokio::test]
async fn controllers_get_defaults_and_keep_their_selector() {
    let server = Server::builder().build().await.unwrap();
    for (kind, plural, default) in KINDS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        let made = post(&server, &path, &controller(kind, "a")).await;
        assert_eq!(made.status, 201, "{kind}: {made:?}");
        assert!(made.body.pointer(default).is_some(), "{kind}: no {default}");
        assert_eq!(made.body["metadata"]["generation"], 1, "{kind}");
        assert_eq!(made.body["spec"]["template"]["spec"]["restartPolicy"], "Always", "{kind}");

        let other = json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}});
        let refused = merge(&server, &format!("{path}/a"), &other).await;
        assert_eq!(refused.status, 422, "{kind}");
        let unknown = json!({"spec": {"bogus": 1}});
        let strict = merge(&server, &format!("{path}/a?fieldValidation=Strict"), &unknown).await;
        assert!(strict.message().ends_with("unknown field \"spec.bogus\""), "{kind}: {}", strict.message());
    }
}

#[tokio::test]
async fn a_selector_has_to_choose_the_pods_of_the_template() {
    let server = Server::builder().build().await.unwrap();
    for (kind, plural, _) in KINDS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        let refused = post(&server, &path, &controller(kind, "b")).await;
        let cause = &refused.body["details"]["causes"][0];
        assert_eq!(cause["field"], "spec.template.metadata.labels", "{kind}: {refused:?}");
        let mut never = controller(kind, "a");
        never["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
        let refused = post(&server, &path, &never).await;
        assert_eq!(refused.body["details"]["causes"][0]["reason"], "FieldValueNotSupported", "{kind}");
    }
}

#[tokio::test]
async fn a_cron_job_describes_jobs() {
    let server = Server::builder().build().await.unwrap();
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/tool:1"}]
        }}}}}
    });
    assert_eq!(post(&server, path, &job).await.status, 201);
    let stored = get(&server, &format!("{path}/tick")).await.body;
    assert_eq!(stored["spec"]["concurrencyPolicy"], "Allow");
    job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"] = json!([]);
    job["metadata"]["name"] = "empty".into();
    let refused = post(&server, path, &job).await;
    let field = "spec.jobTemplate.spec.template.spec.containers";
    assert_eq!(refused.body["details"]["causes"][0]["field"], field, "{refused:?}");
}

#[tokio::test]
async fn workloads_are_scaled_through_their_scale() {
    let server = Server::builder().build().await.unwrap();
    for (kind, plural, _) in KINDS.iter().filter(|(kind, ..)| *kind != "DaemonSet") {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        assert_eq!(post(&server, &path, &controller(kind, "a")).await.status, 201, "{kind}");
        let scale = get(&server, &format!("{path}/a/scale")).await.body;
        assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)), "{kind}");
        assert_eq!(scale["status"]["selector"], "app=a", "{kind}");
        let scaled = merge(&server, &format!("{path}/a/scale"), &json!({"spec": {"replicas": 3}})).await;
        assert_eq!((scaled.status, &scaled.body["spec"]["replicas"]), (200, &json!(3)), "{kind}");
        let object = get(&server, &format!("{path}/a")).await.body;
        assert_eq!(object["spec"]["replicas"], 3, "{kind}");
        assert_eq!(object["metadata"]["generation"], 2, "{kind}");
        let refused = merge(&server, &format!("{path}/a/scale"), &json!({"spec": {"replicas": -1}})).await;
        assert_eq!(refused.body["details"]["causes"][0]["field"], "spec.replicas", "{kind}");
    }
}

/// Those of a Deployment alone go on to what it makes, and so are a change of its own.
#[tokio::test]
async fn annotations_count_as_a_change_of_deployments() {
    let server = Server::builder().build().await.unwrap();
    for (kind, plural, _) in KINDS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        assert_eq!(post(&server, &path, &controller(kind, "a")).await.status, 201, "{kind}");
        for field in ["labels", "annotations"] {
            let patch = json!({"metadata": {field: {"note": "1"}}});
            merge(&server, &format!("{path}/a"), &patch).await;
        }
        let object = get(&server, &format!("{path}/a")).await.body;
        let generation = if kind == "Deployment" { 2 } else { 1 };
        assert_eq!(object["metadata"]["generation"], generation, "{kind}");
    }
}

#[tokio::test]
async fn a_scale_is_applied_by_those_who_own_it() {
    let server = Server::builder().build().await.unwrap();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"app": "web"});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "registry.example/x:1"}]}}
    }});
    assert_eq!(post(&server, path, &deployment).await.status, 201);
    let scale = |replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": replicas}});
    let apply = |query: &'static str, replicas: i64| {
        let server = server.clone();
        async move {
            let path = format!("{path}/web/scale?fieldManager=scaler{query}");
            answer(
                send(&server, "PATCH", &path, "application/apply-patch+yaml", Some(&scale(replicas))).await,
            )
            .await
        }
    };
    let conflict = apply("", 3).await;
    assert_eq!(
        (conflict.status, conflict.message()),
        (409, "Apply failed with 1 conflict: conflict with \"unknown\" using autoscaling/v1: .spec.replicas")
    );
    let forced = apply("&force=true", 3).await;
    assert_eq!(
        (forced.status, &forced.body["kind"], &forced.body["spec"]["replicas"]),
        (200, &json!("Scale"), &json!(3))
    );
    let whole = get(&server, &format!("{path}/web")).await.body;
    assert_eq!(whole["spec"]["replicas"], 3);
    let owner = |name: &str| {
        let entries = whole["metadata"]["managedFields"].as_array().unwrap();
        entries.iter().find(|entry| entry["manager"] == name).cloned().unwrap_or_default()
    };
    let scaler = owner("scaler");
    assert_eq!((&scaler["operation"], &scaler["subresource"]), (&json!("Apply"), &json!("scale")));
    assert_eq!(scaler["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(owner("unknown")["fieldsV1"]["f:spec"].get("f:replicas"), None);
    assert_eq!(apply("", 4).await.status, 200);
}

#[tokio::test]
async fn a_service_reaches_the_port_that_it_has() {
    let server = Server::builder().build().await.unwrap();
    let services = "/api/v1/namespaces/default/services";
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let made = post(&server, services, &service).await;
    assert_eq!((made.status, &made.body["spec"]["ports"][0]["targetPort"]), (201, &json!(80)), "{made:?}");
    let named =
        json!({"metadata": {"name": "named"}, "spec": {"ports": [{"port": 80, "targetPort": "http"}]}});
    assert_eq!(post(&server, services, &named).await.body["spec"]["ports"][0]["targetPort"], "http");
    let changed =
        merge(&server, &format!("{services}/web"), &json!({"spec": {"ports": [{"port": 0}]}})).await;
    assert_eq!(
        changed.message(),
        "Service \"web\" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, \
         spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]"
    );
}

#[tokio::test]
async fn a_service_keeps_its_address() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let server = Server::builder().build().await.unwrap();
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = post(&server, SERVICES, &service).await.body;
    let own = made["spec"]["clusterIP"].clone();
    let path = format!("{SERVICES}/s");
    let ports = json!({"spec": {"ports": [{"port": 81}]}});
    assert_eq!(merge(&server, &path, &ports).await.body["spec"]["clusterIP"], own);
    let replaced = send(&server, "PUT", &path, "application/json", Some(&service)).await;
    assert_eq!(answer(replaced).await.body["spec"]["clusterIP"], own, "nothing is said of it");
    let other = json!({"spec": {"clusterIP": "10.1.2.3", "clusterIPs": ["10.1.2.3"]}});
    let refused = merge(&server, &path, &other).await;
    let cause = &refused.body["details"]["causes"][0];
    assert_eq!((refused.status, &cause["field"]), (422, &json!("spec.clusterIPs[0]")), "{refused:?}");
    let half = merge(&server, &path, &json!({"spec": {"clusterIP": "10.1.2.3"}})).await;
    assert_eq!(
        half.body["details"]["causes"], refused.body["details"]["causes"],
        "one field stands for both"
    );
}

/// By the cases of `defaults.json`: a path, the spec that is sent, where to look, and what stands there.
#[tokio::test]
async fn what_is_left_out_follows_from_what_is_said() {
    let cases: Vec<(String, Value, String, Value)> =
        serde_json::from_str(include_str!("defaults.json")).unwrap();
    let server = Server::builder().build().await.unwrap();
    for (path, spec, pointer, expected) in cases {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        let made = post(&server, &format!("{path}?dryRun=All"), &object).await;
        assert_eq!(made.status, 201, "{path}: {made:?}");
        assert_eq!(made.body.pointer(&pointer).unwrap_or(&Value::Null), &expected, "{path}: {pointer}");
    }
}

#[tokio::test]
async fn budgets_may_have_any_name_that_a_path_may_have() {
    let server = Server::builder().build().await.unwrap();
    let budget = json!({"metadata": {"name": "Upper:Case"}, "spec": {"maxUnavailable": 1}});
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    assert_eq!(post(&server, path, &budget).await.status, 201);
}

/// A workload with an annotation.
fn annotated(kind: &str, annotation: &str, text: &str) -> Value {
    json!({"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": "n", "annotations": {annotation: text}}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
}

#[tokio::test]
async fn annotations_that_stand_for_numbers_are_numbers() {
    const NO_INT: &str = "strconv.ParseInt: parsing \"x\": invalid syntax";
    let server = Server::builder().build().await.unwrap();
    for (kind, plural, annotation, before) in [
        ("DaemonSet", "daemonsets", "deprecated.daemonset.template.generation", ""),
        (
            "Deployment",
            "deployments",
            "deprecated.deployment.rollback.to",
            "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: ",
        ),
    ] {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        let refused = post(&server, &path, &annotated(kind, annotation, "x")).await;
        let why = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {before}{NO_INT}");
        assert_eq!((refused.status, refused.message()), (400, why.as_str()));
        let far = post(&server, &path, &annotated(kind, annotation, "9223372036854775808")).await;
        assert!(far.status == 400 && far.message().ends_with("value out of range"), "{far:?}");
        assert_eq!(post(&server, &path, &annotated(kind, annotation, "3")).await.status, 201);

        let path = format!("{path}/n");
        let body = json!({"metadata": {"annotations": {annotation: "x"}}});
        let merged = merge(&server, &path, &body).await;
        assert_eq!(merged.status, 422, "{merged:?}");
        assert!(merged.message().ends_with(&format!(": {before}{NO_INT}")), "{merged:?}");
        let media = "application/strategic-merge-patch+json";
        let strategic = answer(send(&server, "PATCH", &path, media, Some(&body)).await).await;
        assert_eq!((strategic.status, strategic.message()), (500, format!("{before}{NO_INT}").as_str()));
        assert_eq!(strategic.body.get("reason"), None, "{strategic:?}");
        assert_eq!(get(&server, &path).await.body["metadata"]["annotations"][annotation], "3");
    }
    let negative = annotated("Deployment", "deprecated.deployment.rollback.to", "-1");
    let refused = post(&server, "/apis/apps/v1/namespaces/default/deployments", &negative).await;
    let why = "spec.rollback.version: Invalid value: -1: must be greater than or equal to 0";
    assert!(refused.status == 422 && refused.message().ends_with(why), "{refused:?}");
}

#[tokio::test]
async fn what_an_autoscaler_says_in_annotations_is_left_out_where_it_cannot_be_read() {
    const PATH: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let server = Server::builder().build().await.unwrap();
    let annotations = json!({
        "autoscaling.alpha.kubernetes.io/metrics": "[1]", "autoscaling.alpha.kubernetes.io/behavior": "x",
        "autoscaling.alpha.kubernetes.io/conditions": "{}", "autoscaling.alpha.kubernetes.io/current-metrics": "1",
        "own": "kept",
    });
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let body = json!({"metadata": {"name": "h", "annotations": annotations},
        "spec": {"maxReplicas": 3, "scaleTargetRef": target}});
    let made = post(&server, PATH, &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["metadata"]["annotations"], json!({"own": "kept"}));
    assert_eq!(made.body["spec"]["targetCPUUtilizationPercentage"], 80);
}
