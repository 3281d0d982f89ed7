//! An API server of a test: the embedded one on threads of its own, or etcd and kube-apiserver as processes. Both begin
//! empty: no definitions, no policies, nobody who works in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use admit::admission::tls::{Authority, Identity, server_config};
use admit_apiserver::Server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::runtime::Runtime;

/// A bound for a busy machine, not an expectation.
const START: Duration = Duration::from_secs(120);
/// Names that clients here call it by.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// A running API server; ended with the value.
pub(super) struct ApiServer {
    url: String,
    authority: Authority,
    /// Before the folder, which its files are in.
    _behind: Behind,
    folder: tempfile::TempDir,
}

enum Behind {
    /// What runs on it ends with it.
    Embedded {
        _runtime: Runtime,
    },
    Real {
        _processes: Vec<Process>,
    },
}

/// Killed with the value.
struct Process(Child);

impl ApiServer {
    pub(super) fn embedded() -> Self {
        let (folder, authority) = prepared();
        let runtime = Runtime::new().unwrap();
        let leaf = leaf(&authority);
        let tls = server_config(&leaf, Some(authority.certificate_pem())).unwrap();
        let url = runtime.block_on(async {
            let server = Server::builder().build().await.unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("https://{}", listener.local_addr().unwrap());
            let keeping = server.clone();
            tokio::spawn(async move { keeping.housekeeping().await });
            tokio::spawn(async move { server.serve(listener, tls, std::future::pending()).await });
            url
        });
        Self::reached(url, authority, Behind::Embedded { _runtime: runtime }, folder)
    }

    /// The programs of `assets`, on free ports.
    pub(super) fn real(assets: &Path) -> Self {
        let (folder, authority) = prepared();
        let (etcd, peer, api) =
            (testing::free_port().unwrap(), testing::free_port().unwrap(), testing::free_port().unwrap());
        let at = |name: &str| folder.path().join(name).display().to_string();
        let leaf = leaf(&authority);
        fs::write(at("api.crt"), &leaf.certificate_pem).unwrap();
        fs::write(at("api.key"), &leaf.key_pem).unwrap();

        let client = format!("http://127.0.0.1:{etcd}");
        let etcd_args = [
            format!("--data-dir={}", at("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        let api_args = [
            format!("--etcd-servers={client}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={api}"),
            format!("--tls-cert-file={}", at("api.crt")),
            format!("--tls-private-key-file={}", at("api.key")),
            format!("--client-ca-file={}", at("ca.crt")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            // The public half: of a private key it would read other encodings than the one that ours has.
            format!("--service-account-key-file={}", at("api.crt")),
            format!("--service-account-signing-key-file={}", at("api.key")),
            // Nothing here makes service accounts.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let mut processes = Vec::new();
        for (program, args) in [("etcd", etcd_args.as_slice()), ("kube-apiserver", api_args.as_slice())] {
            let log = fs::File::create(at(&format!("{program}.log"))).unwrap();
            let child = Command::new(assets.join(program))
                .args(args)
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn();
            // The API server first to go: without its store it complains for long.
            processes.insert(0, Process(child.unwrap_or_else(|error| panic!("{program}: {error}"))));
        }
        let behind = Behind::Real { _processes: processes };
        Self::reached(format!("https://127.0.0.1:{api}"), authority, behind, folder)
    }

    /// Once it says that it is ready.
    fn reached(url: String, authority: Authority, behind: Behind, folder: tempfile::TempDir) -> Self {
        let server = Self { url, authority, _behind: behind, folder };
        let admin = server.authority.issue_client("admin", "system:masters", OffsetDateTime::now_utc());
        fs::write(server.kubeconfig(), server.kubeconfig_of(&certified(&admin.unwrap()))).unwrap();
        let began = Instant::now();
        loop {
            let mut command = Command::new("kubectl");
            command.arg("--kubeconfig").arg(server.kubeconfig()).args(["get", "--raw", "/readyz"]);
            if command.output().unwrap().status.success() {
                return server;
            }
            assert!(began.elapsed() < START, "the API server did not start:\n{}", server.log_tail());
        }
    }

    /// The administrator's.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A kubeconfig of whoever `user` (as in `users[].user`) is. JSON is YAML.
    pub(super) fn kubeconfig_of(&self, user: &Value) -> String {
        let authority = STANDARD.encode(self.authority.certificate_pem());
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{
                "name": "c", "cluster": {"server": self.url, "certificate-authority-data": authority},
            }],
            "users": [{"name": "u", "user": user}],
        })
        .to_string()
    }

    /// The last that kube-apiserver has said, if it is one.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("kube-apiserver.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder with an authority in it.
fn prepared() -> (tempfile::TempDir, Authority) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::open(folder.path(), OffsetDateTime::now_utc()).unwrap();
    (folder, authority)
}

fn leaf(authority: &Authority) -> Identity {
    authority.issue_server(&NAMES.map(str::to_owned), OffsetDateTime::now_utc()).unwrap()
}

fn certified(identity: &Identity) -> Value {
    json!({
        "client-certificate-data": STANDARD.encode(&identity.certificate_pem),
        "client-key-data": STANDARD.encode(&identity.key_pem),
    })
}
