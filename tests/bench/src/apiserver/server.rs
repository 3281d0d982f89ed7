//! Starts and stops the servers that are measured, with the CA and the client certificate of one run.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::Trouble;
use crate::client::{Access, Client};

pub(crate) const AUTHORITY: &str = "authority.pem";
pub(crate) const SERVING: &str = "serving.pem";
pub(crate) const SERVING_KEY: &str = "serving.key";
/// The file with the public key: kube-apiserver cannot read that of an elliptic key from a PKCS #8 private key file.
const ACCOUNT_KEY: &str = "account.pub";
/// The folder with persistent data; without it ours is in memory.
pub(crate) const DATA: &str = "data";

/// The clock ticks per second of CPU time on Linux.
const TICKS: f64 = 100.0;

/// How long a server may take to start and to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kind of server that is started.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A build of this program, which serves as a child.
    Library(PathBuf),
    /// A folder with `etcd` and `kube-apiserver`.
    Assets(PathBuf),
}

/// The folder that a restarted server needs: its certificates, and its data.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    tls: Arc<rustls::ClientConfig>,
}

impl Home {
    /// Creates the folder; `on_disk`: whether ours persists its objects, as the others always do.
    pub(crate) fn new(on_disk: bool) -> Result<Self, Trouble> {
        let folder = tempfile::tempdir()?;
        if on_disk {
            fs::create_dir(folder.path().join(DATA))?;
        }
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let serving_key = KeyPair::generate()?;
        let serving =
            CertificateParams::new(["127.0.0.1".to_owned()])?.signed_by(&serving_key, &authority)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "bench");
        let client_key = KeyPair::generate()?;
        let client = params.signed_by(&client_key, &authority)?;
        for (name, text) in [
            (AUTHORITY, authority.pem()),
            (SERVING, serving.pem()),
            (SERVING_KEY, serving_key.serialize_pem()),
            (ACCOUNT_KEY, serving_key.public_key_pem()),
        ] {
            fs::write(folder.path().join(name), text)?;
        }
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der().to_vec()))?;
        let key = PrivateKeyDer::try_from(client_key.serialize_der())?;
        let tls =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots)
                .with_client_auth_cert(vec![client.der().clone()], key)?;
        Ok(Self { folder, tls: Arc::new(tls) })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// A running, ready server, stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) home: Home,
    pub(crate) access: Access,
    /// The processes, of which the last is the API server.
    children: Vec<Child>,
    /// The time from the start of the first process until the server was ready.
    pub(crate) took: Duration,
}

impl Server {
    /// Starts a server in `home`, or in a new one without a disk, and waits until it is ready.
    pub(crate) async fn start(kind: &Kind, home: Option<Home>) -> Result<Self, Trouble> {
        let home = match home {
            Some(home) => home,
            None => Home::new(false)?,
        };
        let address = free().await?;
        let began = Instant::now();
        let children = match kind {
            Kind::Library(program) => {
                let mut command = Command::new(program);
                vec![spawned(command.arg("serve").arg(home.folder.path()).arg(address.to_string()))?]
            }
            Kind::Assets(folder) => upstream(folder, &home, address).await?,
        };
        let access = Access { address, tls: Arc::clone(&home.tls) };
        timeout(PATIENCE, ready(&access)).await.map_err(|_| "the server does not become ready")?;
        Ok(Self { home, access, children, took: began.elapsed() })
    }

    pub(crate) async fn client(&self) -> Result<Client, Trouble> {
        self.access.connect().await
    }

    /// Returns the resident bytes of all of its processes.
    pub(crate) fn resident(&self) -> Result<f64, Trouble> {
        let mut bytes = 0.0;
        for id in self.children.iter().filter_map(Child::id) {
            let status = fs::read_to_string(format!("/proc/{id}/status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
            bytes += kibibytes.parse::<f64>()? * 1024.0;
        }
        Ok(bytes)
    }

    /// Returns the CPU seconds of its processes: the cost of requests, however busy the machine is.
    pub(crate) fn worked(&self) -> Result<f64, Trouble> {
        let mut ticks = 0.0;
        for id in self.children.iter().filter_map(Child::id) {
            let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
            // The program's name, in parentheses, may contain anything.
            let fields = stat.rsplit_once(')').ok_or("no name")?.1.split_whitespace();
            ticks += fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
        }
        Ok(ticks / TICKS)
    }

    /// Stops it with a signal; returns how long the API server took. What has not stopped after a minute is killed, and took
    /// that long: kube-apiserver waits longer for its watches.
    pub(crate) async fn stop(mut self) -> Result<Duration, Trouble> {
        let began = Instant::now();
        let mut took = Duration::ZERO;
        for child in self.children.iter_mut().rev() {
            signal(child, Signal::SIGTERM)?;
            if timeout(PATIENCE, child.wait()).await.is_err() {
                signal(child, Signal::SIGKILL)?;
                child.wait().await?;
            }
            took = took.max(if took.is_zero() { began.elapsed() } else { took });
        }
        Ok(took)
    }

    /// Kills all processes at once.
    pub(crate) async fn kill(mut self) -> Result<Home, Trouble> {
        for child in &self.children {
            signal(child, Signal::SIGKILL)?;
        }
        for child in &mut self.children {
            child.wait().await?;
        }
        Ok(self.home)
    }
}

fn signal(child: &Child, signal: Signal) -> Result<(), Trouble> {
    let id = child.id().ok_or("the server has ended by itself")?;
    Ok(kill(Pid::from_raw(i32::try_from(id)?), signal)?)
}

fn spawned(command: &mut Command) -> Result<Child, Trouble> {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    if std::env::var_os("BENCH_SHOWS_LOGS").is_none() {
        silent.stderr(Stdio::null());
    }
    let program = silent.as_std().get_program().to_owned();
    silent
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", Path::new(&program).display()).into())
}

/// Returns a free address.
async fn free() -> Result<SocketAddr, Trouble> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?)
}

async fn ready(access: &Access) {
    loop {
        if let Ok(mut client) = access.connect().await
            && let Ok((code, _)) = client.length(Method::GET, "/readyz", bytes::Bytes::new()).await
            && code.is_success()
        {
            return;
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// Starts etcd and kube-apiserver as envtest does.
async fn upstream(folder: &Path, home: &Home, address: SocketAddr) -> Result<Vec<Child>, Trouble> {
    let (clients, peers) = (format!("http://{}", free().await?), format!("http://{}", free().await?));
    let etcd = spawned(Command::new(folder.join("etcd")).args([
        format!("--data-dir={}", home.path("etcd")),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
    ]))?;
    let api = spawned(Command::new(folder.join("kube-apiserver")).args([
        format!("--etcd-servers={clients}"),
        format!("--cert-dir={}", home.path("certs")),
        format!("--tls-cert-file={}", home.path(SERVING)),
        format!("--tls-private-key-file={}", home.path(SERVING_KEY)),
        format!("--client-ca-file={}", home.path(AUTHORITY)),
        format!("--service-account-key-file={}", home.path(ACCOUNT_KEY)),
        format!("--service-account-signing-key-file={}", home.path(SERVING_KEY)),
        format!("--service-account-issuer=https://{address}/"),
        format!("--secure-port={}", address.port()),
        format!("--bind-address={}", address.ip()),
        // Otherwise an address is searched among the interfaces, and there may be only loopback.
        format!("--advertise-address={}", address.ip()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
    ]))?;
    Ok(vec![etcd, api])
}
