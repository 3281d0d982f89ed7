//! Accepts the connections of a port, limits how many there are and how long each may be silent, and drains them at the end.
//! What is said on a connection is the business of its [`Host`]: the webhook's, or the API server's.
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
//! | `activity` | for how long nothing has been under way on a connection | nothing of ours |
//! | `pace` | how slowly a head may come, and an answer be taken | activity |
//! | `places` | how many connections there are, and which goes for another | activity |
//! | `door` | how many handshakes there are at a time, and where | nothing of ours |
//! | `guest` | when a connection is told to go, and how long it may take | activity, places |
//! | `accept` | who comes in, and when all have gone | door, guest, places |
//!
//! Knows no HTTP, no policy and no object.

mod accept;
mod activity;
mod door;
mod guest;
mod pace;
mod places;

pub use accept::{Caller, Event, Host, Port, ServeError, serve};
pub use activity::{Activity, UnderWay};
pub use door::NoEntry;
pub use guest::{Guest, Limits};
pub use pace::Paced;
pub use places::{Place, Places};
