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
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `crd` | ObservabilityAddon as Rust types | none of these |
//! | `vocabulary` | names, order and transitions of conditions, as data | none of these |
//! | `aggregate` | one condition out of those of the components. Pure | vocabulary |
//! | `failures` | when failures of forwarding are reported. Pure | vocabulary |
//! | `report` | the condition of a component, for collectors | crd, vocabulary |
//! | `last_seen` | the add-on as last reconciled | crd |
//! | `counts` | metrics | crd, vocabulary |
//! | `changes` | which changes are reconciled | aggregate, crd, vocabulary |
//! | `endpoint` | the conditions of collectors, as the endpoint operator reports them | crd, report, vocabulary |
//! | `reconcile` | the add-on of this cluster | aggregate, changes, counts, crd, endpoint, last_seen, vocabulary |
//! | `hub` | the object on the hub, and the way there | counts, crd, last_seen |
//! | `service` | the controllers and their watches | changes, counts, crd, endpoint, hub, last_seen, reconcile, vocabulary |

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
