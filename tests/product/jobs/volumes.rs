//! Volumes, where containers find them, and who a Pod is to the API server.

use std::fs;
use std::process::Command;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, PodStatus, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{LogParams, PostParams};
use serde_json::{Value, json};

use super::place::{Place, phase, script};

/// A Pod of the script, with these volumes, each at `/NAME`.
fn with(text: &str, volumes: &Value) -> Value {
    let mut pod = script(text);
    let names = volumes.as_array().unwrap().iter().map(|volume| volume["name"].as_str().unwrap());
    let mounts: Vec<Value> =
        names.map(|name| json!({"name": name, "mountPath": format!("/{name}/at")})).collect();
    pod["containers"][0]["volumeMounts"] = mounts.into();
    pod["volumes"] = volumes.clone();
    pod
}

async fn said(place: &Place, pod: &str) -> String {
    place.pods.logs(pod, &LogParams::default()).await.unwrap()
}

/// Ends only if the Pod succeeded.
async fn succeeded(place: &Place, pod: &str) {
    let status = place.ended(pod).await;
    assert_eq!(phase(&status), "Succeeded", "{}{:?}", said(place, pod).await, place.events(pod).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_at_their_paths() {
    let place = Place::new().await;
    place.put::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"a": "one", "b": "two"}})).await;
    let volumes = json!([
        {"name": "empty", "emptyDir": {}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "map", "configMap": {"name": "m", "items": [{"key": "b", "path": "deep/b"}]}},
        {"name": "all", "projected": {"sources": [
            {"configMap": {"name": "m"}}, {"downwardAPI": {"items": [{"path": "me", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "token", "audience": "vault"}},
        ]}},
    ]);
    let text = "set -ex; cd /; cat /secret/at/key; test \"$(stat -Lc %a /secret/at/key)\" = 400; cat /map/at/deep/b; \
        test ! -e /map/at/a; cat /all/at/me; test -s /all/at/token; echo kept > /empty/at/file; test -e /usr/bin/env; \
        cat /fixed/a";
    let mut pod = with(text, &volumes);
    let fixed = json!({"name": "map", "mountPath": "/fixed/a", "subPath": "deep/b", "readOnly": true});
    pod["containers"][0]["volumeMounts"].as_array_mut().unwrap().push(fixed);
    pod["serviceAccountName"] = "default".into();
    pod["initContainers"] = json!([{"name": "first", "image": "admit", "command": ["/bin/sh", "-c", "echo 1 > /in/x"],
        "volumeMounts": [{"name": "empty", "mountPath": "/in"}]}]);
    let text =
        format!("{}; test \"$(cat /empty/at/x)\" = 1", pod["containers"][0]["command"][2].as_str().unwrap());
    pod["containers"][0]["command"][2] = text.into();
    place.pod("volumes", pod).await;
    place
        .until_event("volumes", |reason, text| {
            reason == "FailedMount" && text.contains("volume \"secret\" : secret \"s\" not found")
        })
        .await;
    place.put::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"key": "hush"}})).await;
    succeeded(&place, "volumes").await;
    assert!(!std::path::Path::new("/empty").exists(), "a path of a container was made on this machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_waited_for_and_its_volume_outlives_pods() {
    let place = Place::new().await;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    place.pod("first", with("echo kept > /data/at/file", &volumes)).await;
    let unscheduled = |status: &PodStatus| {
        let conditions = status.conditions.iter().flatten();
        conditions
            .into_iter()
            .any(|one| one.type_ == "PodScheduled" && one.reason.as_deref() == Some("Unschedulable"))
    };
    let status = place.until_pod("first", unscheduled).await;
    assert_eq!(phase(&status), "Pending");
    place
        .until_event("first", |reason, text| {
            reason == "FailedScheduling" && text.contains("persistentvolumeclaim \"data\" not found")
        })
        .await;
    place
        .put::<PersistentVolumeClaim>(json!({"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}))
        .await;
    succeeded(&place, "first").await;
    place.pod("second", with("test \"$(cat /data/at/file)\" = kept", &volumes)).await;
    succeeded(&place, "second").await;
    let kept = place.place.path().join(".admit/local/volumes/default/data/file");
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept\n");
}

/// The account of the Pod may read ConfigMaps and nothing else.
async fn reader(place: &Place) {
    place.put::<ServiceAccount>(json!({"metadata": {"name": "reader"}})).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    place.put::<Role>(json!({"metadata": {"name": "reader"}, "rules": rules})).await;
    place
        .put::<RoleBinding>(json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]}))
        .await;
    place.put::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"a": "one"}})).await;
}

