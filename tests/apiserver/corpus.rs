//! Recorded answers, and when they were recorded.

use std::path::Path;

use admit_apiserver::Clock;
use serde_json::Value;

/// When the recordings were made: ages in them are counted from here.
const RECORDED: &str = "2026-11-21T12:00:00Z";

/// The clock by which recordings are replayed.
pub(crate) fn clock() -> Clock {
    Clock::starting_at(RECORDED.parse().expect("a time"))
}

/// The records of a file with one JSON value per line.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}
