//! Implements JSON Web Tokens in compact form for service accounts: algorithms, signatures, and JSON Web Keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls::SignatureScheme;
use serde_json::{Value, json};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::error::TokenKeyError;

/// A public key that verifies tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicKey {
    kind: Kind,
    /// The key in PKIX form, of which the key identifier is the hash.
    info: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Rsa {
        /// The key in PKCS #1 form.
        key: Vec<u8>,
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The curve, and the key as an uncompressed point.
    Ecdsa(&'static Curve, Vec<u8>),
}

#[derive(Debug, PartialEq, Eq)]
struct Curve {
    name: &'static str,
    algorithm: &'static str,
    scheme: SignatureScheme,
    /// The size of a coordinate in bytes.
    coordinate: usize,
}

const P256: Curve = Curve {
    name: "P-256",
    algorithm: "ES256",
    scheme: SignatureScheme::ECDSA_NISTP256_SHA256,
    coordinate: 32,
};
const P384: Curve = Curve {
    name: "P-384",
    algorithm: "ES384",
    scheme: SignatureScheme::ECDSA_NISTP384_SHA384,
    coordinate: 48,
};
static CURVES: [Curve; 2] = [P256, P384];

/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

pub(super) fn encode(part: impl AsRef<[u8]>) -> String {
    BASE64.encode(part)
}

impl PublicKey {
    /// Reads a key in PKIX form.
    pub(super) fn read(info: &[u8]) -> Result<Self, TokenKeyError> {
        let malformed = |error: &dyn std::fmt::Display| TokenKeyError::NoPublicKey(error.to_string());
        let (_, read) = SubjectPublicKeyInfo::from_der(info).map_err(|error| malformed(&error))?;
        let kind = match read.parsed().map_err(|error| malformed(&error))? {
            Parsed::RSA(rsa) => Kind::Rsa {
                key: read.subject_public_key.data.to_vec(),
                modulus: without_zeros(rsa.modulus).to_vec(),
                exponent: without_zeros(rsa.exponent).to_vec(),
            },
            Parsed::EC(_) => {
                let point = read.subject_public_key.data.to_vec();
                let curve = point.split_first().filter(|(form, _)| **form == UNCOMPRESSED).and_then(
                    |(_, coordinates)| CURVES.iter().find(|curve| curve.coordinate * 2 == coordinates.len()),
                );
                let curve = curve.ok_or_else(|| {
                    let bits = point.len().saturating_sub(1) * 4;
                    TokenKeyError::Unsupported(format!("an ECDSA key of about {bits} bits"))
                })?;
                Kind::Ecdsa(curve, point)
            }
            _ => return Err(TokenKeyError::Unsupported("a key that is neither RSA nor ECDSA".to_owned())),
        };
        Ok(Self { kind, info: info.to_vec() })
    }

    /// Returns the name of the algorithm in JSON Web Tokens.
    pub(super) fn algorithm(&self) -> &'static str {
        match &self.kind {
            Kind::Rsa { .. } => "RS256",
            Kind::Ecdsa(curve, _) => curve.algorithm,
        }
    }

    pub(super) fn scheme(&self) -> SignatureScheme {
        match &self.kind {
            Kind::Rsa { .. } => SignatureScheme::RSA_PKCS1_SHA256,
            Kind::Ecdsa(curve, _) => curve.scheme,
        }
    }

    /// Returns the key identifier (`kid`).
    pub(super) fn id(&self) -> String {
        encode(digest(&SHA256, &self.info))
    }

    /// Converts a signature from its TLS form to that of tokens.
    pub(super) fn compact(&self, signature: &[u8]) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Rsa { .. } => Some(signature.to_vec()),
            Kind::Ecdsa(curve, _) => {
                let (r, s) = two_integers(signature)?;
                Some([padded(r, curve.coordinate)?, padded(s, curve.coordinate)?].concat())
            }
        }
    }

    /// Returns the claims of a token if this key verifies its signature.
    pub(super) fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let part = |text: &str| serde_json::from_slice::<Value>(&BASE64.decode(text).ok()?).ok();
        if part(header)?.get("alg").and_then(Value::as_str) != Some(self.algorithm()) {
            return None;
        }
        let (how, key): (&'static dyn VerificationAlgorithm, _) = match &self.kind {
            Kind::Rsa { key, .. } => (&RSA_PKCS1_2048_8192_SHA256, key),
            Kind::Ecdsa(curve, point) if **curve == P256 => (&ECDSA_P256_SHA256_FIXED, point),
            Kind::Ecdsa(_, point) => (&ECDSA_P384_SHA384_FIXED, point),
        };
        let signature = BASE64.decode(signature).ok()?;
        UnparsedPublicKey::new(how, key).verify(signed.as_bytes(), &signature).ok()?;
        part(claims)
    }

    /// Returns the key as a JSON Web Key.
    pub(super) fn to_value(&self) -> Value {
        let (id, algorithm) = (self.id(), self.algorithm());
        match &self.kind {
            Kind::Rsa { modulus, exponent, .. } => json!({
                "use": "sig", "kty": "RSA", "kid": id, "alg": algorithm,
                "n": encode(modulus), "e": encode(exponent)
            }),
            Kind::Ecdsa(curve, point) => {
                let coordinate = |number: usize| {
                    let start = 1 + number * curve.coordinate;
                    encode(point.get(start..start + curve.coordinate).unwrap_or_default())
                };
                json!({
                    "use": "sig", "kty": "EC", "kid": id, "crv": curve.name, "alg": algorithm,
                    "x": coordinate(0), "y": coordinate(1)
                })
            }
        }
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len());
    number.get(start..).unwrap_or_default()
}

/// Pads a number to so many bytes; None if it is larger.
fn padded(number: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let number = without_zeros(number);
    let mut out = vec![0; bytes.checked_sub(number.len())?];
    out.extend_from_slice(number);
    Some(out)
}

/// Returns the members of a DER sequence of two integers that is shorter than 256 bytes.
fn two_integers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    /// The DER length form in which one byte of length follows.
    const LONG: u8 = 0x81;
    fn value(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
        let rest = der.strip_prefix(&[tag])?;
        let (length, rest) = match rest.split_first()? {
            (&LONG, rest) => rest.split_first()?,
            (length, rest) => (length, rest),
        };
        rest.split_at_checked(usize::from(*length))
    }
    let (both, _) = value(SEQUENCE, der)?;
    let (r, rest) = value(INTEGER, both)?;
    let (s, _) = value(INTEGER, rest)?;
    Some((r, s))
}
