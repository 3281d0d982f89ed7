//! Row 38 for controllers: tokens, passwords, logins of proxies and pull secrets, in a run with every kind of failure that they may be
//! in the middle of. None is in a log at its most talkative, an event, a status, a metric, or what a panic would print.

use std::fs;

use admit::controllers::datagather::{Settings, TokenSettings, member};
use admit::controllers::kit::manager::Manager;
use admit::controllers::kit::observe::Observed;
use admit::controllers::mustgather;
use admit::gather::tunnel::Proxies;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, uploading};
use super::upload::ingress::{Answers, FakeIngress, NAMED_URL};
use crate::support::canaries::{hit, shows};
use crate::support::logs;
use crate::support::relay::{FakeProxy, Manner};
use crate::support::reliability::Row;
use crate::support::sshd::{Sshd, USER, Wanted};
use crate::support::testcluster::{NAMESPACE, TestCluster};

const LOGIN: &str = "robot:canary-proxy-4714";
const USERS: &str = "support";

struct Place {
    cluster: TestCluster,
    bench: Bench,
    /// All that was told so far, besides logs.
    told: Vec<String>,
    failures: usize,
}

impl Place {
    async fn new() -> Self {
        let cluster = TestCluster::new().await;
        cluster.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": USERS}})).await;
        Self { cluster, bench: Bench::new(), told: Vec::new(), failures: 0 }
    }

    /// Runs both controllers until `name` of `kind` has failed, and keeps what was told.
    async fn fails(&mut self, settings: &Settings, object: &Value) {
        self.told.push(format!("{settings:?} {:?}", settings.proxies));
        let process = self.cluster.process("admit-datagather");
        let other = self.cluster.process("admit-mustgather");
        let manager = Manager::new(self.cluster.admin.clone(), None)
            .reports(false)
            .with(member(process.client.clone(), settings.clone()).unwrap())
            .with(mustgather::member(other.client.clone(), mustgather::Settings::new("example.com/admit:1")));
        let (observed, stop) = (Observed::of(&manager), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        self.cluster.create(object).await;
        let name = object["metadata"]["name"].as_str().unwrap();
        let objects = self.objects(object);
        let ended = |object: &Value| {
            object["status"]["dataGatherState"] == "Failed" || object["status"]["status"] == "Failed"
        };
        let status = self.cluster.until(&objects, name, ended).await["status"].clone();
        stop.cancel();
        running.await.unwrap().unwrap();
        self.told.push(format!("{name}: {status}"));
        self.told.push(observed.text());
        self.failures += 1;
    }

    fn objects(&self, object: &Value) -> Api<DynamicObject> {
        if object["kind"] == "DataGather" {
            return self.cluster.objects("insights.openshift.io", "v1alpha1", "DataGather");
        }
        let kind = kube::core::GroupVersionKind::gvk("operator.openshift.io", "v1alpha1", "MustGather");
        let resource = kube::api::ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.cluster.admin.clone(), USERS, &resource)
    }

    fn settings(&self, service: &FakeIngress, name: &str) -> Settings {
        let mut settings = uploading(&self.bench, service);
        settings.namespace = NAMESPACE.to_owned();
        let token = self.bench.dir.path().join(format!("token-{name}"));
        fs::write(&token, "canary-token-4711").unwrap();
        settings.upload.as_mut().unwrap().token = TokenSettings::File(token);
        settings
    }

    async fn gather(&mut self, settings: &Settings, name: &str) {
        let object = json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": name}, "spec": {}});
        self.fails(settings, &object).await;
    }

    /// A MustGather whose server lets nobody in, or whose proxy does not lead there.
    async fn must_gather(
        &mut self,
        settings: &Settings,
        name: &str,
        host: &str,
        proxy: &str,
        secret: &Value,
    ) {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": USERS},
            "stringData": secret});
        self.cluster.create(&object).await;
        let mut spec = json!({"uploadTarget": {"type": "SFTP", "sftp": {
            "caseID": "04123456", "host": host, "caseManagementAccountSecretRef": {"name": name},
        }}});
        if !proxy.is_empty() {
            spec["proxyConfig"] = json!({"httpProxy": proxy, "httpsProxy": proxy});
        }
        let object = json!({"apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
            "metadata": {"name": name, "namespace": USERS}, "spec": spec});
        self.fails(settings, &object).await;
    }

    async fn events(&self) -> Vec<Event> {
        let events: Api<Event> = Api::all(self.cluster.admin.clone());
        events.list(&ListParams::default()).await.unwrap().items
    }
}

/// Proxies that refuse the login, quote it, are not there, or are none.
async fn proxies() -> Vec<(&'static str, String)> {
    let leak = |text: String| -> &'static str { String::leak(text) };
    let login = STANDARD.encode(LOGIN);
    let quoting = [LOGIN.to_owned(), login.clone(), format!("Basic {login}"), "canary-proxy-4714".to_owned()];
    let quoting = quoting.map(|words| Manner::Answer(leak(format!("HTTP/1.1 502 {words}\r\n\r\n"))));
    let another = Manner::Quiet("127.0.0.1:1".parse().unwrap(), Some(("robot", "another")));
    let mut urls = vec![
        ("unreachable", format!("http://{LOGIN}@127.0.0.1:1")),
        ("no-tls", format!("https://{LOGIN}@127.0.0.1:1")),
    ];
    let names = ["refuses", "quotes-plain", "quotes-base64", "quotes-header", "quotes-password"];
    for (name, manner) in names.into_iter().zip([another].into_iter().chain(quoting)) {
        let proxy = FakeProxy::start(manner, false).await;
        urls.push((name, format!("http://{LOGIN}@{}", proxy.address)));
    }
    urls
}

