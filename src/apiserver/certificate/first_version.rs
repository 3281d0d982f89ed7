//! Verifies client certificates of X.509 version 1, which have no extensions: `openssl x509 -req` generates them without
//! an extensions file. Go accepts them like others; webpki cannot read them.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{ASN1Time, FromDer as _, X509Certificate, X509Version};

/// Verifies version 1 certificates, and leaves all others to another verifier.
#[derive(Debug)]
pub(super) struct AnyVersion {
    pub(super) others: Arc<dyn ClientCertVerifier>,
    pub(super) authorities: Vec<CertificateDer<'static>>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// Parses the certificate if it is of version 1.
fn first_version<'c>(certificate: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    let (rest, certificate) = X509Certificate::from_der(certificate).ok()?;
    (rest.is_empty() && certificate.version() == X509Version::V1).then_some(certificate)
}

fn key_of(certificate: &X509Certificate<'_>) -> SubjectPublicKeyInfoDer<'static> {
    SubjectPublicKeyInfoDer::from(certificate.public_key().raw.to_vec())
}

/// Returns whether the key of `owner` made the signature, by one of the algorithms.
fn has_signed<'a>(
    owner: &X509Certificate<'_>,
    algorithms: impl IntoIterator<Item = &'a &'static dyn SignatureVerificationAlgorithm>,
    (message, signature): (&[u8], &[u8]),
) -> bool {
    let key = key_of(owner);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    algorithms.into_iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}

fn may_sign(authority: &X509Certificate<'_>) -> bool {
    let constraints = authority.basic_constraints().ok().flatten();
    let is_authority = match constraints {
        Some(constraints) => constraints.value.ca,
        None => authority.version() != X509Version::V3,
    };
    let usage = authority.key_usage().ok().flatten();
    is_authority && usage.is_none_or(|usage| usage.value.key_cert_sign())
}

impl AnyVersion {
    fn verify(&self, certificate: &X509Certificate<'_>, now: UnixTime) -> Result<ClientCertVerified, Error> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let now = ASN1Time::from_timestamp(seconds).map_err(|_| CertificateError::BadEncoding)?;
        let validity = certificate.validity();
        if now < validity.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > validity.not_after {
            return Err(CertificateError::Expired.into());
        }
        let signed = (certificate.tbs_certificate.as_ref(), &*certificate.signature_value.data);
        let is_known = self.authorities.iter().any(|authority| {
            X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
                authority.subject().as_raw() == certificate.issuer().as_raw()
                    && authority.validity().is_valid_at(now)
                    && may_sign(&authority)
                    && has_signed(&authority, self.algorithms.all, signed)
            })
        });
        if is_known {
            Ok(ClientCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }
}

impl ClientCertVerifier for AnyVersion {
    fn offer_client_auth(&self) -> bool {
        self.others.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.others.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.others.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match first_version(end_entity) {
            Some(certificate) => self.verify(&certificate, now),
            None => self.others.verify_client_cert(end_entity, intermediates, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Some(owner) = first_version(certificate) else {
            return self.others.verify_tls12_signature(message, certificate, signature);
        };
        let of_scheme = self.algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signature.scheme);
        let algorithms = of_scheme.flat_map(|(_, algorithms)| algorithms.iter());
        if has_signed(&owner, algorithms, (message, signature.signature())) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match first_version(certificate) {
            Some(owner) => {
                verify_tls13_signature_with_raw_key(message, &key_of(&owner), signature, &self.algorithms)
            }
            None => self.others.verify_tls13_signature(message, certificate, signature),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }
}
