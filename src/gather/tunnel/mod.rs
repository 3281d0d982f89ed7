//! A connection to a server that archives go to: straight, or through a proxy that is asked to `CONNECT`, in the clear or under TLS.
//!
//! ```text
//!  Proxies ──► Proxy? ──► Route::open ──┬─ look up the server ─► each address: may it be? ─► TCP ──────────► Stream
//!  (settings, by layers)                └─ look up the proxy ──► each address: may it be? ─► TCP (─► TLS) ─► CONNECT ──► Stream
//! ```
//!
//! Decides which proxy leads where (`proxy`), which addresses may be connected to and asked for (`reach`), whom to trust besides
//! the system's authorities (`authorities`). Uses nothing of ours but `telemetry` and `outside`. Left to others: what is
//! spoken over a connection (HTTP under TLS, SSH), and when there is another attempt.

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
