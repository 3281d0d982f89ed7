//! The start, use and stop of three harnesses, flag by flag: controller-runtime's envtest, fabric8's kube-api-test and
//! jenvtest, which sends what kube-api-test sends.

use std::fs;
use std::process::Command;
use std::time::Instant;

use futures::TryStreamExt as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use testing::free_port;

use super::harness::{Authority, Pair, Place, Process, client_of, own_client, own_serving};

/// controller-runtime: what a suite starts before its first test.
pub(super) struct Envtest {
    pub(super) place: Place,
    pub(super) ports: (u16, u16),
    pub(super) serving: Authority,
    pub(super) clients: Authority,
}

impl Envtest {
    pub(super) fn new(args: &[&str]) -> Self {
        Self {
            place: Place::new(args),
            ports: (free_port().unwrap(), free_port().unwrap()),
            serving: Authority::new(),
            clients: Authority::new(),
        }
    }

    pub(super) fn etcd(&self) -> Process {
        let (port, peer) = (self.ports.0, free_port().unwrap());
        // Asked of the help first: `^\s*--unsafe-no-fsync\b`.
        assert!(self.has_flag("etcd", "unsafe-no-fsync"));
        let mut etcd = self.place.start(
            "etcd",
            &[
                format!("--advertise-client-urls=http://127.0.0.1:{port}"),
                format!("--data-dir={}", self.place.text("etcd")),
                format!("--listen-client-urls=http://127.0.0.1:{port}"),
                format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
                "--unsafe-no-fsync=true".to_owned(),
            ],
        );
        etcd.wait_for(port, "/health", false);
        etcd
    }

    fn apiserver(&self) -> Process {
        self.apiserver_with(&[])
    }

    /// With flags of the suite's own.
    fn apiserver_with(&self, more: &[String]) -> Process {
        let mut apiserver = self.start_apiserver("RBAC", more);
        apiserver.wait_for(self.ports.1, "/healthz", true);
        apiserver
    }

    pub(super) fn start_apiserver(&self, authorization: &str, more: &[String]) -> Process {
        let (etcd, port) = self.ports;
        assert!(!self.has_flag("kube-apiserver", "insecure-port"));
        let folder = self.place.path("certificates");
        if !folder.exists() {
            fs::create_dir(&folder).unwrap();
            self.serving.serving().write(&folder.join("apiserver.crt"), &folder.join("apiserver.key"));
            let signer = Authority::new();
            signer.pair.write(&folder.join("sa-signer.crt"), &folder.join("sa-signer.key"));
            fs::write(folder.join("client-cert-auth-ca.crt"), &self.clients.pair.certificate).unwrap();
        }
        let folder = folder.to_str().unwrap();
        self.place.start(
            "kube-apiserver",
            &[
                "--allow-privileged=true".to_owned(),
                format!("--authorization-mode={authorization}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--cert-dir={folder}"),
                format!("--client-ca-file={folder}/client-cert-auth-ca.crt"),
                "--disable-admission-plugins=ServiceAccount".to_owned(),
                format!("--etcd-servers=http://127.0.0.1:{etcd}"),
                format!("--secure-port={port}"),
                format!("--service-account-issuer=https://127.0.0.1:{port}/"),
                format!("--service-account-key-file={folder}/sa-signer.crt"),
                format!("--service-account-signing-key-file={folder}/sa-signer.key"),
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            ]
            .iter()
            .chain(more)
            .cloned()
            .collect::<Vec<_>>(),
        )
    }

    fn has_flag(&self, program: &str, flag: &str) -> bool {
        let help = Command::new(self.place.assets.join(program)).arg("--help").output().unwrap();
        assert!(help.status.success());
        let text = String::from_utf8([help.stdout, help.stderr].concat()).unwrap();
        let begins = |line: &str| {
            let rest = line.trim_start().strip_prefix("--").and_then(|line| line.strip_prefix(flag));
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        };
        text.lines().any(begins)
    }

