//! Certificates and TLS settings: a private authority kept in a folder, the leaves it issues, and the rustls
//! configurations made of them. What listens and what is served is the caller's business.

mod authority;
mod clients;
mod config;
mod error;
mod managed;

#[cfg(test)]
mod tests;

pub use authority::{Authority, AuthorityError, CertificateError, Identity, write_private};
pub use clients::Clients;
pub use config::{WebhookTls, chain_and_key, server_config};
pub use error::TlsConfigError;
pub use managed::{Lives, Managed, Renewal};
