//! Any bytes as a merge patch: nothing grows by more than 64 MiB + 20 bytes for each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memory::cluster::THINGS;
use memory::fuzzing::sent;

fuzz_target!(|bytes: &[u8]| sent("PATCH", &format!("{THINGS}/a"), "application/merge-patch+json", bytes));
