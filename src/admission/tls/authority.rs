//! Manages the certificate authority of a folder: `ca.crt` and `ca.key` are created at the first start, reused afterwards, and
//! renewed while they are still valid.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _,
};
use thiserror::Error;
use time::{Duration, OffsetDateTime};
use x509_parser::error::{PEMError, X509Error};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;

use crate::outside;
use crate::private;

/// The validity of an authority.
const CA_LIFE: Duration = Duration::days(10 * 365);
/// The validity of a leaf; new leaves are issued at each start.
const LEAF_LIFE: Duration = Duration::days(365);
/// How long before their creation leaves and authorities are valid, for callers whose clock is behind.
const BACKDATE: Duration = Duration::hours(1);

/// Why there is no usable authority. Each message says what to do.
#[derive(Debug, Error)]
pub enum AuthorityError {
    #[error("cannot write `{}`: {source}; make the folder writable, or choose another", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read `{}`: {source}; make it readable, or delete ca.crt and ca.key there to have new ones made", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` expired on {on}; delete ca.crt and ca.key beside it to have new ones made (clients that trust the old one must be given the new one)", path.display())]
    Expired { path: PathBuf, on: String },
    #[error("`{}` holds no usable certificate or key: {reason}; delete ca.crt and ca.key there to have new ones made", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("cannot make a certificate: {0}")]
    Issue(#[from] rcgen::Error),
}

/// A certificate chain and its key, both PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate_pem: String,
    pub key_pem: String,
}

impl std::fmt::Debug for Identity {
    /// Does not print the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A certificate authority that can issue leaves.
pub struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Opens the authority of `folder`; creates the folder and the authority if they are missing, and a new authority
    /// when two thirds of the validity of the old one have passed.
    ///
    /// # Errors
    /// When the folder cannot be written, or its authority is unreadable or has expired.
    pub fn open(folder: &Path, now: OffsetDateTime) -> Result<Self, AuthorityError> {
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        private::make_folder(folder)
            .map_err(|source| AuthorityError::Write { path: folder.to_owned(), source })?;
        // A key without a certificate was left by an interrupted creation.
        if !certificate.exists() {
            return Self::create(&certificate, &key, now);
        }
        let read = |path: &Path| {
            outside::text(path, outside::MAX_PEM)
                .map_err(|error| AuthorityError::Read { path: path.to_owned(), source: error.into_io() })
        };
        let certificate_pem = read(&certificate)?;
        let key_pem = read(&key)?;
        let life = Life::of(&certificate_pem).map_err(|error| AuthorityError::Malformed {
            path: certificate.clone(),
            reason: error.to_string(),
        })?;
        if now > life.not_after {
            return Err(AuthorityError::Expired { path: certificate, on: life.not_after.date().to_string() });
        }
        // Created while the clock was wrong: clients with the right time would reject its signatures for years.
        if life.not_before > now {
            tracing::warn!(path = %certificate.display(), "the authority begins in the future: making a new one");
            return Self::create(&certificate, &key, now);
        }
        if now > life.renew_at() {
            tracing::info!(path = %certificate.display(), "the authority is past two thirds of its life: making a new one");
            return Self::create(&certificate, &key, now);
        }
        let malformed = |reason: rcgen::Error| AuthorityError::Malformed {
            path: key.clone(),
            reason: reason.to_string(),
        };
        let authority = Self::from_pem(&certificate_pem, &key_pem).map_err(malformed)?;
        // An interrupted creation may also leave a new key beside the old certificate, which would not match signatures.
        if authority.is_of_another_key() {
            return Err(AuthorityError::Malformed {
                path: key,
                reason: "it is not the key of ca.crt".to_owned(),
            });
        }
        Ok(authority)
    }

    fn create(certificate: &Path, key: &Path, now: OffsetDateTime) -> Result<Self, AuthorityError> {
        let (authority, key_pem) = Self::make(now, CA_LIFE)?;
        // The key is written first: a certificate without its key is an error at the next start, a key alone is replaced.
        write_private(key, &key_pem)?;
        write_private(certificate, &authority.certificate_pem)?;
        Ok(authority)
    }

    /// Creates an authority that is valid for `life`, and its key.
    ///
    /// # Errors
    /// When no key can be generated.
    pub(super) fn make(now: OffsetDateTime, life: Duration) -> Result<(Self, String), AuthorityError> {
        let pair = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name("admit", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.not_before = now.saturating_sub(BACKDATE);
        params.not_after = now.saturating_add(life);
        let certificate_pem = params.self_signed(&pair)?.pem();
        let key_pem = pair.serialize_pem();
        Ok((Self { certificate_pem, issuer: Issuer::new(params, pair) }, key_pem))
    }

    /// Loads an authority.
    ///
    /// # Errors
    /// When the text has no certificate or no key.
    pub(super) fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(certificate_pem, KeyPair::from_pem(key_pem)?)?;
        Ok(Self { certificate_pem: certificate_pem.to_owned(), issuer })
    }

