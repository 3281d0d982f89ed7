//! Implements data gathering: collects data of a cluster, writes it into one archive, and uploads that.
//!
//! ```text
//!  GATHERERS ──select──► collect (bounded, each isolated) ──► Archive ──► ArchiveStore::publish ──► upload
//!   (a table)  (spec)      │ records, obfuscated, on disk      tar.gz       one file per uid       request id
//!                          └─► Keeper ──► Spool ─────────────────┘
//! ```
//!
//! Input: a Kubernetes client, the choice of gatherers, obfuscation rules. Output: one tar.gz file and a row per
//! gatherer. When a gathering runs, and what its object's status says, is decided by `controllers::datagather`.

pub mod anonymize;
pub mod archive;
pub mod cluster;
pub mod collect;
pub mod failure;
pub mod gatherer;
pub mod gatherers;
mod lister;
pub mod must_gather;
pub mod obfuscate;
pub mod record;
pub mod recorder;
pub mod remote;
pub mod select;
mod shared_list;
pub mod spool;
pub mod store;
pub mod tunnel;
mod under_way;
pub mod upload;

pub use failure::Failure;
pub use gatherer::{Agents, Begin, Context, Gatherer, Look, Run, Shared};
pub use gatherers::GATHERERS;
