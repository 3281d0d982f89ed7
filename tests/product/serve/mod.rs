//! `admit serve` as a process, and its parts over real connections. Rows are those of the acceptance table of the admission
//! server (`deploy/README.md`).

mod cluster;
mod handshakes;
mod load;
mod recorded;
mod reload;
mod secrets;
pub(crate) mod server;
