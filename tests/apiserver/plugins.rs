//! The choice of admission plugins, and what follows from it for a cluster.

use admit_apiserver::internals::builtin_rows;
use admit_apiserver::{AdmissionPlugins, OfflinePlugins, Server};
use admit_policy::{GroupVersionKind, LoadOptions, Plugins as _, PolicySet};
use serde_json::{Value, json};

use crate::answers::configuration;
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
    assert_eq!(get(&server, "/api/v1/namespaces/default/configmaps").await.body["items"], json!([]));

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

#[tokio::test]
async fn events_are_taken_as_many_as_limits_let_in() {
    let limits =
        json!([{"type": "User", "qps": 1, "burst": 2}, {"type": "SourceAndObject", "qps": 1, "burst": 3}]);
    let settings = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "EventRateLimit", "configuration": {
            "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": limits}}]});
    let settings = configuration(&settings.to_string());
    let plugins = AdmissionPlugins::configured(["EventRateLimit"], [""; 0], &settings).unwrap();
    let server = Server::builder().admission_plugins(plugins).build().await.unwrap();
    let sent = async |at: usize| {
        let event = json!({"metadata": {"name": format!("e{at}")}, "involvedObject": {"kind": "K", "namespace": "default", "name": "o"},
            "source": {"component": "c", "host": "h"}});
        post(&server, "/api/v1/namespaces/default/events", &event).await
    };
    assert_eq!([sent(0).await.status, sent(1).await.status], [201, 201]);
    let mut told = Vec::new();
    // A machine that stands still for a second lets another one in.
    for at in 2..40 {
        let answer = sent(at).await;
        if answer.status == 429 {
            assert_eq!(answer.body["reason"], "TooManyRequests");
            told.push(answer.message().to_owned());
        }
    }
    let of = |key: &str| format!("Too many requests: limit reached on type {key}");
    assert_eq!(told.first(), Some(&of("User for key admin")));
    assert_eq!(told.last(), Some(&of("SourceAndObject for key chKdefaulto")), "the last limit tells");
    let other = json!({"metadata": {"name": "e"}, "regarding": {"namespace": "default"}});
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_ne!(post(&server, path, &other).await.status, 429, "others are not counted");
}

#[test]
fn a_plugin_is_set_to_what_its_section_says() {
    let told = |plugin: &str, section: &Value| {
        let settings = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": [{"name": plugin, "configuration": section}]});
        let settings = configuration(&settings.to_string());
        let off = ["PodTolerationRestriction"].into_iter().filter(|off| *off == plugin);
        AdmissionPlugins::configured(off, [""; 0], &settings).map(drop).map_err(|error| error.to_string())
    };
    let begins =
        |plugin: &str| format!("admission-control-config-file: plugin \"{plugin}\" cannot be set up: ");
    let tolerations = json!({"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration",
        "default": [{"key": "a", "operator": "Exists", "value": "b"}]});
    let plugin = "PodTolerationRestriction";
    let error = told(plugin, &tolerations).unwrap_err();
    assert!(error.starts_with(&begins(plugin)), "{error}");
    assert!(error.contains("podtolerationrestriction.default[0].operator: Invalid value: "), "{error}");
    let plugin = "ValidatingAdmissionPolicy";
    let error = told(plugin, &json!({})).unwrap_err();
    assert_eq!(
        error,
        format!("{}what it could be set to is not built; leave its section out", begins(plugin))
    );
    assert_eq!(told("EventRateLimit", &json!({})), Ok(()), "a plugin that does not run is set to nothing");
}

#[tokio::test]
async fn what_is_limited_needs_a_quota_that_covers_it() {
    let limited = json!([
        {"resource": "configmaps", "matchContains": ["configmaps"]},
        {"resource": "pods", "matchScopes": [{"scopeName": "PriorityClass", "operator": "In",
            "values": ["system-node-critical", "system-cluster-critical"]}]},
    ]);
    let settings = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ResourceQuota", "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
            "limitedResources": limited}}]});
    let settings = configuration(&settings.to_string());
    let plugins = AdmissionPlugins::configured([""; 0], ["ServiceAccount"], &settings).unwrap();
    let server = Server::builder().admission_plugins(plugins).build().await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "a"}});
    let told = post(&server, maps, &map).await;
    let consumed = "insufficient quota to consume: configmaps,count/configmaps";
    assert_eq!((told.status, told.message()), (403, &*format!("configmaps \"a\" is forbidden: {consumed}")));
    let mut critical = pod("a");
    critical["spec"]["priorityClassName"] = "system-node-critical".into();
    let told = post(&server, PODS, &critical).await;
    let scopes = "[{PriorityClass In [system-node-critical system-cluster-critical]}]";
    let why = format!("insufficient quota to match these scopes: {scopes}");
    assert_eq!((told.status, told.message()), (500, &*why));
    assert_eq!(post(&server, PODS, &pod("b")).await.status, 201, "others are of no such scope");

    let quota =
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5", "count/configmaps": "5"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(post(&server, quotas, &quota).await.status, 201);
    let selector = json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]});
    let quota =
        json!({"metadata": {"name": "p"}, "spec": {"hard": {"pods": "1"}, "scopeSelector": selector}});
    assert_eq!(post(&server, quotas, &quota).await.status, 201);
    server.sweep().await.unwrap();
    assert_eq!(post(&server, maps, &map).await.status, 201);
    assert_eq!(post(&server, PODS, &critical).await.status, 201);
}

#[tokio::test]
async fn a_server_begins_with_its_flows() {
    let server = Server::builder().build().await.unwrap();
    let group = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let levels = get(&server, &format!("{group}/prioritylevelconfigurations")).await;
    let schemas = get(&server, &format!("{group}/flowschemas")).await;
    let count = |list: &Value| list["items"].as_array().map(Vec::len);
    assert_eq!((count(&levels.body), count(&schemas.body)), (Some(8), Some(11)));
    for name in ["exempt", "catch-all"] {
        let schema = get(&server, &format!("{group}/flowschemas/{name}")).await.body;
        let condition = &schema["status"]["conditions"][0];
        assert_eq!(
            (&condition["type"], &condition["status"]),
            (&json!("Dangling"), &json!("False")),
            "{schema}"
        );
        assert_eq!(schema["spec"]["priorityLevelConfiguration"]["name"], name);
        // They are valid as they are, and stay what they are.
        let path = format!("{group}/flowschemas/{name}");
        let same = merge(&server, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!(same.status, 200, "{same:?}");
        let other = merge(&server, &path, &json!({"spec": {"matchingPrecedence": 7}})).await;
        assert_eq!(other.status, 422, "{other:?}");
        let level = get(&server, &format!("{group}/prioritylevelconfigurations/{name}")).await;
        assert_eq!(level.status, 200);
    }
}

/// What plugins look up may stand among policies, which have no use for it: both keep a list of these kinds.
#[test]
fn kinds_that_plugins_look_up_may_stand_among_policies() {
    let plugins = OfflinePlugins::default();
    for row in builtin_rows() {
        let kind = GroupVersionKind::new(&*row.group, &*row.version, &*row.kind);
        let text =
            format!("{{apiVersion: {}, kind: {}, metadata: {{name: a}}}}", row.api_version(), row.kind);
        let loaded = PolicySet::load_files([("one.yaml", text.as_str())], LoadOptions::default());
        if plugins.looks_up(&kind) {
            assert!(loaded.is_ok(), "{}: {:?}", row.kind, loaded.err());
        } else if row.kind == "Service" {
            assert!(loaded.is_err());
        }
    }
    assert!(plugins.looks_up(&GroupVersionKind::new("", "v1", "LimitRange")));
}
