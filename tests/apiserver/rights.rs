//! Roles and bindings as they change, and users who have very many rules.

use admit_apiserver::{Identity, Server};
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{Answer, answer, delete, get, merge, post};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn as_user(server: &Server, user: &str, path: &str, acts_as: Option<&str>) -> Answer {
    let mut request = Request::get(path).extension(Identity::new(user, ["system:authenticated".to_owned()]));
    if let Some(other) = acts_as {
        request = request.header("impersonate-user", other);
    }
    answer(server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()).await
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role});
    let user = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
    json!({"metadata": {"name": name}, "roleRef": role, "subjects": [user]})
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn rule(resource: &str, name: Option<String>) -> Value {
    let names: Vec<_> = name.into_iter().collect();
    json!({"apiGroups": [""], "resources": [resource], "verbs": ["list"], "resourceNames": names})
}

#[tokio::test]
async fn each_change_of_a_role_or_binding_holds_from_then_on() {
    let server = Server::builder().build().await.unwrap();
    let (roles, bindings) =
        (format!("{RBAC}/namespaces/default/roles"), format!("{RBAC}/namespaces/default/rolebindings"));
    let may = async |user: &str| as_user(&server, user, MAPS, None).await.status;
    assert_eq!(may("ann").await, 403);
    assert_eq!(post(&server, &bindings, &binding("b", "r", "ann")).await.status, 201);
    let missing = as_user(&server, "ann", MAPS, None).await;
    assert!(
        missing.message().ends_with("RBAC: role.rbac.authorization.k8s.io \"r\" not found"),
        "{missing:?}"
    );
    assert_eq!(post(&server, &roles, &role("r", &[rule("configmaps", None)])).await.status, 201);
    assert_eq!((may("ann").await, may("bob").await), (200, 403));
    let subjects = json!({"subjects": binding("b", "r", "bob")["subjects"]});
    assert_eq!(merge(&server, &format!("{bindings}/b"), &subjects).await.status, 200);
    assert_eq!((may("ann").await, may("bob").await), (403, 200));
    let rules = json!({"rules": [rule("secrets", None)]});
    assert_eq!(merge(&server, &format!("{roles}/r"), &rules).await.status, 200);
    assert_eq!(may("bob").await, 403);
    assert_eq!(
        merge(&server, &format!("{roles}/r"), &json!({"rules": [rule("configmaps", None)]})).await.status,
        200
    );
    assert_eq!(may("bob").await, 200);
    assert_eq!(delete(&server, &bindings, None).await.status, 200);
    assert_eq!(may("bob").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_very_many_rules_is_answered_all_the_same() {
    let server = Server::builder().build().await.unwrap();
    let (roles, bindings) =
        (format!("{RBAC}/namespaces/default/roles"), format!("{RBAC}/namespaces/default/rolebindings"));
    let others: Vec<_> = (0..6_000).map(|number| rule("pods", Some(format!("p{number}")))).collect();
    for name in ["a", "b"] {
        assert_eq!(post(&server, &roles, &role(name, &others)).await.status, 201);
        assert_eq!(post(&server, &bindings, &binding(name, name, "ann")).await.status, 201);
    }
    let refused = as_user(&server, "ann", MAPS, None).await;
    let words = "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
                 \"default\"";
    assert_eq!((refused.status, refused.message()), (403, words));
    assert_eq!(post(&server, &roles, &role("c", &[rule("configmaps", None)])).await.status, 201);
    assert_eq!(post(&server, &bindings, &binding("c", "c", "ann")).await.status, 201);
    assert_eq!(as_user(&server, "ann", MAPS, None).await.status, 200);
    let acting = as_user(&server, "ann", MAPS, Some("bob")).await;
    assert_eq!(acting.status, 403);
    assert!(acting.message().contains("User \"ann\" cannot impersonate"), "{}", acting.message());
    assert_eq!(get(&server, "/livez").await.status, 200);
}

#[tokio::test]
async fn what_runs_beside_the_server_has_its_roles() {
    let server = Server::builder().build().await.unwrap();
    let node = get(&server, &format!("{RBAC}/clusterroles/system:node")).await;
    assert_eq!(node.body["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults", "{node:?}");
    assert_eq!(node.body["rules"].as_array().map(Vec::len), Some(25));
    let bound = get(&server, &format!("{RBAC}/clusterrolebindings/system:node")).await;
    assert_eq!((bound.status, bound.body.get("subjects")), (200, None), "nodes have another authorizer");
    // Rights follow from them at once.
    let manager = as_user(&server, "system:kube-controller-manager", MAPS, None).await;
    assert_eq!(manager.status, 200, "{manager:?}");
    let nobody = as_user(&server, "system:nobody", MAPS, None).await;
    assert_eq!(nobody.status, 403, "{nobody:?}");
    let reader = format!("{RBAC}/namespaces/kube-system/roles/extension-apiserver-authentication-reader");
    assert_eq!(get(&server, &reader).await.status, 200);
}

#[tokio::test]
async fn controllers_and_the_scheduler_have_their_rights() {
    let server = Server::builder().build().await.unwrap();
    let may = async |user: &str, path: &str| as_user(&server, user, path, None).await.status;
    let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    assert_eq!(may(&account("token-cleaner"), secrets).await, 200);
    assert_eq!(may(&account("token-cleaner"), "/api/v1/namespaces/default/secrets").await, 403);
    assert_eq!(may(&account("replicaset-controller"), "/apis/apps/v1/replicasets").await, 200);
    assert_eq!(may(&account("replicaset-controller"), "/apis/batch/v1/jobs").await, 403);
    assert_eq!(may("system:kube-scheduler", "/api/v1/nodes").await, 200);
    assert_eq!(may("system:kube-scheduler", "/apis/resource.k8s.io/v1/resourceslices").await, 200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    assert_eq!(may("system:kube-controller-manager", leases).await, 200);
    let role =
        get(&server, &format!("{RBAC}/clusterroles/system:controller:pod-garbage-collector")).await.body;
    assert_eq!(role["metadata"]["labels"], json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    assert_eq!(
        role["metadata"]["annotations"],
        json!({"rbac.authorization.kubernetes.io/autoupdate": "true"})
    );
    let bindings = get(&server, &format!("{RBAC}/clusterrolebindings")).await.body;
    let names: Vec<&str> = bindings["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    let of_controllers = names.iter().filter(|name| name.starts_with("system:controller:")).count();
    assert_eq!(of_controllers, 38, "{names:?}");
}

#[tokio::test]
async fn default_roles_and_bindings_are_completed_at_each_start() {
    let server = Server::builder().build().await.unwrap();
    let (roles, bindings) = (format!("{RBAC}/clusterroles"), format!("{RBAC}/clusterrolebindings"));
    let dns = |what: &str| format!("{what}/system:kube-dns");
    let proxier = |what: &str| format!("{what}/system:node-proxier");
    let none =
        json!({"rules": [], "subjects": [], "metadata": {"labels": {"kubernetes.io/bootstrapping": null}}});
    for changed in [dns(&roles), dns(&bindings)] {
        assert_eq!(merge(&server, &changed, &none).await.status, 200);
    }
    let own = json!({"rules": [], "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}});
    assert_eq!(merge(&server, &proxier(&roles), &own).await.status, 200);
    let selectors = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"mine": "1"}}]}});
    assert_eq!(merge(&server, &format!("{roles}/view"), &selectors).await.status, 200);
    // A role reference cannot be changed, so the binding is another.
    assert_eq!(delete(&server, &proxier(&bindings), None).await.status, 200);
    let mut other = binding("system:node-proxier", "view", "ann");
    other["roleRef"]["kind"] = "ClusterRole".into();
    assert_eq!(post(&server, &bindings, &other).await.status, 201);
    let kept = get(&server, &format!("{roles}/system:discovery")).await.body;

    let server = Server::builder().store(server.store().clone()).build().await.unwrap();
    let role = get(&server, &dns(&roles)).await.body;
    assert_eq!(role["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
    let rules = role["rules"].as_array().unwrap();
    let one =
        |verb: &str, resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": [verb]});
    for rule in [
        one("list", "endpoints"),
        one("watch", "endpoints"),
        one("list", "services"),
        one("watch", "services"),
    ] {
        assert!(rules.contains(&rule), "{rules:?}");
    }
    let subjects = &get(&server, &dns(&bindings)).await.body["subjects"];
    assert_eq!(
        *subjects,
        json!([{"kind": "ServiceAccount", "name": "kube-dns", "namespace": "kube-system"}])
    );
    assert!(get(&server, &proxier(&roles)).await.body["rules"].is_null());
    let view = get(&server, &format!("{roles}/view")).await.body;
    let aggregates = json!({"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}});
    assert_eq!(
        view["aggregationRule"]["clusterRoleSelectors"],
        json!([{"matchLabels": {"mine": "1"}}, aggregates])
    );
    let replaced = get(&server, &proxier(&bindings)).await.body;
    assert_eq!(replaced["roleRef"]["name"], "system:node-proxier");
    assert_eq!(replaced["subjects"][0]["name"], "system:kube-proxy");
    assert_eq!(get(&server, &format!("{roles}/system:discovery")).await.body, kept);
}

#[tokio::test]
async fn default_roles_and_bindings_are_owned_as_if_they_had_been_sent() {
    let server = Server::builder().build().await.unwrap();
    let each = [
        "clusterroles/view",
        "clusterroles/system:discovery",
        "clusterrolebindings/system:kube-dns",
        "namespaces/kube-system/roles/system:controller:token-cleaner",
    ];
    for path in each {
        let made = get(&server, &format!("{RBAC}/{path}")).await.body;
        let (plural, name) = path.rsplit_once('/').unwrap();
        let mut again = made.clone();
        again["metadata"] = json!({"name": format!("{name}-again"), "labels": made["metadata"]["labels"],
            "annotations": made["metadata"]["annotations"]});
        let again = post(&server, &format!("{RBAC}/{plural}"), &again).await;
        assert_eq!(again.status, 201, "{again:?}");
        let fields = |object: &Value| {
            let mut fields = object["metadata"]["managedFields"][0].clone();
            fields["time"].take();
            fields["manager"].take();
            fields
        };
        assert_eq!(made["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
        assert_eq!(made["metadata"]["managedFields"].as_array().unwrap().len(), 1);
        assert_eq!(fields(&made), fields(&again.body), "{path}");
    }
}
