//! `admit serve` beside a cluster, for which the embedded API server stands: policies, params and namespaces that are
//! watched, and certificates that are made, shared and handed to callers.

use std::path::Path;

use base64::Engine as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client as KubeClient;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use rustls::version::TLS13;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::server::{Place, Serving, review};
use crate::running::Workplace;
use crate::support::cluster::{FakeCluster, PATIENCE};
use crate::support::https::{Client, tls};

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn registration(client: &KubeClient, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

/// At most so many characters of `data.v` as the ConfigMap `limit` says, in namespaces with the label `strict`.
fn policy(expression: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "short"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"strict": "true"}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            },
            "validations": [{"expression": expression, "message": "too long"}],
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

const WITHIN_LIMIT: &str = "!has(object.data.v) || size(object.data.v) <= int(params.data.max)";

/// The bundle in the webhook configuration, once there is one.
pub(super) async fn bundle(client: &KubeClient, webhook: &str) -> String {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = configurations.get(webhook).await.unwrap();
    let webhook = configuration.webhooks.unwrap().remove(0);
    String::from_utf8(webhook.client_config.ca_bundle.unwrap().0).unwrap()
}

async fn ask(serving: &Serving, bundle: &str, value: &str) -> Value {
    let mut client = Client::connect(serving.webhook, &tls(bundle, None, &[&TLS13])).await.unwrap();
    client.post("/validate", review("u", &json!({"v": value}))).await.unwrap().json()["response"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_params_and_certificates_of_a_cluster() {
    let cluster = Workplace::new();
    let _running = cluster.start();
    follows(cluster.client().await, &cluster.kubeconfig(), "hook").await;
}

/// `admit serve` with this kubeconfig enforces what `client`, an administrator, stores and changes; the webhook configuration of
/// that name is given its authority.
pub(crate) async fn follows(client: KubeClient, kubeconfig: &Path, webhook: &str) {
    create(
        &Api::<Namespace>::all(client.clone()),
        json!({"metadata": {"name": "n", "labels": {"strict": "true"}}}),
    )
    .await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    create(&config_maps, json!({"metadata": {"name": "limit"}, "data": {"max": "3"}})).await;
    let policies = registration(&client, "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    create(&policies, policy(WITHIN_LIMIT)).await;
    let bindings =
        registration(&client, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");
    create(&bindings, binding()).await;
    let hook = json!({"metadata": {"name": webhook}, "webhooks": [{
        "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Ignore", "clientConfig": {"url": "https://localhost:1/"},
    }]});
    create(&Api::<ValidatingWebhookConfiguration>::all(client.clone()), hook.clone()).await;
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    create(&mutating, hook).await;

    let place = Place::new();
    let kubeconfig = kubeconfig.display().to_string();
    let args = ["--kubeconfig", &kubeconfig, "--cluster-policies", "--webhook-name", webhook];
    let serving = place.start_self_signed(&args);
    let trusted = bundle(&client, webhook).await;
    let caller = mutating.get(webhook).await.unwrap().webhooks.unwrap().remove(0).client_config;
    assert_eq!(caller.ca_bundle.unwrap().0, trusted.as_bytes(), "who is asked for patches is known as well");
    assert_eq!(serving.observed("/readyz").await.0, 200);
    assert_eq!(ask(&serving, &trusted, "abc").await["allowed"], true);
    let denied = ask(&serving, &trusted, "abcd").await;
    let message = "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'short' with binding 'short' denied request: too long";
    assert_eq!(denied["status"]["message"], message);

    // Another replica shows the same certificate, from the Secret.
    let other = place.start_self_signed(&args);
    let client_of = |serving: &Serving| {
        let (address, tls) = (serving.webhook, tls(&trusted, None, &[&TLS13]));
        async move { Client::connect(address, &tls).await.unwrap().certificate }
    };
    assert_eq!(client_of(&serving).await, client_of(&other).await);
    let secret =
        Api::<Secret>::namespaced(client.clone(), "admit-system").get("admit-self-signed").await.unwrap();
    let data = secret.data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["ca.crt", "ca.key", "tls.crt", "tls.key"]);
    assert_eq!(String::from_utf8(data["ca.crt"].0.clone()).unwrap(), trusted);

    // What changes in the cluster changes answers.
    let longer = Patch::Merge(json!({"data": {"max": "4"}}));
    config_maps.patch("limit", &PatchParams::default(), &longer).await.unwrap();
    until(&serving, &trusted, "abcd", |answer| answer["allowed"] == true).await;
    let never = Patch::Merge(policy("params == null"));
    policies.patch("short", &PatchParams::default(), &never).await.unwrap();
    until(&serving, &trusted, "abc", |answer| answer["allowed"] == false).await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let lax = Patch::Merge(json!({"metadata": {"labels": {"strict": "false"}}}));
    namespaces.patch("n", &PatchParams::default(), &lax).await.unwrap();
    until(&serving, &trusted, "abc", |answer| answer["allowed"] == true).await;
    changes(&client, &serving, &trusted).await;
    assert!(other.terminate().success() && serving.terminate().success());
}

/// What the cluster stores of policies that change objects, `serving` answers with patches, as long as it is stored.
async fn changes(client: &KubeClient, serving: &Serving, trusted: &str) {
    let policies = registration(client, "MutatingAdmissionPolicy", "mutatingadmissionpolicies");
    let bindings = registration(client, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings");
    let expression = "[JSONPatch{op: 'add', path: '/data/max', value: params.data.max}]";
    create(
        &policies,
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": "limited"},
            "spec": {
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "reinvocationPolicy": "Never",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            },
        }),
    )
    .await;
    create(
        &bindings,
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": "limited"},
            "spec": {"policyName": "limited", "paramRef": {
                "name": "limit", "namespace": "default", "parameterNotFoundAction": "Deny"}},
        }),
    )
    .await;
    let in_force =
        serving.until("/policies", |text| text.contains(r#""bindings":[{"name":"limited"}]"#)).await;
    let in_force: Value = serde_json::from_str(&in_force).unwrap();
    assert_eq!(
        in_force["mutatingPolicies"],
        json!([{"name": "limited", "failurePolicy": "Fail", "bindings": [{"name": "limited"}]}])
    );
    let mut webhook = Client::connect(serving.webhook, &tls(trusted, None, &[&TLS13])).await.unwrap();
    let mut until_patched = async |wanted: bool| {
        let asking = async {
            loop {
                let answered = webhook.post("/mutate", review("u", &json!({"v": "a"}))).await.unwrap();
                let response = answered.json()["response"].clone();
                if response["allowed"] == true && response.get("patch").is_some() == wanted {
                    return response;
                }
                tokio::task::yield_now().await;
            }
        };
        let answered = tokio::time::timeout(PATIENCE, asking).await;
        answered.unwrap_or_else(|_| panic!("the answer does not change:\n{}", serving.log()))
    };
    let patched = until_patched(true).await;
    let patch = base64::engine::general_purpose::STANDARD.decode(patched["patch"].as_str().unwrap()).unwrap();
    let operations: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(operations[0]["value"], "4", "the params are those of the cluster: {operations}");
    bindings.delete("limited", &DeleteParams::default()).await.unwrap();
    until_patched(false).await;
}

/// The state of what is broken, as `/policies` tells it.
async fn broken(serving: &Serving, wanted: impl Fn(&Value) -> bool) -> Value {
    let text = serving
        .until("/policies", |text| wanted(&serde_json::from_str::<Value>(text).unwrap()["broken"]))
        .await;
    serde_json::from_str::<Value>(&text).unwrap()["broken"].clone()
}

/// A stored policy that does not compile holds up itself alone. An API server of a later version may well store one: with a
/// function that ours does not know.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_policy_of_the_cluster_holds_up_no_other() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let api =
        FakeCluster::new(&[POLICIES, BINDINGS, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"]);
    let put = |name: &str, expression: &str| {
        let text = super::server::policy(name, expression);
        let (policy, binding) = text.split_once("---\n").unwrap();
        api.put(BINDINGS, serde_saphyr::from_str(binding).unwrap());
        api.put(POLICIES, serde_saphyr::from_str(policy).unwrap());
    };
    put("first", "object.data.v != 'a'");
    put("second", "object.data.v != 'b'");
    let place = Place::new();
    place.write("kubeconfig", &api.serve().await);
    let serving = place.start(&["--kubeconfig", "kubeconfig", "--cluster-policies"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let mut verdicts = async || {
        let mut all = Vec::new();
        for value in ["a", "b", "c"] {
            let answered = client.post("/validate", review("u", &json!({"v": value}))).await.unwrap();
            all.push(answered.json()["response"]["allowed"] == true);
        }
        all
    };
    assert_eq!(verdicts().await, [false, false, true]);

    // One that was in force, and one that was not, break; a third comes that is sound.
    for (name, expression) in
        [("second", "object.data.v !="), ("third", "object.data.v != 'c'"), ("fourth", "nobody == 1")]
    {
        put(name, expression);
    }
    let told = broken(&serving, |broken| broken.as_array().is_some_and(|all| all.len() == 2)).await;
    let of = |name: &str| told.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!(
        (&of("second")["previousInForce"], &of("fourth")["previousInForce"]),
        (&json!(true), &json!(false))
    );
    let third = |metrics: &str| metrics.contains("admit_policies 3\n");
    let metrics = serving.until("/metrics", third).await;
    for line in ["policy=\"second\",in_force=\"previous\"} 1", "policy=\"fourth\",in_force=\"none\"} 1"] {
        assert!(metrics.contains(&format!("admit_broken_policies{{{line}")), "{metrics}");
    }
    assert_eq!(verdicts().await, [false, false, false]);
    assert_eq!(serving.observed("/readyz").await.0, 200);

    // Mended, it is in force in its new version.
    put("second", "object.data.v != 'z'");
    broken(&serving, |broken| broken.as_array().is_some_and(|all| all.len() == 1)).await;
    assert_eq!(verdicts().await, [false, true, false]);
    assert!(serving.log().contains("its previous version stays in force"), "{}", serving.log());
}

async fn until(serving: &Serving, trusted: &str, value: &str, wanted: impl Fn(&Value) -> bool) {
    let asking = async {
        while !wanted(&ask(serving, trusted, value).await) {
            tokio::task::yield_now().await;
        }
    };
    let changed = tokio::time::timeout(PATIENCE, asking).await;
    assert!(changed.is_ok(), "the answer does not change:\n{}", serving.log());
}

/// The kind of a policy's params may be defined after the policy: until then it fails, and from then on it decides.
#[tokio::test(flavor = "multi_thread")]
async fn params_of_a_kind_that_comes_later() {
    let cluster = Workplace::new();
    let _running = cluster.start();
    let client = cluster.client().await;
    let mut wanted = policy("size(object.data.v) <= params.spec.max");
    wanted["spec"]["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Limit"});
    wanted["spec"]["matchConstraints"]["namespaceSelector"] = json!({});
    create(&registration(&client, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"), wanted).await;
    let mut bound = binding();
    bound["spec"]["paramRef"] = json!({"name": "limit", "parameterNotFoundAction": "Deny"});
    let bindings =
        registration(&client, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");
    create(&bindings, bound).await;

    let place = Place::new();
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let serving = place.start(&["--kubeconfig", &kubeconfig, "--cluster-policies"]);
    let trusted = place.authority.certificate_pem();
    assert_eq!(ask(&serving, trusted, "abc").await["allowed"], false);

    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"max": {"type": "integer"}}}}});
    let definition = json!({
        "metadata": {"name": "limits.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"kind": "Limit", "plural": "limits"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    create(&definitions, definition).await;
    let established = await_condition(definitions, "limits.example.com", is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
    let kind = GroupVersionKind::gvk("example.com", "v1", "Limit");
    let limits: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    let limit = json!({
        "apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "limit"}, "spec": {"max": 3}});
    create(&limits, limit).await;
    until(&serving, trusted, "abc", |answer| answer["allowed"] == true).await;
    assert_eq!(
        ask(&serving, trusted, "abcd").await["status"]["message"].as_str().unwrap().rsplit(": ").next(),
        Some("too long")
    );
}

/// A certificate made without a cluster serves those who are handed its authority.
#[tokio::test(flavor = "multi_thread")]
async fn self_made_certificates_without_a_cluster() {
    let place = Place::new();
    let serving = place.start_self_signed(&["--ca-out", "bundle.pem"]);
    let trusted = std::fs::read_to_string(place.path("bundle.pem")).unwrap();
    assert_eq!(ask(&serving, &trusted, "any").await["allowed"], true);
    let other = tls(place.authority.certificate_pem(), None, &[&TLS13]);
    assert!(Client::connect(serving.webhook, &other).await.is_err(), "it is not of the other authority");
}
