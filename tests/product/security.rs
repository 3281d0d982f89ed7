//! Every control of `SECURITY.md` is held by tests that exist.

use std::collections::BTreeSet;

use crate::repository::{root, rust_files};

#[test]
fn controls_of_the_threat_model_are_held_by_tests() {
    let sources: Vec<_> = ["src", "tests"].into_iter().flat_map(rust_files).collect();
    let tests: BTreeSet<&str> = sources.iter().flat_map(|file| functions(&file.text)).collect();
    let text = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let (_, model) = text.split_once("\n## Threat model\n").unwrap();
    let rows: Vec<Vec<&str>> = model
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| asset"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 10, "only {} rows are read", rows.len());
    for row in rows {
        let [asset, attacker, path, control, held] = row[..] else { panic!("no five columns: {row:?}") };
        for cell in [asset, attacker, path, control] {
            assert!(!cell.is_empty(), "an empty cell: {row:?}");
        }
        let names: Vec<&str> = held.split('`').filter(|part| !part.trim().is_empty()).collect();
        assert!(!names.is_empty(), "no test holds: {path}");
        let gone: Vec<_> = names.iter().filter(|name| !tests.contains(*name)).collect();
        assert!(gone.is_empty(), "{path}: no test is called {gone:?}");
    }
}

/// The names of the functions without arguments: tests are among them.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| rest.split_once("()").map(|(name, _)| name))
}
