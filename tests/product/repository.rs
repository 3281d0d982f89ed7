//! What the other subjects ask of the checkout: its files, read once, with paths relative to the root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One source file of ours.
pub(crate) struct SourceFile {
    /// Relative to the repository's root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Cargo at the machine's date: it does not get on under faketime, and nothing that it is asked depends on a date.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env_remove("LD_PRELOAD");
    cargo
}

/// Every `.rs` file below `folder`, in path order.
pub(crate) fn rust_files(folder: &str) -> Vec<SourceFile> {
    let mut files = Vec::new();
    collect(&root().join(folder), &mut files);
    assert!(!files.is_empty(), "no Rust files below `{folder}`");
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(folder: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let relative = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            files.push(SourceFile { path: relative, text });
        }
    }
}
