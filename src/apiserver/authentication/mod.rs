//! Issues and verifies tokens of service accounts: signed by the server's own key, valid for a limited time and only
//! as long as the account and the object that they are bound to exist. Client certificates are verified by the
//! transport.

mod claims;
mod error;
mod jwt;
mod key;
#[cfg(test)]
mod test_keys;

pub(crate) use self::claims::{Binding, Issued, Issuer, Lifetime};
pub use self::error::TokenKeyError;
pub use self::key::{TokenKey, TokenPublicKey};
