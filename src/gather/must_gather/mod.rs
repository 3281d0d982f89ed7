//! A must-gather: a folder that a command fills, and one archive of it that is sent to a support case.
//!
//! ```text
//!  container gather:  wrapper ─► command ─► output folder        container upload:  wait ─► bundle, or clean ─► upload::sftp
//!                        └────────── mark: lock, then how it ended ──────────────────┘
//! ```
//!
//! Decides how a command is run and ended, what tells the other container that it has, and what an archive holds of a folder.
//! Uses nothing of ours but `obfuscate` and `telemetry`. Left to others: what the command collects, where the archive goes, and what a
//! MustGather's status says.

pub mod bundle;
pub mod clean;
pub mod collect;
pub mod mark;
pub mod wrapper;
