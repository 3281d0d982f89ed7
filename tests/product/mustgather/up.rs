//! From the object to the file on the server, with nothing that a test plays: `admit up` runs the Job as processes, policies and
//! roles are in force, and OpenSSH's server takes the archive.

use std::fs;
use std::process::Command;
use std::time::Duration;

use admit::controllers::mustgather::crd::{MustGather, Phase};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, ListParams, LogParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::running::Workplace;
use crate::support::sshd::{PASSWORD, Sshd, USER, Wanted};

const NAMESPACE: &str = "support";
/// A Job of three containers on a busy machine.
const JOB: Duration = Duration::from_secs(240);
const CANARY: &str = "canary-4715";

async fn put(client: &Client, group: &str, version: &str, kind: &str, plural: &str, object: Value) {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    let api: Api<DynamicObject> = match &namespace {
        None => Api::all_with(client.clone(), &resource),
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let mut whole = json!({"apiVersion": resource.api_version, "kind": kind});
    whole.as_object_mut().unwrap().extend(object.as_object().unwrap().clone());
    let object: DynamicObject = serde_json::from_value(whole).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.reason != "AlreadyExists" => panic!("{kind}: {status:?}"),
        Err(kube::Error::Api(_)) | Ok(_) => {}
        Err(error) => panic!("{kind}: {error}"),
    }
}

/// A namespace, an account that may read everything, a Secret for the server and something to collect.
pub(super) async fn prepare(client: &Client, sshd: &Sshd) {
    let named = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    put(client, "", "v1", "Namespace", "namespaces", json!({"metadata": {"name": NAMESPACE}})).await;
    put(client, "", "v1", "ServiceAccount", "serviceaccounts", json!({"metadata": named("gatherer")})).await;
    let rules = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},
    ]);
    let group = "rbac.authorization.k8s.io";
    put(
        client,
        group,
        "v1",
        "ClusterRole",
        "clusterroles",
        json!({"metadata": {"name": "reader"}, "rules": rules}),
    )
    .await;
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "gatherer", "namespace": NAMESPACE}],
    });
    put(client, group, "v1", "ClusterRoleBinding", "clusterrolebindings", binding).await;
    let data = json!({"username": USER, "password": PASSWORD, "known_hosts": sshd.known_hosts()});
    put(client, "", "v1", "Secret", "secrets", json!({"metadata": named("account"), "stringData": data}))
        .await;
    let other = json!({"metadata": named("other"), "stringData": {"k": CANARY}});
    put(client, "", "v1", "Secret", "secrets", other).await;
    let map = json!({"metadata": named("collected"), "data": {"k": "what is collected"}});
    put(client, "", "v1", "ConfigMap", "configmaps", map).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_object_to_the_file_on_the_server() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let workplace = Workplace::new();
    let running = workplace.start();
    let client = workplace.client().await;
    prepare(&client, &sshd).await;
    let sftp = json!({
        "caseID": "04123456", "host": sshd.address.to_string(),
        "caseManagementAccountSecretRef": {"name": "account"},
    });
    let spec = json!({
        "serviceAccountRef": {"name": "gatherer"}, "mustGatherTimeout": "3m", "retainResourcesOnCompletion": true,
        "uploadTarget": {"type": "SFTP", "sftp": sftp},
    });
    let object = json!({"metadata": {"name": "sample", "namespace": NAMESPACE}, "spec": spec});
    put(&client, "operator.openshift.io", "v1alpha1", "MustGather", "mustgathers", object).await;

    let objects: Api<MustGather> = Api::namespaced(client.clone(), NAMESPACE);
    let over = await_condition(objects.clone(), "sample", |it: Option<&MustGather>| {
        it.is_some_and(MustGather::has_ended)
    });
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let Ok(ended) = tokio::time::timeout(JOB, over).await else {
        let pods = pods.list(&ListParams::default()).await.unwrap().items;
        panic!("{:#?}\n{:#?}\n{}", objects.get("sample").await.unwrap().status, pods, workplace.log());
    };
    let status = ended.unwrap().unwrap().status.unwrap();
    let pod = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    let log = async |container: &str| {
        let params = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
        pods.logs(&pod.name_any(), &params).await.unwrap()
    };
    let (gathered, sent) = (log("gather").await, log("upload").await);
    assert_eq!(status.status, Some(Phase::Completed), "{status:#?}\n{gathered}\n{sent}\n{}", workplace.log());
    assert!(gathered.contains("collected "), "{gathered}");
    assert!(sent.contains("sent 04123456_must-gather.local."), "{sent}");

    let files = sshd.files();
    assert_eq!(files.len(), 1, "{files:?}");
    let unpacked = tempfile::tempdir().unwrap();
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(sshd.home().join(&files[0]))
        .current_dir(unpacked.path())
        .status();
    assert!(tar.unwrap().success());
    let root = unpacked.path().join("must-gather");
    let kept = fs::read_to_string(root.join("must-gather.log")).unwrap();
    assert!(kept.contains("collected ") && gathered.contains(kept.trim_end()), "{kept}\n{gathered}");
    let maps = fs::read_to_string(root.join("admit/namespaces/support/core/configmaps.yaml")).unwrap();
    assert!(maps.contains("what is collected"), "{maps}");
    assert!(root.join("admit/namespaces/support/core/secrets.yaml").exists());
    for secret in [CANARY, PASSWORD] {
        let grep = Command::new("grep").args(["-r", secret]).arg(unpacked.path()).output().unwrap();
        assert!(grep.stdout.is_empty(), "{}", String::from_utf8_lossy(&grep.stdout));
        assert!(!(workplace.log() + &gathered + &sent).contains(secret), "{secret} is logged");
    }
    assert!(running.terminate().success());
}

