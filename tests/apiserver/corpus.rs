//! Where the recorded corpora are.

use std::path::{Path, PathBuf};

use admit_apiserver::Clock;
use serde_json::Value;

/// When the recordings were made: ages in them are counted from here.
const RECORDED: &str = "2026-11-21T12:00:00Z";

/// The clock by which recordings are replayed.
pub(crate) fn clock() -> Clock {
    Clock::starting_at(RECORDED.parse().expect("a time"))
}

/// The folder of one corpus, or `None` (said loudly) where it is not beside the project.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("ADMIT_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("corpora").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no corpus `{name}` at {}", folder.display());
    None
}

/// The records of a file with one JSON value per line.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}
