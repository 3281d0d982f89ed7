//! Any bytes as a file of policies: nothing grows by more than 64 MiB + 20 bytes for each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memory::fuzzing::within;
use memory::readers;

fuzz_target!(|bytes: &[u8]| within(bytes.len(), || readers::policies(bytes)));
