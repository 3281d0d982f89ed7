//! Tokens of service accounts: issued for a while, signed by the server's own key, believed for as long as the account
//! and the object that they are bound to exist. Client certificates are the transport's.

mod claims;
mod key;

pub(crate) use self::claims::{Binding, Issued, Issuer, Lifetime};
pub use self::key::{TokenKey, TokenKeyError};
