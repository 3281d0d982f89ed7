//! What can be asserted exactly on any machine: allocations, sizes, and the answers of a second engine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where and stop")]

mod allocations;
mod apiserver;
mod decisions;
mod differential;
