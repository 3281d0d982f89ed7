//! Implements must-gathers: a command fills a folder, and one archive of that is sent to a support case.
//!
//! ```text
//!  container gather:  wrapper ─► command ─► output folder        container upload:  wait ─► bundle, or clean ─► upload::sftp
//!                        └────────── mark: lock, then how it ended ──────────────────┘
//! ```
//!
//! It runs and stops the command, signals its end to the other container, and writes the archive of the folder. It uses
//! only `obfuscate` and `telemetry` of this crate. What the command collects, where the archive is sent, and what a MustGather's
//! status says is decided elsewhere.

pub mod bundle;
pub mod clean;
pub mod collect;
pub mod mark;
pub mod wrapper;
