//! What bytes from outside may cost: no request and no file of N bytes makes a reader or a server grow by more than
//! 64 MiB + 20 × N.
//!
//! | part | decides |
//! |---|---|
//! | [`growth`] | how much more memory something took at its peak, on all threads |
//! | [`readers`] | what reads bytes: reviews, JSON, YAML, policies |
//! | [`cluster`] | an API server in process, with objects to change |
//! | [`bodies`] | the worst that is known for each, of any size, and generated text |
//! | [`definitions`] | definitions that are large in one way or another |
//! | [`objects`] | objects of very many parts, which a server stores |
//!
//! | [`fuzzing`] | what the targets `memory_*` of `tests/fuzz` assert of any bytes |
//!
//! `tests/` holds the short form, of which the gate has the time.

pub mod bodies;
pub mod cluster;
pub mod definitions;
pub mod fuzzing;
pub mod objects;
pub mod readers;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What anything may take, however few bytes came.
pub const FREE: usize = 64 << 20;

/// What it may take for each byte.
pub const PER_BYTE: usize = 20;

/// What `length` bytes may cost.
#[must_use]
pub const fn allowed(length: usize) -> usize {
    FREE + PER_BYTE * length
}

/// By how much the memory of the process has grown when `work` is done. Nothing else may run beside it.
pub fn held<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = MEMORY.current_usage();
    let result = work();
    (MEMORY.current_usage().saturating_sub(before), result)
}

/// By how much the memory of the process grew at its peak while `work` ran. Nothing else may run beside it.
pub fn growth<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work();
    (MEMORY.peak_usage().saturating_sub(before), result)
}
