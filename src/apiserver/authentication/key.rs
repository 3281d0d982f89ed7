//! Reads and generates the keys that sign and verify service account tokens: RSA (`RS256`) and
//! ECDSA on P-256 and P-384 (`ES256`, `ES384`), in all PEM forms that kube-apiserver reads.

use std::fmt;
use std::sync::Arc;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use rustls::sign::SigningKey;
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::error::TokenKeyError;
use super::jwt::{self, PublicKey};

/// A key pair that signs tokens. Its holder can act as any service account.
///
/// ```
/// use admit_apiserver::{Server, TokenKey, TokenPublicKey};
///
/// let key = TokenKey::generate()?;
/// assert!(TokenKey::from_pem(&key.to_pem()).is_ok(), "kept in a Secret, and read again");
/// assert!(TokenKey::from_pem("no key").is_err());
///
/// // Once another key signs, tokens of this one are believed as long as its public half is known.
/// let builder = Server::builder().token_key(TokenKey::generate()?).trusted_token_keys([key.public()]);
/// // From a file, which may hold several, in public or private form:
/// let keys = [key, TokenKey::generate()?].map(|key| key.to_pem()).concat();
/// assert_eq!(TokenPublicKey::all_from_pem(&keys)?.len(), 2);
/// # Ok::<(), admit_apiserver::TokenKeyError>(())
/// ```
pub struct TokenKey {
    signer: Arc<dyn SigningKey>,
    public: PublicKey,
    kept: PrivateKeyDer<'static>,
}

/// A public key, which verifies tokens that its private key signed.
///
/// [`TokenKey`] has an example.
#[derive(Clone, Debug)]
pub struct TokenPublicKey(pub(super) PublicKey);

impl TokenKey {
    /// Generates an ECDSA key on P-256.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, TokenKeyError> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| TokenKeyError::Random)?;
        Self::of(PrivatePkcs8KeyDer::from(made.as_ref().to_vec()).into())
    }

    /// Reads the first private key of a PEM file, in PKCS #1, PKCS #8 or SEC 1 form.
    ///
    /// # Errors
    /// If there is none, or it is not supported.
    pub fn from_pem(text: &str) -> Result<Self, TokenKeyError> {
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
        Self::of(key.map_err(|error| TokenKeyError::NoPrivateKey(error.to_string()))?)
    }

    fn of(kept: PrivateKeyDer<'static>) -> Result<Self, TokenKeyError> {
        let signer = rustls::crypto::ring::sign::any_supported_type(&kept)
            .map_err(|error| TokenKeyError::Unsupported(format!("this private key ({error})")))?;
        let public = signer.public_key().and_then(|public| PublicKey::read(&public).ok());
        let public = public.ok_or_else(|| {
            TokenKeyError::Unsupported(format!("a key of the kind {:?}", signer.algorithm()))
        })?;
        Ok(Self { signer, public, kept })
    }

    /// Returns the private key as PEM, which must be kept secret.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let label = match &self.kept {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        let text = admit_apimachinery::go::base64::encode(self.kept.secret_der());
        let lines: Vec<&str> =
            text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> TokenPublicKey {
        TokenPublicKey(self.public.clone())
    }

    /// Signs `claims` and returns the token in compact form.
    pub(super) fn sign(&self, claims: &Value) -> Result<String, TokenKeyError> {
        let header = json!({"alg": self.public.algorithm(), "kid": self.public.id()});
        let signed = [header, claims.clone()].map(|part| jwt::encode(part.to_string())).join(".");
        let signer = self.signer.choose_scheme(&[self.public.scheme()]);
        let signature = signer.and_then(|signer| signer.sign(signed.as_bytes()).ok());
        let signature = signature.and_then(|signature| self.public.compact(&signature));
        Ok(format!("{signed}.{}", jwt::encode(signature.ok_or(TokenKeyError::Random)?)))
    }
}

impl fmt::Debug for TokenKey {
    /// Formats without the secret key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey").field("id", &self.public.id()).finish_non_exhaustive()
    }
}

impl TokenPublicKey {
    /// Reads all keys of a PEM file: public keys, those of certificates, and the public halves of private keys.
    ///
    /// # Errors
    /// If there is none, or one is not supported.
    pub fn all_from_pem(text: &str) -> Result<Vec<Self>, TokenKeyError> {
        let mut found = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
            let (kind, der) = section.map_err(|error| TokenKeyError::NoPublicKey(error.to_string()))?;
            let private = |key: PrivateKeyDer<'static>| TokenKey::of(key).map(|key| key.public);
            let public = match kind {
                SectionKind::PublicKey => PublicKey::read(&der),
                SectionKind::Certificate => of_certificate(&CertificateDer::from(der)),
                SectionKind::RsaPrivateKey => private(PrivatePkcs1KeyDer::from(der).into()),
                SectionKind::EcPrivateKey => private(PrivateSec1KeyDer::from(der).into()),
                SectionKind::PrivateKey => private(PrivatePkcs8KeyDer::from(der).into()),
                // Curve parameters and other blocks beside keys.
                _ => continue,
            };
            found.push(Self(public?));
        }
        if found.is_empty() {
            return Err(TokenKeyError::NoPublicKey("no such section".to_owned()));
        }
        Ok(found)
    }
}

fn of_certificate(der: &CertificateDer<'_>) -> Result<PublicKey, TokenKeyError> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| TokenKeyError::NoPublicKey(error.to_string()))?;
    PublicKey::read(certificate.public_key().raw)
}
