//! What the shipped roles allow: the controller's own account against the embedded API server, which authorises by them.

use admit::controllers::datagather::{TokenSettings, run};
use admit::gather::upload::TokenSource;
use admit_apiserver::{Identity, Server};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, condition, message, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::support::cluster::PATIENCE;
use crate::support::shipped::{create, documents};

/// The API server with definitions and roles as they are shipped, and a client for the account that uploads.
pub(super) struct Shipped {
    pub(super) server: Server,
    pub(super) admin: Client,
    pub(super) controllers: Client,
}

impl Shipped {
    pub(super) async fn new() -> Self {
        let server = Server::builder().build().await.unwrap();
        let admin = Client::new(server.router(), "default");
        let rights = documents("deploy/rbac.yaml");
        for namespace in ["admit-system", "openshift-config"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            create(&admin, &namespace).await;
        }
        for document in documents("deploy/crds/datagathers.yaml").iter().chain(&rights) {
            create(&admin, document).await;
        }
        let bound = rights.iter().find(|document| {
            document["kind"] == "ClusterRoleBinding" && document["metadata"]["name"] == "admit-pull-secret"
        });
        let account = &bound.unwrap()["subjects"][0];
        let (namespace, name) = (&account["namespace"], &account["name"]);
        let user =
            format!("system:serviceaccount:{}:{}", namespace.as_str().unwrap(), name.as_str().unwrap());
        let identity = Identity::new(user, ["system:serviceaccounts".to_owned()]);
        let controllers = Client::new(server.router().layer(axum::Extension(identity)), "default");
        Self { server, admin, controllers }
    }

    async fn secret(&self, name: &str, token: &str) {
        let login = json!({"auths": {"cloud.openshift.com": {"auth": token}}}).to_string();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "openshift-config"},
            "data": {".dockerconfigjson": STANDARD.encode(login)},
        });
        create(&self.admin, &secret).await;
    }
}

#[tokio::test]
async fn of_all_secrets_the_pull_secret_may_be_read() {
    let shipped = Shipped::new().await;
    shipped.secret("pull-secret", "canary-4711").await;
    shipped.secret("other", "hidden").await;
    TokenSource::pull_secret(shipped.controllers.clone()).read().await.unwrap();
    let other = TokenSource::Secret {
        client: shipped.controllers,
        namespace: "openshift-config".to_owned(),
        name: "other".to_owned(),
        key: ".dockerconfigjson".to_owned(),
        registry: "cloud.openshift.com".to_owned(),
    };
    let error = other.read().await.unwrap_err().to_string();
    let start = "cannot read Secret openshift-config/other: secrets \"other\" is forbidden: User \"system:serviceaccount:";
    assert!(error.starts_with(start), "{error}");
    assert!(error.ends_with("in the namespace \"openshift-config\""), "{error}");
}

/// From a DataGather to its upload with nothing but the shipped rights; a token that may not be read is told in the server's
/// words, and only in these.
#[tokio::test]
async fn the_shipped_rights_suffice_for_an_upload() {
    let shipped = Shipped::new().await;
    shipped.secret("pull-secret", "canary-4711").await;
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let other = TokenSettings::Secret {
        namespace: "openshift-config".to_owned(),
        name: "other".to_owned(),
        key: "token".to_owned(),
    };
    for (name, token, uploaded) in
        [("first", TokenSettings::PullSecret, "True/HttpStatus202"), ("second", other, "False/HttpStatus0")]
    {
        let bench = Bench::new();
        let mut settings = uploading(&bench, &service);
        settings.namespace = "admit-system".to_owned();
        settings.upload.as_mut().unwrap().token = token;
        let shutdown = CancellationToken::new();
        let controller = tokio::spawn(run(shipped.controllers.clone(), settings, shutdown.clone()));
        let object = json!({
            "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": name}, "spec": {"dataPolicy": "ObfuscateNetworking"},
        });
        create(&shipped.admin, &object).await;
        let kind = GroupVersionKind::gvk("insights.openshift.io", "v1alpha1", "DataGather");
        let api: Api<DynamicObject> = Api::all_with(shipped.admin.clone(), &ApiResource::from_gvk(&kind));
        let over = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| {
                matches!(object.data["status"]["dataGatherState"].as_str(), Some("Completed" | "Failed"))
            })
        };
        let ended = tokio::time::timeout(PATIENCE, await_condition(api, name, over)).await.unwrap().unwrap();
        let status = ended.unwrap().data["status"].clone();
        assert_eq!(condition(&status, "DataUploaded"), uploaded, "{status:#}");
        let text = status.to_string();
        assert!(!text.contains("ApiError") && !text.contains("Status {"), "a dump shows: {status:#}");
        for row in status["gatherers"].as_array().unwrap() {
            assert_ne!(condition(row, "DataGathered"), "False/GatherError", "{row:#}");
        }
        if name == "second" {
            let told = message(&status, "DataUploaded");
            assert!(
                told.starts_with(
                    "cannot read Secret openshift-config/other: secrets \"other\" is forbidden: "
                ),
                "{told}"
            );
        }
        shutdown.cancel();
        controller.await.unwrap().unwrap();
    }
}
