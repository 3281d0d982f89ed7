//! `admit serve` as a process, and its parts over real connections. Rows are those of the acceptance table of the admission
//! server (`deploy/README.md`).

mod clocks;
pub(crate) mod cluster;
mod exceptions;
pub(crate) mod files;
mod handshakes;
mod hostile;
mod http2;
pub(crate) mod load;
mod native;
mod operator;
mod params;
mod recorded;
mod reload;
mod renewal;
mod routes;
mod secrets;
pub(crate) mod server;
mod stored_exceptions;
mod traces;