    pub(super) async fn client(&self) -> Client {
        let admin = self.clients.client("default", "system:masters");
        client_of(self.ports.1, &self.serving.pair.certificate, &admin).await
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn envtest_starts_uses_and_stops_the_pair() {
    let envtest = Envtest::new(&[]);
    let (etcd, apiserver) = (envtest.etcd(), envtest.apiserver());
    let client = envtest.client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let names = namespaces.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = names.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"], "none of ours");
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let own = services.get("kubernetes").await.unwrap().spec.unwrap();
    assert_eq!(own.cluster_ip.as_deref(), Some("10.0.0.1"));
    // A machine that nothing can be sent from has no address to show.
    let slices: Api<EndpointSlice> = Api::default_namespaced(client.clone());
    if let Some(slice) = slices.get_opt("kubernetes").await.unwrap() {
        assert!(!slice.endpoints.unwrap_or_default().is_empty());
    }
    // Neither accounts nor collectors.
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({"metadata": {"name": "pod"}, "spec": {"containers": [
        {"name": "c", "image": "i", "securityContext": {"privileged": true}}
    ]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::all(client.clone());
    assert!(accounts.list(&ListParams::default()).await.unwrap().items.is_empty());
    let named = serde_json::from_value(json!({"metadata": {"name": "going"}})).unwrap();
    namespaces.create(&PostParams::default(), &named).await.unwrap();
    namespaces.delete("going", &DeleteParams::default()).await.unwrap();
    let going = namespaces.get("going").await.unwrap();
    assert_eq!(going.status.as_ref().unwrap().phase.as_deref(), Some("Terminating"));
    let mut finalized = serde_json::to_value(going).unwrap();
    finalized["spec"]["finalizers"] = json!([]);
    let finalize = http::Request::put("/api/v1/namespaces/going/finalize")
        .header("content-type", "application/json")
        .body(finalized.to_string().into_bytes())
        .unwrap();
    client.request::<serde_json::Value>(finalize).await.unwrap();
    assert!(namespaces.get_opt("going").await.unwrap().is_none());
    // Another user is nobody yet.
    let joe = envtest.clients.client("joe", "dev");
    let joe = client_of(envtest.ports.1, &envtest.serving.pair.certificate, &joe).await;
    let refused = Api::<ConfigMap>::default_namespaced(joe).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("User \"joe\" cannot list resource \"configmaps\""), "{refused}");
    assert!(apiserver.stop().success() && etcd.stop().success());
}

/// As suites of cluster-api ask for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_log_has_what_the_policy_of_the_suite_names() {
    let envtest = Envtest::new(&[]);
    let (policy, log) = (envtest.place.path("policy.yaml"), envtest.place.path("logs/audit.log"));
    let rules = json!([{"level": "RequestResponse", "verbs": ["create"],
        "resources": [{"group": "", "resources": ["configmaps"]}]}]);
    let text = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules});
    fs::write(&policy, text.to_string()).unwrap();
    let flags = [
        format!("--audit-log-path={}", log.display()),
        "--audit-log-format=json".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        "--audit-log-maxage=0".to_owned(),
        "--audit-log-maxbackup=0".to_owned(),
        "--audit-log-maxsize=0".to_owned(),
    ];
    let (etcd, apiserver) = (envtest.etcd(), envtest.apiserver_with(&flags));
    let maps: Api<ConfigMap> = Api::default_namespaced(envtest.client().await);
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    maps.get("a").await.unwrap();
    assert!(apiserver.stop().success() && etcd.stop().success());
    let text = fs::read_to_string(&log).unwrap();
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [event] = &events[..] else { panic!("one is named: {text}") };
    assert_eq!(event["stage"], "ResponseComplete");
    assert_eq!(event["requestObject"]["data"], json!({"a": "1"}));
    assert_eq!(event["responseObject"]["metadata"]["name"], "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_signed_and_believed_by_the_keys_of_the_flags() {
    let envtest = Envtest::new(&[]);
    let (_etcd, _apiserver) = (envtest.etcd(), envtest.apiserver());
    let client = envtest.client().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account = serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let asked: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let token = accounts.create_token_request("robot", &PostParams::default(), &asked).await.unwrap();
    let token = token.status.unwrap().token;
    let reviews: Api<TokenReview> = Api::all(client);
    let review = serde_json::from_value(json!({"metadata": {}, "spec": {"token": token}})).unwrap();
    let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    assert_eq!(status.authenticated, Some(true));
    let issuer = format!("https://127.0.0.1:{}/", envtest.ports.1);
    assert_eq!(status.audiences, Some(vec![issuer]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_comes_again_finds_what_was_there() {
    let envtest = Envtest::new(&[]);
    let (etcd, apiserver) = (envtest.etcd(), envtest.apiserver());
    let maps: Api<ConfigMap> = Api::default_namespaced(envtest.client().await);
    let made = maps.create(&PostParams::default(), &map("kept")).await.unwrap();
    assert!(apiserver.stop().success());
    let apiserver = envtest.apiserver();
    let maps: Api<ConfigMap> = Api::default_namespaced(envtest.client().await);
    assert_eq!(maps.get("kept").await.unwrap().uid(), made.uid());
    // As killed as harnesses kill it.
    maps.create(&PostParams::default(), &map("killed")).await.unwrap();
    apiserver.kill();
    let second = envtest.apiserver();
    let maps: Api<ConfigMap> = Api::default_namespaced(envtest.client().await);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 2);
    // The objects are those of the etcd: without it there are none.
    etcd.kill();
    let (status, log) = second.ended();
    assert!(!status.success() && log.contains("has ended, whose objects these are"), "{log}");
    let (_etcd, _apiserver) = (envtest.etcd(), envtest.apiserver());
    let maps: Api<ConfigMap> = Api::default_namespaced(envtest.client().await);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 2, "its folder has them");
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_do_not_hold_up_the_end() {
    const WATCHES: usize = 50;
    let envtest = Envtest::new(&[]);
    let (_etcd, apiserver) = (envtest.etcd(), envtest.apiserver());
    let client = envtest.client().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("seen")).await.unwrap();
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let mut watch = Box::pin(maps.watch(&WatchParams::default(), "0").await.unwrap());
        watch.try_next().await.unwrap().unwrap();
        watches.push(watch);
    }
    // All are open, and each is told the end, not cut: that would be the drain of 5 s.
    let stopping = tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        (apiserver.stop(), began.elapsed())
    });
    for mut watch in watches {
        while watch.try_next().await.unwrap().is_some() {}
    }
    let (status, took) = stopping.await.unwrap();
    assert!(status.success());
    assert!(took.as_secs() < 5, "as long as a drain: {took:?}");
}

