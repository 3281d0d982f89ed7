//! Opens a local port for programs outside of the process, with certificates of its own CA and a kubeconfig.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use admit_apiserver::{ClientCaError, Tls, client_verifier, serve_router};
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn};

use crate::slot::Slot;

/// The name of every entry in the kubeconfig.
const NAME: &str = "admit-testing";

/// Says why no port could be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(#[from] io::Error),
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot speak TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the authority of clients: {0}")]
    Clients(#[from] ClientCaError),
    #[error("the kubeconfig cannot be written: {0}")]
    Kubeconfig(#[from] serde_json::Error),
}

/// A port that is served until this is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) kubeconfig: String,
    _stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Port {
    /// Opens a port to the servers of `slot`.
    ///
    /// # Errors
    /// If there is no free port, or there are no random numbers.
    pub(crate) async fn open(slot: &Slot) -> Result<Self, PortError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let authority = Authority::new()?;
        let (certificate, key) = authority.issue(
            CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?,
            ExtendedKeyUsagePurpose::ServerAuth,
        )?;
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let tls = Tls::asking(
            builder.with_safe_default_protocol_versions()?,
            client_verifier(authority.pem.as_bytes())?,
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )?;
        let kubeconfig = kubeconfig(address, &authority)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let router = slot.router();
        let serving = spawn(async move {
            let until = async { drop(stopped.await) };
            // After a failure clients find a closed port.
            let _ = serve_router(router, listener, tls, until).await;
        });
        Ok(Self { kubeconfig, _stop: stop, serving })
    }
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, NAME);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
        let key = KeyPair::generate()?;
        params.extended_key_usages = vec![usage];
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }
}

/// Builds a kubeconfig of an administrator as JSON, which is also YAML.
fn kubeconfig(address: SocketAddr, authority: &Authority) -> Result<String, PortError> {
    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
    let (certificate, key) = authority.issue(admin, ExtendedKeyUsagePurpose::ClientAuth)?;
    let cluster = Cluster {
        server: Some(format!("https://{address}")),
        certificate_authority_data: Some(encoded(&authority.pem)),
        ..Cluster::default()
    };
    let mut user = serde_json::Map::new();
    user.insert("client-certificate-data".to_owned(), encoded(&certificate.pem()).into());
    user.insert("client-key-data".to_owned(), encoded(&key.serialize_pem()).into());
    let user: AuthInfo = serde_json::from_value(user.into())?;
    let context = Context {
        cluster: NAME.to_owned(),
        user: Some(NAME.to_owned()),
        namespace: Some("default".to_owned()),
        ..Context::default()
    };
    let whole = Kubeconfig {
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        current_context: Some(NAME.to_owned()),
        clusters: vec![NamedCluster {
            name: NAME.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        ..Kubeconfig::default()
    };
    Ok(serde_json::to_string_pretty(&whole)?)
}

fn encoded(pem: &str) -> String {
    admit_apimachinery::go::base64::encode(pem)
}
