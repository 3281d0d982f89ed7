//! Runs folders of recorded answers.

fn main() {}