/// What users of envtest ask for: `--controllers`, when the folder is made or as a flag.
#[tokio::test(flavor = "multi_thread")]
async fn controllers_run_where_the_folder_was_asked_for_them() {
    let envtest = Envtest::new(&["--controllers", "namespace,garbage-collector,serviceaccount"]);
    let (_etcd, _apiserver) = (envtest.etcd(), envtest.apiserver());
    let client = envtest.client().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    accounts.get("default").await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    let named = serde_json::from_value(json!({"metadata": {"name": "going"}})).unwrap();
    namespaces.create(&PostParams::default(), &named).await.unwrap();
    namespaces.delete("going", &DeleteParams::default()).await.unwrap();
    while namespaces.get_opt("going").await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}

/// Else whoever reaches the port could do everything.
#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_credentials_is_refused_where_everybody_may_do_everything() {
    let envtest = Envtest::new(&[]);
    let _etcd = envtest.etcd();
    let mut apiserver = envtest.start_apiserver("RBAC,AlwaysAllow", &[]);
    apiserver.wait_for_status(401, envtest.ports.1, "/healthz", true);
    let maps: Api<ConfigMap> = Api::default_namespaced(envtest.client().await);
    maps.create(&PostParams::default(), &map("made")).await.unwrap();
}

/// The modes and the plugin that kubeadm sets, and a file that sets plugins up.
#[tokio::test(flavor = "multi_thread")]
async fn kubelets_have_the_rights_of_their_nodes() {
    let envtest = Envtest::new(&[]);
    let etcd = envtest.etcd();
    let settings = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n\
                    plugins: [{name: PodSecurity, path: standards.yaml}]\n";
    let standards = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
                     defaults: {enforce: baseline}\n";
    fs::write(envtest.place.path("admission.yaml"), settings).unwrap();
    fs::write(envtest.place.path("standards.yaml"), standards).unwrap();
    let mut apiserver = envtest.start_apiserver(
        "Node,RBAC",
        &[
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            format!("--admission-control-config-file={}", envtest.place.text("admission.yaml")),
        ],
    );
    apiserver.wait_for(envtest.ports.1, "/healthz", true);
    let user = envtest.clients.client("system:node:n1", "system:nodes");
    let kubelet = client_of(envtest.ports.1, &envtest.serving.pair.certificate, &user).await;
    let nodes: Api<Node> = Api::all(kubelet.clone());
    let node = |name: &str| -> Node { serde_json::from_value(json!({"metadata": {"name": name}})).unwrap() };
    nodes.create(&PostParams::default(), &node("n1")).await.unwrap();
    let other = nodes.create(&PostParams::default(), &node("n2")).await.unwrap_err().to_string();
    assert!(other.contains("node \"n1\" is not allowed to modify node \"n2\""), "{other}");
    let all = nodes.list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(all.contains("node 'n1' cannot read all nodes, only its own Node object"), "{all}");
    let pods: Api<Pod> = Api::default_namespaced(envtest.client().await);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let refused = pods.create(&PostParams::default(), &pod).await.unwrap_err().to_string();
    assert!(refused.contains("violates PodSecurity \"baseline:latest\": "), "{refused}");
    assert!(apiserver.stop().success() && etcd.stop().success());
}