fn asks(text: &str) -> Value {
    let mut pod = script(text);
    pod["serviceAccountName"] = json!("reader");
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_its_account_to_the_api_server() {
    if Command::new("curl").arg("--version").output().is_err() {
        return testing::skip(testing::Need::Other, "there is no curl on the PATH");
    }
    let place = Place::new().await;
    reader(&place).await;
    let text = "cd /var/run/secrets/kubernetes.io/serviceaccount && test \"$(cat namespace)\" = default && for what in \
        configmaps/m secrets; do curl -s -o /dev/null -w '%{http_code} ' --cacert ca.crt -H \"Authorization: Bearer $(cat token)\" \
        https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/api/v1/namespaces/default/$what; done";
    place.pod("asks", asks(text)).await;
    succeeded(&place, "asks").await;
    assert_eq!(said(&place, "asks").await, "200 403 ");

    let mut none = asks("test ! -e /var/run/secrets/kubernetes.io/serviceaccount");
    none["automountServiceAccountToken"] = json!(false);
    place.pod("none", none).await;
    succeeded(&place, "none").await;
    let mut stranger = asks("true");
    stranger["serviceAccountName"] = json!("nobody");
    let stranger = json!({"metadata": {"name": "stranger"}, "spec": stranger});
    let refused = place
        .pods
        .create(&PostParams::default(), &serde_json::from_value(stranger).unwrap())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("serviceaccount \"nobody\" not found"), "{refused}");
}

/// Where the kernel gives no namespace, our own commands find volumes and account all the same.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_namespace_paths_are_mapped() {
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]);
        command
    };
    let limit = "echo 0 > /proc/sys/user/max_user_namespaces";
    let limited = inside(limit).output();
    if !limited.is_ok_and(|output| output.status.success()) {
        let reason = "this kernel gives no user namespace in which there are none";
        return testing::skip(testing::Need::Other, reason);
    }
    let binary = env!("CARGO_BIN_EXE_admit");
    let mut command =
        inside(&format!("{limit}; exec {binary} up --listen 127.0.0.1:0 --admission-listen 127.0.0.1:0"));
    command.stdin(std::process::Stdio::null());
    let place = Place::launched(command).await;
    let volumes = json!([{"name": "data", "emptyDir": {}}]);
    let text = "printf '%s' \"$ADMIT_MOUNTS\" | grep -q '\"/data/at\":\"/' && test -s \"$KUBECONFIG\" && test ! -e /data/at";
    let created: Pod = place.pod("mapped", with(text, &volumes)).await;
    succeeded(&place, &created.name_any()).await;
    place.until_event("mapped", |reason, text| reason == "NotMounted" && text.contains("ADMIT_MOUNTS")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_acted_upon_is_told() {
    let place = Place::new().await;
    let mut pod = script("true");
    pod["containers"][0]["livenessProbe"] = json!({"grpc": {"port": 1}});
    place.pod("probed", pod).await;
    place
        .until_event("probed", |reason, text| {
            reason == "IgnoredFields" && text.contains("containers[main].livenessProbe.grpc")
        })
        .await;
    succeeded(&place, "probed").await;
    place.pod("host", with("true", &json!([{"name": "h", "hostPath": {"path": "/"}}]))).await;
    place
        .until_event("host", |reason, text| {
            reason == "FailedMount" && text.contains("does not know its kind")
        })
        .await;
}
