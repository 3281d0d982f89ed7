//! A cluster as kubectl sees it, and a folder beside it in which `admit serve` and others can be started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::apiserver::ApiServer;
use crate::repository::root;
use crate::serve::server::{Place, Serving};

/// A bound for a busy machine, not an expectation.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Cluster<'a> {
    pub(super) api: &'a ApiServer,
    pub(super) place: Place,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(api: &'a ApiServer) -> Self {
        Self { api, place: Place::new() }
    }

    /// kubectl as the administrator.
    pub(super) fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.api.kubeconfig()).args(args).env("HOME", self.place.path("."));
        command.current_dir(self.place.path(".")).output().unwrap()
    }

    /// What kubectl prints; it must succeed.
    pub(super) fn works(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(output.status.success(), "kubectl {args:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// `object` as a file that kubectl can be given.
    pub(super) fn file(&self, name: &str, object: &Value) -> String {
        let path = self.place.path(name);
        fs::write(&path, object.to_string()).unwrap();
        path.display().to_string()
    }

    /// The definitions that the shipped policies guard, and the namespace of ours.
    pub(super) fn define(&self) {
        self.works(&["apply", "-k", &shipped("deploy/crds")]);
        self.works(&["apply", "-f", &shipped("deploy/namespace.yaml")]);
        // Nothing here listens at the Service that converts: the version that objects are stored in is the only one.
        self.serve_later_versions(false, &[]);
        let established = ["wait", "--for=condition=Established", "--all", "customresourcedefinitions"];
        self.works(&[&established[..], &["--timeout=60s"]].concat());
    }

    /// Has the later versions of DataGathers served, or not, with more changes to the definition.
    fn serve_later_versions(&self, served: bool, more: &[Value]) {
        let serve = |version| json!({"op": "replace", "path": format!("/spec/versions/{version}/served"), "value": served});
        let patch: Vec<Value> = more.iter().cloned().chain([1, 2].map(serve)).collect();
        let datagathers = "customresourcedefinition/datagathers.insights.openshift.io";
        self.works(&["patch", datagathers, "--type=json", "-p", &Value::from(patch).to_string()]);
        // What kubectl found out before is not so any more; it is not there where kubectl found out nothing.
        fs::remove_dir_all(self.place.path(".kube/cache")).ok();
    }

    /// Has the API server convert DataGathers by this webhook, and serve them in all versions.
    pub(super) fn convert_by(&self, serving: &Serving) {
        let bundle = STANDARD.encode(self.place.authority.certificate_pem());
        let url = format!("https://localhost:{}/convert", serving.webhook.port());
        self.serve_later_versions(true, &[called_at(&json!({"url": url, "caBundle": bundle}))]);
    }

    /// As it was defined.
    pub(super) fn convert_no_longer(&self) {
        let shipped = yaml(&root().join("deploy/crds/datagathers.yaml"));
        let config = &shipped["spec"]["conversion"]["webhook"]["clientConfig"];
        self.serve_later_versions(false, &[called_at(config)]);
    }

    /// A kubeconfig by which to be this service account of ours, with the rights in this file of manifests.
    pub(super) fn as_account(&self, name: &str, rights: &str) -> String {
        self.works(&["apply", "-f", rights]);
        let token = self.works(&["create", "token", name, "--namespace=admit-system"]);
        let path = self.place.path(&format!("{name}.kubeconfig"));
        fs::write(&path, self.api.kubeconfig_of(&json!({"token": token.trim()}))).unwrap();
        path.display().to_string()
    }

    /// The shipped webhook configuration, with the address of this machine in place of the Service.
    pub(super) fn register(&self, serving: &Serving) {
        let bundle = STANDARD.encode(self.place.authority.certificate_pem());
        self.register_with(&serving.webhook.port().to_string(), Some(&bundle));
    }

    /// The same at a port of this machine, with another caBundle or none.
    pub(super) fn register_with(&self, port: &str, bundle: Option<&str>) {
        let mut configuration = yaml(&root().join("deploy/webhook.yaml"));
        for webhook in configuration["webhooks"].as_array_mut().unwrap() {
            let route = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            let url = format!("https://localhost:{port}{route}");
            webhook["clientConfig"] = json!({"url": url});
            if let Some(bundle) = bundle {
                webhook["clientConfig"]["caBundle"] = bundle.into();
            }
        }
        self.works(&["apply", "-f", &self.file("webhook.json", &configuration)]);
    }

    /// The shipped webhook configuration with its Service, at another port of that.
    pub(super) fn register_as_shipped(&self, port: u16) {
        let bundle = STANDARD.encode(self.place.authority.certificate_pem());
        let mut configuration = yaml(&root().join("deploy/webhook.yaml"));
        for webhook in configuration["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"]["service"]["port"] = port.into();
            webhook["clientConfig"]["caBundle"] = bundle.as_str().into();
        }
        self.works(&["apply", "-f", &self.file("webhook.json", &configuration)]);
    }

    pub(super) fn unregister(&self) {
        self.works(&["delete", "validatingwebhookconfiguration", "admit"]);
    }

    /// Asks for a DataGather of this name, and leaves none.
    pub(super) fn dry_run(&self, name: &str) -> Output {
        let object = data_gather(name);
        let file = self.file(&format!("{name}.json"), &object);
        self.kubectl(&["create", "--dry-run=server", "-f", &file])
    }

    /// Until `wanted`: an API server takes a moment to learn of what was stored. `state` is what a failure shows.
    pub(super) fn until<T>(&self, state: impl Fn() -> T, wanted: impl Fn(&T) -> bool) -> T
    where
        T: std::fmt::Debug,
    {
        let began = Instant::now();
        loop {
            let now = state();
            if wanted(&now) {
                return now;
            }
            assert!(began.elapsed() < PATIENCE, "gave up waiting: {now:#?}\n{}", self.api.log_tail());
            std::thread::yield_now();
        }
    }
}

/// What it wrote on standard error.
pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) fn data_gather(name: &str) -> Value {
    json!({
        "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather", "metadata": {"name": name}, "spec": {},
    })
}

/// A file or folder of the repository.
pub(super) fn shipped(path: &str) -> String {
    root().join(path).display().to_string()
}

pub(super) fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Every file of policies that is shipped, suites apart.
pub(super) fn policy_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in fs::read_dir(root().join("policies")).unwrap() {
        let folder = folder.unwrap().path();
        let entries = folder.is_dir().then(|| fs::read_dir(&folder).unwrap());
        files.extend(entries.into_iter().flatten().map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.ends_with(".yaml") && !name.ends_with(".suite.yaml") && name != "kustomization.yaml"
    });
    files.sort();
    files
}

/// The change of a definition that has this webhook convert.
fn called_at(config: &Value) -> Value {
    json!({"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": config})
}