/// fabric8's kube-api-test, and jenvtest before it: values after spaces, single dashes, flags given twice, one pair of
/// certificates that signs itself for each side, and SIGKILL at the end.
#[tokio::test(flavor = "multi_thread")]
async fn kube_api_test_starts_uses_and_stops_the_pair() {
    let place = Place::new(&[]);
    let (client_port, peer, port) = (free_port().unwrap(), free_port().unwrap(), free_port().unwrap());
    let [data, wal, folder] = ["data", "wal", "certificates"].map(|name| {
        fs::create_dir(place.path(name)).unwrap();
        place.text(name)
    });
    let (serving, user): (Pair, Pair) = (own_serving(), own_client("kubeapitest", "system:masters"));
    let [certificate, key] = ["apiserver.crt", "apiserver.key"].map(|name| format!("{folder}/{name}"));
    serving.write(certificate.as_ref(), key.as_ref());
    user.write(format!("{folder}/client.crt").as_ref(), format!("{folder}/client.key").as_ref());
    let words = |text: String| text.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>();
    // The API server does not wait for etcd, nor does the harness.
    let mut apiserver = place.start(
        "kube-apiserver",
        &words(format!(
            "--cert-dir {folder} --secure-port {port} --etcd-servers http://0.0.0.0:{client_port} \
             --authorization-mode RBAC --service-account-issuer https://localhost \
             --service-account-signing-key-file {key} --service-account-signing-key-file {key} \
             --service-account-key-file {key} --service-account-issuer {certificate} \
             --disable-admission-plugins ServiceAccount --client-ca-file {folder}/client.crt \
             --service-cluster-ip-range 10.0.0.0/24 --allow-privileged"
        )),
    );
    let etcd = place.start(
        "etcd",
        &words(format!(
            "-data-dir {data} -wal-dir {wal} --listen-client-urls http://0.0.0.0:{client_port} \
             --advertise-client-urls http://0.0.0.0:{client_port} --initial-cluster default=http://localhost:{peer} \
             --initial-advertise-peer-urls http://localhost:{peer} --listen-peer-urls http://localhost:{peer}"
        )),
    );
    apiserver.wait_for(port, "/readyz", true);
    let kubectl = place.assets.join("kubectl");
    if kubectl.exists() {
        let asked = Command::new(kubectl)
            .env("KUBECONFIG", format!("{folder}/.kubeconfig"))
            .args([
                format!("--client-certificate={folder}/client.crt"),
                format!("--client-key={folder}/client.key"),
                format!("--certificate-authority={certificate}"),
                format!("--server=https://127.0.0.1:{port}"),
            ])
            .args(["--request-timeout=5s", "get", "ns", "default"])
            .output()
            .unwrap();
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    } else {
        testing::skip(testing::Need::Kubectl, "there is no kubectl on the PATH");
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(client_of(port, &serving.certificate, &user).await);
    maps.create(&PostParams::default(), &map("made")).await.unwrap();
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    apiserver.kill();
    assert!(etcd.stop().success());
}
