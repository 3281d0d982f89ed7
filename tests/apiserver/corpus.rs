//! Where the recorded corpora are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

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

/// The ids listed in `tests/known-failures/NAME.txt`, each in a group under a heading `# reason`.
pub(crate) fn known_failures(name: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/known-failures/{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut ids = BTreeSet::new();
    for group in text.split("\n\n") {
        assert!(
            group.trim().is_empty() || group.starts_with('#'),
            "{name}: a group without a reason:\n{group}"
        );
        let listed = group.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        ids.extend(listed.map(str::to_owned));
    }
    ids
}
