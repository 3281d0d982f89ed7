//! Policies of `admit up` that take their params from the API server: no two pipelines of a namespace share a database, so
//! that each pipeline is a param of all others. One policy of a user's own asks for a kind that comes later.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::running::Workplace;
use crate::tour::has_kubectl;

/// How long a change may take until policies know it, on a busy machine. A bound, not an expectation.
const PATIENCE: Duration = Duration::from_secs(60);
const SHARED: &str = "another pipeline uses the same database";

fn dynamic(client: &Client, kind: (&str, &str, &str, &str)) -> Api<DynamicObject> {
    let (group, version, kind, plural) = kind;
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn pipelines(client: &Client) -> Api<DynamicObject> {
    dynamic(client, ("cyndi.cloud.redhat.com", "v1alpha1", "CyndiPipeline", "cyndipipelines"))
}

fn pipeline(name: &str, app: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"appName": app},
    }))
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

/// Whether a create would be refused with `words`; any other refusal is a mistake.
async fn refused(api: &Api<DynamicObject>, object: &DynamicObject, words: &str) -> bool {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&dry, object).await {
        Ok(_) => false,
        Err(Error::Api(status)) if status.message.contains(words) => true,
        Err(other) => panic!("should be refused with `{words}` or not at all: {other}"),
    }
}

/// Asks until `refused` answers `wanted`: what follows params is a watch, which is a moment behind.
async fn until(wanted: bool, api: &Api<DynamicObject>, object: &DynamicObject, words: &str) {
    let began = Instant::now();
    while refused(api, object, words).await != wanted {
        assert!(began.elapsed() < PATIENCE, "`{words}` is not {wanted} in time");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pipeline_is_a_param_of_the_others() {
    let place = Workplace::new();
    // Their controllers would keep a pipeline whose databases cannot be reached.
    let running = place.start_with(&["--controllers", "datagather"]);
    let api = pipelines(&place.client().await);
    let create = async |object: &DynamicObject| api.create(&PostParams::default(), object).await;

    // The first of all: no params at all is no mistake.
    create(&pipeline("advisor", "advisor")).await.unwrap_or_else(|error| panic!("{error}\n{}", place.log()));
    until(true, &api, &pipeline("second", "advisor"), SHARED).await;
    create(&pipeline("drift", "drift")).await.unwrap();
    let Err(Error::Api(status)) = create(&pipeline("wrong", "No Label")).await else {
        panic!("a name that is no label is taken")
    };
    assert!(status.message.contains("appName is not usable as a label value"), "{}", status.message);

    // A param that goes.
    api.delete("advisor", &DeleteParams::default()).await.unwrap();
    until(false, &api, &pipeline("second", "advisor"), SHARED).await;
    assert!(refused(&api, &pipeline("second", "drift"), SHARED).await);
    assert!(!place.log().contains("params are not known yet"), "{}", place.log());
    assert!(running.terminate().success(), "SIGTERM must end `admit up` with 0:\n{}", place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_of_params_may_come_later() {
    let place = Workplace::new();
    let policies = place.path().join("own");
    fs::create_dir(&policies).unwrap();
    fs::write(policies.join("short.yaml"), format!("{}\n---\n{}\n", policy(), binding())).unwrap();
    let running = place.start_with(&["--policies", "own"]);
    let client = place.client().await;
    let maps = dynamic(&client, ("", "v1", "ConfigMap", "configmaps"));
    let map = object(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"v": "long"},
    }));
    assert!(refused(&maps, &map, "failed to find resource referenced by paramKind").await);

    let definitions: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            "customresourcedefinitions",
        ),
    );
    definitions.create(&PostParams::default(), &object(definition())).await.unwrap();
    let limits = dynamic(&client, ("example.com", "v1", "Limit", "limits"));
    let began = Instant::now();
    let limit = object(json!({
        "apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "limit"}, "most": 3,
    }));
    // The definition is served a moment after it is stored.
    while let Err(error) = limits.create(&PostParams::default(), &limit).await {
        assert!(began.elapsed() < PATIENCE, "{error}");
    }
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    loop {
        let Err(Error::Api(status)) = maps.create(&dry, &map).await else {
            panic!("what is too long is taken")
        };
        if status.message.contains("too long") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}\n{}", status.message, place.log());
    }
    let longer = Patch::Merge(json!({"most": 4}));
    limits.patch("limit", &PatchParams::default(), &longer).await.unwrap();
    until(false, &maps, &map, "too long").await;
    assert!(running.terminate().success(), "SIGTERM must end `admit up` with 0:\n{}", place.log());
}

fn policy() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "short"},
        "spec": {
            "paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }]},
            "validations": [{"expression": "size(object.data.v) <= params.most", "message": "too long"}],
        },
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "short"},
        "spec": {
            "policyName": "short", "validationActions": ["Deny"],
            "paramRef": {"name": "limit", "namespace": "default", "parameterNotFoundAction": "Deny"},
        },
    })
}

fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {"most": {"type": "integer"}}});
    testing::definition("limits.example.com", "Limit", "Namespaced", &schema)
}

#[test]
fn kubectl_creates_what_the_policies_allow() {
    if !has_kubectl() {
        return;
    }
    let place = Workplace::new();
    let running = place.start();
    let create = |object: &DynamicObject| {
        let mut kubectl = Command::new("kubectl")
            .args(["create", "-f", "-"])
            .env("KUBECONFIG", place.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let text = serde_json::to_string(object).unwrap();
        kubectl.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = kubectl.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    assert_eq!(
        create(&pipeline("advisor", "advisor")),
        "cyndipipeline.cyndi.cloud.redhat.com/advisor created\n",
        "{}",
        place.log()
    );
    let said = create(&pipeline("wrong", "No Label"));
    assert!(said.contains("appName is not usable as a label value"), "{said}");
    assert!(running.terminate().success(), "SIGTERM must end `admit up` with 0:\n{}", place.log());
}
