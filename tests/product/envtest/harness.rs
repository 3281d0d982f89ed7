//! What a harness does: a folder of assets, free ports, files, processes.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kube::config::KubeConfigOptions;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

/// How long harnesses wait for a start.
const START: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(20);

/// The folder of a harness, with the assets.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) assets: PathBuf,
}

impl Place {
    /// Has `admit envtest` print a folder, with these arguments.
    pub(crate) fn new(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let printed = Command::new(env!("CARGO_BIN_EXE_admit"))
            .arg("envtest")
            .args(args)
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .output()
            .unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let assets = String::from_utf8(printed.stdout).unwrap();
        Self { assets: PathBuf::from(assets.trim_end()), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Starts one of the assets with these arguments; its log is a file of its name.
    pub(crate) fn start(&self, name: &str, args: &[String]) -> Process {
        self.start_program(&self.assets.join(name), args)
    }

    pub(crate) fn start_program(&self, program: &Path, args: &[String]) -> Process {
        let log = self.path(program.file_name().unwrap().to_str().unwrap()).with_extension("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Process { child, log }
    }
}

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits for 200 at the path, as a harness that does not look at certificates.
    pub(crate) fn wait_for(&mut self, port: u16, path: &str, tls: bool) {
        self.wait_for_status(200, port, path, tls);
    }

    pub(crate) fn wait_for_status(&mut self, status: u16, port: u16, path: &str, tls: bool) {
        let began = Instant::now();
        while !answers(status, port, path, tls) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?}:\n{}", self.log());
            assert!(began.elapsed() < START, "not ready:\n{}", self.log());
            std::thread::sleep(AGAIN);
        }
    }

    /// SIGTERM, then how it ended.
    pub(crate) fn stop(mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// How it ended by itself.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, self.log())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answers(status: u16, port: u16, path: &str, tls: bool) -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let Ok(stream) = TcpStream::connect(address) else { return false };
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    if tls {
        let connection = rustls::ClientConnection::new(trusting(), "localhost".try_into().unwrap()).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    } else {
        let mut stream = stream;
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    }
    answer.starts_with(&format!("HTTP/1.1 {status}"))
}

/// Of somebody who trusts everybody.
fn trusting() -> std::sync::Arc<rustls::ClientConfig> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let trust = std::sync::Arc::new(Trusting(provider));
    std::sync::Arc::new(builder.dangerous().with_custom_certificate_verifier(trust).with_no_client_auth())
}

#[derive(Debug)]
struct Trusting(std::sync::Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate and its key, PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pair {
    pub(crate) fn write(&self, certificate: &Path, key: &Path) {
        fs::write(certificate, &self.certificate).unwrap();
        fs::write(key, &self.key).unwrap();
    }
}

/// An authority whose key only the harness has.
pub(crate) struct Authority {
    pub(crate) pair: Pair,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "envtest-environment");
        let key = KeyPair::generate().unwrap();
        let pair = Pair { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() };
        Self { pair, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn serving(&self) -> Pair {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        self.issue(CertificateParams::new(names).unwrap(), ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub(crate) fn client(&self, user: &str, group: &str) -> Pair {
        self.issue(client(user, group), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Pair {
        let key = KeyPair::generate().unwrap();
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

fn client(user: &str, group: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params
}

/// Certificates that sign themselves, and are no authorities.
pub(crate) fn own_client(user: &str, group: &str) -> Pair {
    signs_itself(&client(user, group))
}

pub(crate) fn own_serving() -> Pair {
    signs_itself(&CertificateParams::new(["127.0.0.1".to_owned(), "kubernetes".to_owned()]).unwrap())
}

fn signs_itself(params: &CertificateParams) -> Pair {
    let key = KeyPair::generate().unwrap();
    Pair { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// A client that trusts `authority` and shows `pair`.
pub(crate) async fn client_of(port: u16, authority: &str, pair: &Pair) -> Client {
    let kubeconfig = kubeconfig(port, authority, pair);
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The settings of such a client.
pub(crate) fn kubeconfig(port: u16, authority: &str, pair: &Pair) -> Kubeconfig {
    let encode = |pem: &str| admit_apimachinery::go::base64::encode(pem);
    let cluster = Cluster {
        server: Some(format!("https://127.0.0.1:{port}")),
        certificate_authority_data: Some(encode(authority)),
        ..Cluster::default()
    };
    let user: AuthInfo = serde_json::from_value(serde_json::json!({
        "client-certificate-data": encode(&pair.certificate), "client-key-data": encode(&pair.key)
    }))
    .unwrap();
    let name = || "it".to_owned();
    let context = Context { cluster: name(), user: Some(name()), ..Context::default() };
    Kubeconfig {
        current_context: Some(name()),
        clusters: vec![NamedCluster { name: name(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: name(), context: Some(context), ..NamedContext::default() }],
        ..Kubeconfig::default()
    }
}
