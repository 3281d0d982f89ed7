//! Any bytes as a strategic merge patch: nothing grows by more than 64 MiB + 20 bytes for each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memory::cluster::PODS;
use memory::fuzzing::sent;

fuzz_target!(|bytes: &[u8]| sent("PATCH", &format!("{PODS}/a"), "application/strategic-merge-patch+json", bytes));
