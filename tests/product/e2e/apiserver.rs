//! An API server of a test: the embedded one in its process, or etcd and kube-apiserver in theirs.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use admit::admission::tls::{Authority, Identity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use time::OffsetDateTime;

use crate::running::{Running, Workplace};

/// A bound for a busy machine, not an expectation.
const START: Duration = Duration::from_secs(120);

/// A running API server; ended with the value.
pub(super) enum ApiServer {
    Embedded { place: Workplace, _running: Running },
    Real(Real),
}

pub(super) struct Real {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
}

impl ApiServer {
    /// `admit up`, whose own webhook guards nothing: its folder of policies is empty.
    pub(super) fn embedded() -> Self {
        let place = Workplace::new();
        fs::create_dir(place.path().join("none")).unwrap();
        let running = place.start_with(&["--policies", "none"]);
        Self::Embedded { place, _running: running }
    }

    /// The programs of `assets`, on free ports.
    pub(super) fn real(assets: &Path) -> Self {
        let mut real = Real { folder: tempfile::tempdir().unwrap(), processes: Vec::new() };
        let (etcd, peer, api) = (free_port(), free_port(), free_port());
        let at = |name: &str| real.folder.path().join(name).display().to_string();
        let now = OffsetDateTime::now_utc();
        let authority = Authority::open(real.folder.path(), now).unwrap();
        let admin = authority.issue_client("admin", "system:masters", now).unwrap();
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let leaf = authority.issue_server(&names, now).unwrap();
        fs::write(at("api.crt"), &leaf.certificate_pem).unwrap();
        fs::write(at("api.key"), &leaf.key_pem).unwrap();
        let url = format!("https://127.0.0.1:{api}");
        fs::write(at("kubeconfig"), kubeconfig(&url, authority.certificate_pem(), &admin)).unwrap();

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
        for (program, args) in [("etcd", etcd_args.as_slice()), ("kube-apiserver", api_args.as_slice())] {
            let log = fs::File::create(at(&format!("{program}.log"))).unwrap();
            let child = Command::new(assets.join(program))
                .args(args)
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn();
            real.processes.push(child.unwrap_or_else(|error| panic!("{program}: {error}")));
        }
        let server = Self::Real(real);
        server.wait();
        server
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded { place, .. } => place.kubeconfig(),
            Self::Real(real) => real.folder.path().join("kubeconfig"),
        }
    }

    /// Until it says that it is ready.
    fn wait(&self) {
        let began = Instant::now();
        loop {
            let mut command = Command::new("kubectl");
            command.arg("--kubeconfig").arg(self.kubeconfig()).args(["get", "--raw", "/readyz"]);
            if command.output().unwrap().status.success() {
                return;
            }
            assert!(began.elapsed() < START, "kube-apiserver did not start");
        }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // The API server first: without its store it complains for long.
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Free at this moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// JSON is YAML.
fn kubeconfig(url: &str, authority: &str, admin: &Identity) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{
            "name": "c", "cluster": {"server": url, "certificate-authority-data": STANDARD.encode(authority)},
        }],
        "users": [{"name": "u", "user": {
            "client-certificate-data": STANDARD.encode(&admin.certificate_pem),
            "client-key-data": STANDARD.encode(&admin.key_pem),
        }}],
    })
    .to_string()
}
