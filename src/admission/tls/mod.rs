//! Manages certificates and TLS settings: a private authority in a folder, the leaves that it issues, and rustls
//! configurations. Callers open listeners and serve requests.

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