async fn of_archives(place: &mut Place) {
    for (name, mut answers) in [("unauthorized", Answers::refuse(401)), ("broken", Answers::refuse(500))] {
        answers.echo = Some(|sent| format!("{sent} {}", STANDARD.encode(sent)));
        let service = FakeIngress::start(answers).await;
        let settings = place.settings(&service, name);
        place.gather(&settings, name).await;
    }
    let service = FakeIngress::start(Answers::accept("abc")).await;
    for (name, url) in proxies().await {
        let mut settings = place.settings(&service, name);
        settings.upload.as_mut().unwrap().url = NAMED_URL.to_owned();
        settings.proxies = Proxies { https: url, ..Proxies::default() };
        place.gather(&settings, &format!("proxy-{name}")).await;
    }
    // Proxies of the cluster that are none are named, and left out.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "support", "namespace": "openshift-config"},
        "stringData": {"httpsProxy": format!("socks5://{LOGIN}@proxy.test"), "interval": "soon"}});
    place.cluster.create(&secret).await;
    let mut settings = place.settings(&service, "no-proxy");
    settings.upload.as_mut().unwrap().url = NAMED_URL.to_owned();
    place.gather(&settings, "proxy-of-the-cluster").await;
    // Tokens that are none: of a file, and of a pull secret.
    let mut settings = place.settings(&service, "lines");
    let path = place.bench.dir.path().join("token-lines");
    fs::write(&path, "canary-token\ncanary-token").unwrap();
    place.gather(&settings, "token-of-lines").await;
    let logins = [
        ("undecodable", "canary-pull-secret-4715".to_owned()),
        ("elsewhere", json!({"auths": {"registry.test": {"auth": "canary-pull-secret-4715"}}}).to_string()),
        (
            "lines",
            json!({"auths": {"cloud.openshift.com": {"auth": "canary-pull\nsecret-4715"}}}).to_string(),
        ),
    ];
    for (name, text) in logins {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {".dockerconfigjson": text}});
        place.cluster.create(&secret).await;
        settings.upload.as_mut().unwrap().token = TokenSettings::Secret {
            namespace: NAMESPACE.to_owned(),
            name: name.to_owned(),
            key: ".dockerconfigjson".to_owned(),
        };
        place.gather(&settings, &format!("pull-secret-{name}")).await;
    }
}

async fn of_must_gathers(place: &mut Place) {
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let settings = place.settings(&service, "must");
    let whole = |known: &str| json!({"username": USER, "password": "canary-sftp-4713", "known_hosts": known});
    let key =
        "sftp.example.test ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    let host = "sftp.example.test";
    // Each is tried three times, with seconds in between.
    let few = ["refuses", "quotes-base64", "unreachable"];
    for (name, url) in proxies().await.into_iter().filter(|(name, _)| few.contains(name)) {
        place.must_gather(&settings, &format!("must-{name}"), host, &url, &whole(key)).await;
    }
    place.must_gather(&settings, "must-socks", host, &format!("socks5://{LOGIN}@p.test"), &whole(key)).await;
    let line = "sftp.example.test ssh-ed25519 canary-key";
    place.must_gather(&settings, "must-known", host, "", &whole(line)).await;
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let address = sshd.address.to_string();
    place.must_gather(&settings, "must-password", &address, "", &whole(&sshd.known_hosts())).await;
    let other = key.replace("sftp.example.test", &format!("[127.0.0.1]:{}", sshd.address.port()));
    place.must_gather(&settings, "must-stranger", &address, "", &whole(&other)).await;
}

#[tokio::test]
async fn row_38_no_failure_of_a_controller_tells_a_secret() {
    let mut row = Row::short(38, "secrets of controllers, in every kind of failure");
    let logs = logs::capture();
    let mut place = Place::new().await;
    of_archives(&mut place).await;
    of_must_gathers(&mut place).await;
    let logged = logs.take();
    assert!(logged.contains("TRACE") && logged.contains("archive written"), "logs were captured");
    let events = place.events().await;
    let told: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    // What is looked for is found where it has to be.
    for held in [LOGIN.to_owned(), STANDARD.encode(LOGIN), STANDARD.encode(format!(":{LOGIN}"))] {
        assert!(shows(&held), "{held}");
    }
    assert_eq!(hit(place.told.iter().chain(&told).chain([&logged])), None, "a secret shows");
    assert!(!told.is_empty() && place.failures >= 20, "{} events, {} failures", told.len(), place.failures);
    row.measured(json!({"failures": place.failures, "events": told.len(), "logLines": logged.lines().count(), "hits": 0}));
}
