//! Client certificates of authorities that nobody knows do not end the handshake: they are answered with 401.

use std::net::SocketAddr;
use std::sync::Arc;

use admit_apiserver::{Server, Tls, client_verifier};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::harness::post;

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap(), issuer: Issuer::new(params, key) }
    }

    fn issue(
        &self,
        names: &[&str],
        usage: ExtendedKeyUsagePurpose,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        (certificate.der().clone(), key)
    }
}

/// The first line of the answer, and the answer, to a client with this certificate.
async fn asked(
    (address, authority): (SocketAddr, &Authority),
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    header: &str,
) -> (String, String) {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
    };
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let request = format!(
        "GET /apis/authentication.k8s.io/v1 HTTP/1.1\r\nhost: localhost\r\n{header}connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.lines().next().unwrap_or_default().to_owned(), answer)
}

#[tokio::test]
async fn certificates_of_strangers_are_unauthorized() {
    let (known, stranger) = (Authority::new(), Authority::new());
    let server = Server::builder().build().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (certificate, key) = known.issue(&["localhost"], ExtendedKeyUsagePurpose::ServerAuth);
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let clients = client_verifier(known.certificate.pem().as_bytes()).unwrap();
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let tls = Tls::asking(builder, clients, vec![certificate], key).unwrap();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener, tls, std::future::pending()).await }
    });
    let client = |authority: &Authority, usage| Some(authority.issue(&[], usage));
    let usage = || ExtendedKeyUsagePurpose::ClientAuth;
    let told = async |client, header| asked((address, &known), client, header).await;
    let (line, answer) = told(client(&known, usage()), "").await;
    assert_eq!(line, "HTTP/1.1 200 OK", "{answer}");
    let (line, answer) = told(client(&stranger, usage()), "").await;
    assert_eq!(line, "HTTP/1.1 401 Unauthorized", "{answer}");
    assert!(answer.contains(r#""message":"Unauthorized","reason":"Unauthorized","code":401"#), "{answer}");
    // One that is not for clients, of an authority that is known.
    let (line, answer) = told(client(&known, ExtendedKeyUsagePurpose::ServerAuth), "").await;
    assert_eq!(line, "HTTP/1.1 401 Unauthorized", "{answer}");
    // A token that is known says who it is, whatever the certificate says.
    let path = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    assert_eq!(post(&server, path, &account).await.status, 201);
    let token = post(&server, &format!("{path}/a/token"), &json!({"spec": {"audiences": []}})).await;
    let header = format!("authorization: Bearer {}\r\n", token.body["status"]["token"].as_str().unwrap());
    let (line, answer) = told(client(&stranger, usage()), &header).await;
    assert_eq!(line, "HTTP/1.1 200 OK", "{answer}");
    let (line, answer) = told(None, "").await;
    assert!(line.starts_with("HTTP/1.1 "), "who shows none is anonymous: {answer}");
    assert!(!line.contains("401"), "{answer}");
    serving.abort();
}
