//! Maintains the status of an ObservabilityAddon: the conditions of its components, aggregated into one, here and on
//! the hub.
//!
//! ```text
//!  collectors, endpoint operator ── report ──► component conditions ── aggregate ──► one standard condition
//!                                              of the spoke's object                        │
//!                                                    ▲ spec                                 │ the whole status, where it differs
//!                                                    └──────────── the hub's object ◄───────┘
//!                                                                        └─ mirror ──► ManagedClusterAddOn
//! ```
//!
//! The conditions are a plain list that several writers share, so that every write reads, changes and writes the
//! whole list, fenced by resourceVersion. Names, order and transitions are data, in [`vocabulary`]; what follows from
//! them is pure, in [`aggregate`] and [`report`]. There is no policy on how the standard condition may change: a
//! level-triggered controller skips states, and would be locked out by such a policy for ever.

pub mod aggregate;
mod changes;
pub mod counts;
pub mod crd;
pub mod endpoint;
pub mod failures;
pub mod hub;
mod last_seen;
pub mod reconcile;
pub mod report;
mod service;
pub mod vocabulary;

pub use service::{NAME, Settings, member, run};
