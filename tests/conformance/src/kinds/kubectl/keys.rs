//! Generates the certificates of one scenario: a CA, a server, a client that it trusts, and the kubeconfig that names them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

pub(super) struct Keys {
    ca: String,
    ca_der: CertificateDer<'static>,
    server: (CertificateDer<'static>, KeyPair),
    client: (String, String),
}

impl Keys {
    pub(super) fn new() -> Result<Self, rcgen::Error> {
        let ca_key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test-ca");
        let ca = params.self_signed(&ca_key)?;
        let issuer = Issuer::new(params, ca_key);

        let server_key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        let server = params.signed_by(&server_key, &issuer)?;

        let client_key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let client = params.signed_by(&client_key, &issuer)?;
        Ok(Self {
            ca: ca.pem(),
            ca_der: ca.der().clone(),
            server: (server.der().clone(), server_key),
            client: (client.pem(), client_key.serialize_pem()),
        })
    }

    /// The certificate of the authority, PEM.
    pub(super) fn authority(&self) -> &str {
        &self.ca
    }

    /// For a server; `clients`: which must show a certificate of the authority.
    pub(super) fn server_config(&self, clients: bool) -> Result<ServerConfig, Box<dyn std::error::Error>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let (certificate, key) = &self.server;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.ca_der.clone())?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        Ok(builder.with_single_cert(vec![certificate.clone()], key)?)
    }

    /// A kubeconfig in `folder` that names the server, the client and the namespace `demo`.
    pub(super) fn write_kubeconfig(&self, folder: &Path, address: SocketAddr) -> io::Result<PathBuf> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map(|()| path.display().to_string())
        };
        let ca = write("ca.crt", &self.ca)?;
        let (certificate, key) = (write("client.crt", &self.client.0)?, write("client.key", &self.client.1)?);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters:\n- name: test\n  cluster: {{server: 'https://{address}', certificate-authority: '{ca}'}}\n\
             users:\n- name: test\n  user: {{client-certificate: '{certificate}', client-key: '{key}'}}\n\
             contexts:\n- name: test\n  context: {{cluster: test, user: test, namespace: demo}}\n"
        );
        write("kubeconfig", &text).map(PathBuf::from)
    }
}
