//! Accepts the connections of a port, limits how many there are and how long each may be idle, and drains them at
//! shutdown. What is served on a connection is up to its [`Host`]: the webhook or the API server. [`Process`] and [`Names`] are what
//! the metrics of both have in common.
//!
//! ```text
//! listener ──door──► handshake ──► Host::talk(stream, caller, guest)
//!    │     a turn      TLS, on a       │
//!    └──places──►      thread of       └── guest.see_out(connection): driven to its end, or told to go
//!       a place        its own             for another, for its silence, or because the port drains
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `activity` | for how long a connection has been idle | nothing of ours |
//! | `pace` | how slowly a head may be sent, and a response be read | activity |
//! | `places` | how many connections there are, and which is closed to make room | activity |
//! | `door` | how many handshakes run at a time, and on which thread | nothing of ours |
//! | `guest` | when a connection is told to close, and how long that may take | activity, places |
//! | `clients` | which client certificates are accepted beyond what their authorities say | nothing of ours |
//! | `accept` | which connections are accepted, and when a drain is over | door, guest, places |
//! | `closed` | what a connection is that we made and its peer closed | nothing of ours |
//! | `process` | what metrics say of the process | nothing of ours |
//! | `names` | which names that others choose become labels of metrics | nothing of ours |
//!
//! Contains nothing about HTTP, policies or Kubernetes objects.

mod accept;
mod activity;
mod clients;
mod closed;
mod door;
mod guest;
mod names;
mod pace;
mod places;
mod process;

pub use accept::{Caller, Event, Host, Port, ServeError, serve};
pub use activity::{Activity, UnderWay};
pub use clients::{Verdict, anybody, judged};
pub use closed::EndsClosed;
pub use door::NoEntry;
pub use guest::{Guest, Limits};
pub use names::{Names, OTHER};
pub use pace::Paced;
pub use places::{Place, Places};
pub use process::Process;
