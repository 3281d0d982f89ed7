//! Connects to servers that receive archives: directly, or through a proxy with `CONNECT`, with or without TLS to the proxy.
//!
//! ```text
//!  Proxies ──► Proxy? ──► Route::open ──┬─ look up the server ─► each address: may it be? ─► TCP ──────────► Stream
//!  (settings, by layers)                └─ look up the proxy ──► each address: may it be? ─► TCP (─► TLS) ─► CONNECT ──► Stream
//! ```
//!
//! It decides which proxy is used (`proxy`), which addresses may be connected to and requested (`reach`), and which authorities are
//! trusted besides the system's (`authorities`). It uses only `telemetry` and `outside` of this crate. The protocol on a
//! connection (HTTP with TLS, SSH) and retries are left to callers.

mod authorities;
mod connect;
mod error;
mod host;
mod proxy;
mod reach;

pub use authorities::{TransportSetupError, client_tls};
pub use connect::{Hop, Route, Stream, Waits};
pub use error::{ProxyError, TunnelError};
pub use host::{Host, HostError};
pub use proxy::{Proxies, Proxy};
pub use reach::{Addresses, ParseReachError, Reach};
