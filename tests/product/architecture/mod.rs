//! Who may import whom, and how long a file and a function may grow. The tables are those in the heads of the modules
//! that [`HEADS`] lists, so that text and test cannot differ.

mod errors;
mod files;
mod graph;
mod heads;
mod kinds;
mod paths;
mod picture;
mod sizes;

use self::graph::{Sources, circle};
use crate::repository::{SourceFile, cargo, root, rust_files};

/// The files whose heads hold a table, beside those of the controllers.
const HEADS: [&str; 10] = [
    "src/lib.rs",
    "src/analysis/lib.rs",
    "src/apimachinery/lib.rs",
    "src/cel/lib.rs",
    "src/language/lib.rs",
    "src/policy/lib.rs",
    "src/serving/lib.rs",
    "src/apiserver/lib.rs",
    "src/testing/lib.rs",
    "src/controllers/mod.rs",
];

/// Packages that must never stand, at any depth, below a deciding package.
const NOT_IN_DECIDING_CODE: &[&str] = &["tokio", "hyper", "kube", "axum", "tower", "k8s-openapi", "reqwest"];

#[test]
fn modules_use_only_what_their_table_allows() {
    let sources = Sources::read();
    let mut wrong = Vec::new();
    for table in sources.tables() {
        for (module, other, file) in sources.uses(&table) {
            if !table.allows(&module, &other) {
                wrong.push(format!(
                    "{file}: `{module}` may not use `{other}` by the table of {}; move what it needs, or allow it there",
                    table.head
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_stands_in_a_table() {
    let sources = Sources::read();
    let wrong: Vec<_> =
        sources.tables().iter().flat_map(|table| table.against(&sources.modules(&table.folder))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_table_allows_a_circle() {
    let mut wrong = Vec::new();
    for table in Sources::read().tables() {
        if let Some(circle) = circle(&table.modules(), |module, other| table.allows(module, other)) {
            wrong.push(format!("{}: {}", table.head, circle.join(" → ")));
        }
    }
    assert!(wrong.is_empty(), "circles; move what two of them share below both:\n{}", wrong.join("\n"));
}

#[test]
fn deciding_code_does_not_await_or_read_clocks_and_files() {
    for folder in ["src/analysis", "src/apimachinery", "src/cel", "src/language", "src/policy"] {
        for file in rust_files(folder).into_iter().filter(|file| !is_test(&file.path)) {
            for word in ["async fn", ".await", "std::fs", "SystemTime::now", "Instant::now", "std::net::Tcp"]
            {
                assert!(!file.text.contains(word), "{}: `{word}` has no place in deciding code", file.path);
            }
        }
    }
}

/// Ages, times in objects and the lives of tokens go by the clock that a server was given.
#[test]
fn the_server_reads_the_time_of_day_from_its_clock() {
    let wall =
        ["Timestamp::now", "SystemTime", "Zoned::now", "OffsetDateTime", "Utc::now", "Local::now", "now_v7"];
    let read = |file: &SourceFile| wall.into_iter().find(|word| file.text.contains(word));
    for file in rust_files("src/apiserver") {
        match (file.path.as_str(), read(&file)) {
            ("src/apiserver/clock.rs", found) => {
                assert!(found.is_some(), "this test finds no reading of a clock")
            }
            (path, Some(word)) => {
                panic!("{path}: `{word}` reads the time of day past the clock; ask `Clock::now`")
            }
            _ => {}
        }
    }
}

#[test]
fn deciding_packages_stand_on_no_runtime() {
    for package in ["admit-analysis", "admit-apimachinery", "admit-cel", "admit-language", "admit-policy"] {
        let tree = cargo()
            .args([
                "tree",
                "--offline",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "--format",
                "{p}",
                "-p",
                package,
            ])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(tree.status.success(), "cargo tree: {}", String::from_utf8_lossy(&tree.stderr));
        let text = String::from_utf8(tree.stdout).unwrap();
        for line in text.lines() {
            let name = line.split_whitespace().next().unwrap_or_default();
            assert!(!NOT_IN_DECIDING_CODE.contains(&name), "{package} depends on {name}");
        }
    }
}

#[test]
fn every_module_says_what_it_decides() {
    for file in rust_files("src") {
        assert!(file.text.starts_with("//!"), "{}: no module head", file.path);
    }
}

/// Whether a file holds tests alone; those read their cases from files.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("/tests.rs") || path.contains("/tests/")
}
