//! Defines the errors of token keys.

/// Says why a token key cannot be created or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenKeyError {
    #[error("no random numbers for a key of service accounts' tokens")]
    Random,
    #[error("data does not contain a valid RSA or ECDSA private key: {0}")]
    NoPrivateKey(String),
    #[error("data does not contain any valid RSA or ECDSA public keys: {0}")]
    NoPublicKey(String),
    /// The key is supported by kube-apiserver and not by this server.
    #[error("{0} is not supported; give an RSA key of 2048 to 4096 bits, or an ECDSA key on P-256 or P-384")]
    Unsupported(String),
}
