//! The whole chain with the real kubectl: an API server, our manifests in it, and `admit serve` called by it over TLS.
//!
//! The scenario is the same for two API servers: the embedded one, always; and, where `KUBEBUILDER_ASSETS` names a folder
//! with `etcd` and `kube-apiserver` (the convention of envtest), a real one.

mod apiserver;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::apiserver::ApiServer;
use crate::repository::root;
use crate::serve::server::{Place, Serving};

/// A cluster as kubectl sees it, and a webhook beside it.
struct Cluster<'a> {
    api: &'a ApiServer,
    place: &'a Place,
}

#[test]
fn the_embedded_api_server_calls_the_webhook() {
    if has_kubectl() {
        scenario(&ApiServer::embedded());
    } else {
        eprintln!("SKIPPED: there is no kubectl on the PATH");
    }
}

#[test]
fn a_real_api_server_calls_the_webhook() {
    match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) if has_kubectl() => scenario(&ApiServer::real(Path::new(&assets))),
        Some(_) => eprintln!("SKIPPED: there is no kubectl on the PATH"),
        None => eprintln!("SKIPPED: KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver"),
    }
}

fn has_kubectl() -> bool {
    Command::new("kubectl").args(["version", "--client"]).output().is_ok()
}

/// Install, deny in the right words, rotate certificates under load, and be killed and come back.
fn scenario(api: &ApiServer) {
    let place = Place::new();
    let cluster = Cluster { api, place: &place };
    cluster.works(&["apply", "-k", path(&root().join("deploy/crds"))]);
    cluster.works(&["apply", "-f", path(&root().join("deploy/namespace.yaml"))]);
    cluster.works(&["apply", "-f", path(&root().join("deploy/rbac.yaml"))]);

    let policies = root().join("policies").display().to_string();
    let serving = place.start(&["--policies", &policies, "--shutdown-delay", "0"]);
    cluster.register(&serving);
    cluster.denies_and_allows();
    cluster.certificates_change_under_load();

    // Killed: what is guarded with `failurePolicy: Fail` is refused, not let through.
    serving.signal("-KILL");
    drop(serving);
    let refused = cluster.dry_run("after-a-kill");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("failed calling webhook"), "{said}");
    let serving = place.start(&["--policies", &policies, "--shutdown-delay", "0"]);
    // At another port: what a Service would hide.
    cluster.register(&serving);
    cluster.denies_and_allows();
    assert!(serving.terminate().success());
}

impl Cluster<'_> {
    fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.api.kubeconfig()).args(args).env("HOME", self.place.path("."));
        command.output().unwrap()
    }

    fn works(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The shipped webhook configuration, with the address of this machine in place of the Service.
    fn register(&self, serving: &Serving) {
        let text = fs::read_to_string(root().join("deploy/webhook.yaml")).unwrap();
        let mut configuration: Value = serde_saphyr::from_str(&text).unwrap();
        let bundle = STANDARD.encode(self.place.authority.certificate_pem());
        for webhook in configuration["webhooks"].as_array_mut().unwrap() {
            let route = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            let url = format!("https://{}{route}", serving.webhook);
            webhook["clientConfig"] = json!({"url": url, "caBundle": bundle});
        }
        self.place.write("webhook.json", &configuration.to_string());
        self.works(&["apply", "-f", path(&self.place.path("webhook.json"))]);
    }

    /// Asks for a DataGather of this name, and leaves none.
    fn dry_run(&self, name: &str) -> Output {
        let object = json!({
            "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather", "metadata": {"name": name},
            "spec": {},
        });
        let file = self.place.path(&format!("{name}.json"));
        fs::write(&file, object.to_string()).unwrap();
        self.kubectl(&["create", "--dry-run=server", "-f", path(&file)])
    }

    /// Also waits for the API server to have learnt of the webhook: a real one takes a moment.
    fn denies_and_allows(&self) {
        let expected = "ValidatingAdmissionPolicy 'datagather-reserved-names' with binding \
                        'datagather-reserved-names' denied request: names with the prefix periodic are reserved";
        let mut said = String::new();
        // Until then it lets through, or calls where nobody is any more.
        let denied = (0..100).any(|_| {
            said = String::from_utf8_lossy(&self.dry_run("periodic-1").stderr).into_owned();
            said.contains(expected)
        });
        assert!(denied, "{said}");
        let allowed = self.dry_run("welcome");
        assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    }

    /// New leaves of the same authority, while the API server goes on asking.
    fn certificates_change_under_load(&self) {
        let done = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut asked = 0;
                while !done.load(Ordering::Relaxed) || asked < 5 {
                    let output = self.dry_run("meanwhile");
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                    asked += 1;
                }
            });
            for _ in 0..3 {
                drop(self.place.renew());
                self.denies_and_allows();
            }
            done.store(true, Ordering::Relaxed);
            asking.join().unwrap();
        });
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