/// Under the shipped roles and policies, with the words of the node that cannot run the image.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_nothing_stands_for_is_said_with_the_remedy() {
    let workplace = Workplace::new();
    let running = workplace.start_with(&["--must-gather-image", "quay.example/none:1"]);
    let client = workplace.client().await;
    put(&client, "", "v1", "Namespace", "namespaces", json!({"metadata": {"name": NAMESPACE}})).await;
    let named = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let object = json!({"metadata": named("sample"), "spec": {}});
    put(&client, "operator.openshift.io", "v1alpha1", "MustGather", "mustgathers", object).await;
    let objects: Api<MustGather> = Api::namespaced(client.clone(), NAMESPACE);
    let said = |object: Option<&MustGather>| {
        let status = object.and_then(|object| object.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|one| {
            one.type_ == "JobStuck"
                && one.status == "True"
                && one.message.contains("--run-image quay.example/none:1=DIR")
        })
    };
    let waiting = tokio::time::timeout(JOB, await_condition(objects.clone(), "sample", said)).await;
    assert!(waiting.is_ok(), "{:#?}\n{}", objects.get("sample").await, workplace.log());
    assert!(running.terminate().success());
}

/// An archive that lies on a volume, obfuscated beside it: no image, no server, one container of our own.
#[tokio::test(flavor = "multi_thread")]
async fn what_lies_on_a_volume_is_obfuscated_beside_it() {
    let workplace = Workplace::new();
    let running = workplace.start();
    let client = workplace.client().await;
    put(&client, "", "v1", "Namespace", "namespaces", json!({"metadata": {"name": NAMESPACE}})).await;
    let named = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": named("data"), "spec": claim});
    put(&client, "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", claim).await;
    let volume = workplace.path().join(".admit/local/volumes").join(NAMESPACE).join("data");
    fs::create_dir_all(volume.join("runs/old")).unwrap();
    fs::write(volume.join("runs/old/a.log"), "to 10.0.0.1\n").unwrap();
    fs::write(volume.join("runs/old/s.yaml"), format!("kind: Secret\ndata: {CANARY}\n")).unwrap();
    let source = json!({"claim": {"name": "data"}, "subPath": "runs/old"});
    let spec = json!({"obfuscate": {"enabled": true, "source": source}});
    let object = json!({"metadata": named("sample"), "spec": spec});
    put(&client, "operator.openshift.io", "v1alpha1", "MustGather", "mustgathers", object).await;
    let objects: Api<MustGather> = Api::namespaced(client.clone(), NAMESPACE);
    let over = |object: Option<&MustGather>| object.is_some_and(MustGather::has_ended);
    let ended = tokio::time::timeout(JOB, await_condition(objects.clone(), "sample", over)).await;
    let status = ended.map(|ended| ended.unwrap().unwrap().status.unwrap());
    assert!(
        status.is_ok_and(|status| status.status == Some(Phase::Completed)),
        "{:?}\n{}",
        objects.get("sample").await,
        workplace.log()
    );
    let made: Vec<_> = fs::read_dir(volume.join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let shown =
        made.iter().find(|name| name.starts_with("old.obfuscated.")).unwrap_or_else(|| panic!("{made:?}"));
    let read = |path: &str| fs::read_to_string(volume.join("runs").join(shown).join(path)).unwrap();
    assert_eq!(read("a.log"), "to x-ipv4-0000000001-x\n");
    assert!(read("obfuscation.log").contains("left out: s.yaml: the rules leave out Secret"));
    assert!(!volume.join("runs").join(shown).join("s.yaml").exists());
    assert_eq!(fs::read_to_string(volume.join("runs/old/a.log")).unwrap(), "to 10.0.0.1\n");
    assert!(running.terminate().success());
}
