//! The `admit` binary.

fn main() {}
