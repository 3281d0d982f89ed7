//! A cluster that is spoke and hub at once, as admit is installed on it, with its keeper under its own account.

use admit::controllers::kit::clock::Clock;
use admit::controllers::observability::Settings;
use admit::controllers::observability::crd::ObservabilityAddon;
use admit::controllers::observability::endpoint::EndpointSettings;
use admit::controllers::observability::hub::HubSettings;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::{Meaning, SEED, Vocabulary};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{HUB, SPOKE, addon, told};
use crate::support::cluster::PATIENCE;
use crate::support::testcluster::{Process, TestCluster};

pub(super) const NAME: &str = "observability-addon";
pub(super) const PROMETHEUS: (&str, &str) = ("openshift-monitoring", "prometheus-k8s");

pub(super) struct Place {
    pub(super) cluster: TestCluster,
}

impl Place {
    pub(super) async fn new() -> Self {
        let place = Self { cluster: TestCluster::new().await };
        for name in [SPOKE, HUB, PROMETHEUS.0] {
            place.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        }
        place
    }

    pub(super) async fn create(&self, object: &Value) {
        self.cluster.create(object).await;
    }

    /// The account of the keeper, on a wire of its own.
    pub(super) fn account(&self) -> Process {
        self.cluster.process("admit-observability")
    }

    pub(super) fn addons(&self, namespace: &str) -> Api<ObservabilityAddon> {
        Api::namespaced(self.cluster.admin.clone(), namespace)
    }

    pub(super) async fn until(
        &self,
        namespace: &str,
        wanted: impl Fn(&ObservabilityAddon) -> bool,
    ) -> ObservabilityAddon {
        let api = self.addons(namespace);
        let so = |object: Option<&ObservabilityAddon>| object.is_some_and(&wanted);
        match timeout(PATIENCE, await_condition(api.clone(), NAME, so)).await {
            Ok(found) => found.unwrap().unwrap(),
            Err(_) => panic!("{namespace}: gave up waiting: {:#?}", api.get_opt(NAME).await),
        }
    }

    /// Waits until the add-on in `namespace` says so.
    pub(super) async fn until_told(&self, namespace: &str, wanted: &str) -> ObservabilityAddon {
        self.until(namespace, |object| told(&json!(object)) == [wanted]).await
    }

    pub(super) async fn until_gone(&self, namespace: &str) {
        let api = self.addons(namespace);
        let gone = |object: Option<&ObservabilityAddon>| object.is_none();
        let waited = timeout(PATIENCE, await_condition(api.clone(), NAME, gone)).await;
        assert!(waited.is_ok(), "{namespace}: it stays: {:#?}", api.get_opt(NAME).await);
    }

    pub(super) async fn patch(&self, namespace: &str, patch: Value) {
        self.addons(namespace).patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// A component reports, as the endpoint operator's account, which may say everything.
    pub(super) async fn report(&self, component: &'static str, meaning: Meaning) -> Outcome {
        self.report_as(&SEED, component, meaning).await
    }

    /// The same in other words.
    pub(super) async fn report_as(
        &self,
        vocabulary: &'static Vocabulary,
        component: &'static str,
        meaning: Meaning,
    ) -> Outcome {
        let report = Report::of(vocabulary, component, meaning, format!("{meaning:?}")).unwrap();
        Reporter::new(self.account().client, vocabulary).report(&report).await.unwrap()
    }

    /// The definition of ManagedClusterAddOns, and the one of the hub's namespace.
    pub(super) async fn display(&self) -> Api<DynamicObject> {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let name = "managedclusteraddons.addon.open-cluster-management.io";
        self.create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {
                "group": "addon.open-cluster-management.io", "scope": "Namespaced",
                "names": {"kind": "ManagedClusterAddOn", "plural": "managedclusteraddons",
                    "singular": "managedclusteraddon", "listKind": "ManagedClusterAddOnList"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}],
            },
        }))
        .await;
        let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.admin.clone());
        let established = await_condition(definitions, name, is_crd_established());
        timeout(PATIENCE, established).await.unwrap().unwrap();
        self.create(&json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": {"name": "observability-controller", "namespace": HUB}, "spec": {},
        }))
        .await;
        let kind =
            GroupVersionKind::gvk("addon.open-cluster-management.io", "v1alpha1", "ManagedClusterAddOn");
        let resource = ApiResource::from_gvk_with_plural(&kind, "managedclusteraddons");
        Api::namespaced_with(self.cluster.admin.clone(), HUB, &resource)
    }

    /// The collector's Deployment, new or changed.
    pub(super) async fn roll_out(&self, name: &str, image: &str) {
        let labels = json!({"app": name});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SPOKE},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
            },
        });
        let (as_tests, wanted) = (PatchParams::apply("tests").force(), Patch::Apply(deployment));
        self.deployments().patch(name, &as_tests, &wanted).await.unwrap();
    }

    pub(super) fn deployments(&self) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
        Api::namespaced_with(self.cluster.admin.clone(), SPOKE, &resource)
    }
}

/// The hub is another namespace of the same server.
pub(super) fn with_hub() -> Settings {
    Settings {
        hub: Some(HubSettings { namespace: HUB.to_owned(), kubeconfig: None }),
        ..Settings::new(&SEED)
    }
}

pub(super) fn asking_for_prometheus() -> Settings {
    let (namespace, name) = PROMETHEUS;
    let prometheus = Some((namespace.to_owned(), name.to_owned()));
    Settings { endpoint: Some(EndpointSettings { prometheus }), ..Settings::new(&SEED) }
}

pub(super) fn at(clock: Clock, settings: Settings) -> Settings {
    Settings { clock, ..settings }
}

pub(super) fn with(namespace: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut object = addon(namespace);
    edit(&mut object);
    object
}