    /// Whether the certificate has another public key than the signing key.
    fn is_of_another_key(&self) -> bool {
        let own = self.issuer.key().subject_public_key_info();
        let Ok((_, pem)) = parse_x509_pem(self.certificate_pem.as_bytes()) else { return true };
        pem.parse_x509().map_or(true, |certificate| certificate.public_key().raw != own)
    }

    /// Returns the authority's certificate, for a `caBundle`.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Issues a serving certificate for host names and IP addresses, the first of which is its common name.
    ///
    /// # Errors
    /// When a name is not possible in a certificate.
    pub fn issue_server(&self, names: &[String], now: OffsetDateTime) -> Result<Identity, AuthorityError> {
        self.issue_server_for(names, now, LEAF_LIFE)
    }

    /// Does the same, with the validity `life`.
    ///
    /// # Errors
    /// As [`Self::issue_server`].
    pub(super) fn issue_server_for(
        &self,
        names: &[String],
        now: OffsetDateTime,
        life: Duration,
    ) -> Result<Identity, AuthorityError> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = name(names.first().map_or("admit", String::as_str), None);
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth, now, life)
    }

    /// Issues a client certificate: Kubernetes reads the user from the common name and the group from the organisation.
    ///
    /// # Errors
    /// When the names are not possible in a certificate.
    pub fn issue_client(
        &self,
        user: &str,
        group: &str,
        now: OffsetDateTime,
    ) -> Result<Identity, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(user, Some(group));
        self.issue(params, ExtendedKeyUsagePurpose::ClientAuth, now, LEAF_LIFE)
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
        now: OffsetDateTime,
        life: Duration,
    ) -> Result<Identity, AuthorityError> {
        let pair = KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        params.not_before = now.saturating_sub(BACKDATE);
        params.not_after = now.saturating_add(life);
        let certificate_pem = params.signed_by(&pair, &self.issuer)?.pem();
        Ok(Identity { certificate_pem, key_pem: pair.serialize_pem() })
    }
}

fn name(common: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}

/// Why a text is not a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{0}")]
    Pem(#[from] x509_parser::nom::Err<PEMError>),
    #[error("{0}")]
    X509(#[from] x509_parser::nom::Err<X509Error>),
}

/// The validity of a certificate.
pub(super) struct Life {
    pub(super) not_before: OffsetDateTime,
    pub(super) not_after: OffsetDateTime,
}

impl Life {
    pub(super) fn of(pem: &str) -> Result<Self, CertificateError> {
        let (_, pem) = parse_x509_pem(pem.as_bytes())?;
        let certificate = pem.parse_x509()?;
        let validity = certificate.validity();
        Ok(Self {
            not_before: validity.not_before.to_datetime(),
            not_after: validity.not_after.to_datetime(),
        })
    }

    /// Returns when two thirds of the validity are over, counted from the creation of the certificate.
    pub(super) fn renew_at(&self) -> OffsetDateTime {
        let made = self.not_before + BACKDATE;
        self.not_after - (self.not_after - made) / 3
    }
}

/// Returns the identifier of the signing key, as the certificate states it.
pub(super) fn signer(certificate_pem: &str) -> Option<Vec<u8>> {
    with_extensions(certificate_pem, |extension| match extension {
        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
        _ => None,
    })
}

/// Returns the identifier of a certificate's own key.
pub(super) fn key_id(certificate_pem: &str) -> Option<Vec<u8>> {
    with_extensions(certificate_pem, |extension| match extension {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    })
}

/// Returns the DNS names of a certificate.
pub(super) fn domains(certificate_pem: &str) -> Vec<String> {
    let found = with_extensions(certificate_pem, |extension| match extension {
        ParsedExtension::SubjectAlternativeName(names) => {
            Some(names.general_names.iter().filter_map(domain).collect())
        }
        _ => None,
    });
    found.unwrap_or_default()
}

fn domain(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    }
}

fn with_extensions<T>(pem: &str, wanted: impl Fn(&ParsedExtension<'_>) -> Option<T>) -> Option<T> {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    certificate.extensions().iter().find_map(|extension| wanted(extension.parsed_extension()))
}

/// Writes `text` atomically, readable by the owner only.
///
/// # Errors
/// When the folder cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), AuthorityError> {
    private::replace(path, text).map_err(|source| AuthorityError::Write { path: path.to_owned(), source })
}
