//! Bounds the memory that input may cost: no request and no file of N bytes makes a reader or a server grow by more than
//! 64 MiB + 20 × N.
//!
//! | part | decides |
//! |---|---|
//! | [`growth`] | the peak memory growth of some work, on all threads |
//! | [`readers`] | what reads bytes: reviews, JSON, YAML, policies |
//! | [`cluster`] | an API server in process, with objects to change |
//! | [`bodies`] | the worst known input for each, of any size, and generated text |
//! | [`definitions`] | definitions that are large in various ways |
//! | [`objects`] | objects of very many parts that a server stores |
//! | [`fuzzing`] | the assertions of the targets `memory_*` of `tests/fuzz` |
//!
//! `tests/` holds a short form that fits in the time of the gate.

pub mod bodies;
pub mod cluster;
pub mod definitions;
pub mod fuzzing;
pub mod objects;
pub mod readers;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The bytes of memory that any input may take.
pub const FREE: usize = 64 << 20;

/// The bytes of memory for each byte of input.
pub const PER_BYTE: usize = 20;

/// Returns the memory that an input of `length` bytes may take.
#[must_use]
pub const fn allowed(length: usize) -> usize {
    FREE + PER_BYTE * length
}

/// Runs `work`; returns the growth of the process's memory afterwards, and the result. Nothing else may run meanwhile.
pub fn held<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = MEMORY.current_usage();
    let result = work();
    (MEMORY.current_usage().saturating_sub(before), result)
}

/// Runs `work`; returns the peak growth of the process's memory, and the result. Nothing else may run meanwhile.
pub fn growth<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work();
    (MEMORY.peak_usage().saturating_sub(before), result)
}
