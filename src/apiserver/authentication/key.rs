//! The key that service account tokens are signed with (ECDSA on P-256, `ES256`), and JSON Web Tokens in compact
//! form.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};

pub(super) const ALGORITHM: &str = "ES256";

/// A coordinate of a point on P-256, in bytes.
const COORDINATE: usize = 32;

/// A key pair. Whoever has it can be every service account.
///
/// ```
/// use admit_apiserver::TokenKey;
///
/// let key = TokenKey::generate()?;
/// assert!(TokenKey::from_pkcs8(key.to_pkcs8()).is_ok(), "kept in a Secret, and read again");
/// assert!(TokenKey::from_pkcs8(b"no key").is_err());
/// # Ok::<(), admit_apiserver::TokenKeyError>(())
/// ```
#[derive(Debug)]
pub struct TokenKey {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenKeyError {
    #[error("no random numbers for a key of service accounts' tokens")]
    Random,
    #[error("not an ECDSA key on P-256 in PKCS #8 form")]
    Form,
}

impl TokenKey {
    /// # Errors
    /// The system has no random numbers.
    pub fn generate() -> Result<Self, TokenKeyError> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(made.map_err(|_| TokenKeyError::Random)?.as_ref())
    }

    /// # Errors
    /// The bytes are no such key.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, TokenKeyError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &SystemRandom::new());
        Ok(Self { pair: pair.map_err(|_| TokenKeyError::Form)?, pkcs8: pkcs8.to_vec() })
    }

    /// The key as it is kept: secret.
    #[must_use]
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    pub(super) fn sign(&self, claims: &Value) -> Result<String, TokenKeyError> {
        let header = json!({"alg": ALGORITHM, "kid": self.id()});
        let signed = [header, claims.clone()].map(|part| BASE64.encode(part.to_string())).join(".");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        Ok(format!("{signed}.{}", BASE64.encode(signature.map_err(|_| TokenKeyError::Random)?)))
    }

    /// The claims of a token that this key signed.
    pub(super) fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let part = |text: &str| serde_json::from_slice::<Value>(&BASE64.decode(text).ok()?).ok();
        let header = part(header)?;
        if header.get("alg").and_then(Value::as_str) != Some(ALGORITHM) {
            return None;
        }
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &BASE64.decode(signature).ok()?).ok()?;
        part(claims)
    }

    /// The public half as a JSON Web Key.
    pub(super) fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        // An uncompressed point: a leading byte, then both coordinates.
        let coordinate = |index: usize| {
            let start = 1 + index * COORDINATE;
            BASE64.encode(point.get(start..start + COORDINATE).unwrap_or_default())
        };
        json!({
            "use": "sig", "kty": "EC", "kid": self.id(), "crv": "P-256", "alg": ALGORITHM,
            "x": coordinate(0), "y": coordinate(1)
        })
    }

    fn id(&self) -> String {
        BASE64.encode(digest(&SHA256, self.pair.public_key().as_ref()))
    }
}
