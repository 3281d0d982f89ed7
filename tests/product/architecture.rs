//! Who may import whom, and how long a file may grow. The tables are the ones that `src/lib.rs`, `src/apimachinery/lib.rs`,
//! `src/cel/lib.rs` and `src/serving/lib.rs` state.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{SourceFile, cargo, root, rust_files};

/// Module of the root package, and the modules of the root package it may name.
const ROOT: &[(&str, &[&str])] = &[
    ("admission", &["outside", "private", "telemetry"]),
    ("cli", &["admission", "controllers", "gather", "localnode", "outside", "private", "telemetry"]),
    ("controllers", &["gather", "outside", "telemetry"]),
    ("gather", &["outside", "telemetry"]),
    ("localnode", &["private", "telemetry"]),
    ("outside", &[]),
    ("private", &[]),
    ("telemetry", &[]),
];

/// Packages of ours that a module of the root package may name.
const ROOT_PACKAGES: &[(&str, &[&str])] = &[
    ("admission", &["admit_apimachinery", "admit_cel", "admit_policy", "admit_serving"]),
    ("cli", &["admit_apimachinery", "admit_cel", "admit_policy", "admit_apiserver"]),
    ("controllers", &["admit_apimachinery", "admit_cel", "admit_policy"]),
    ("gather", &["admit_apimachinery"]),
    ("localnode", &["admit_apimachinery"]),
    ("outside", &[]),
    ("private", &[]),
    ("telemetry", &[]),
];

/// Packages of ours that stand on each other, and those that each may name: the ground floor names none.
const PACKAGES: &[(&str, &[&str])] = &[
    ("apimachinery", &[]),
    ("cel", &["admit_apimachinery"]),
    ("policy", &["admit_apimachinery", "admit_cel"]),
    ("serving", &[]),
    ("apiserver", &["admit_apimachinery", "admit_policy", "admit_serving"]),
];

/// Module of admit-apimachinery, and the modules of admit-apimachinery it may name.
const APIMACHINERY: &[(&str, &[&str])] = &[
    ("bounded", &[]),
    ("diff", &[]),
    ("field_error", &["go", "status"]),
    ("findings", &["field_error"]),
    ("go", &[]),
    ("labels", &["names"]),
    ("names", &[]),
    ("quantity", &[]),
    ("selector", &["labels", "status"]),
    ("status", &["go", "field_error", "findings"]),
    ("suggest", &[]),
    ("weight", &[]),
    ("yaml", &["bounded", "go", "weight"]),
];

/// Module of admit-serving, and the modules of admit-serving it may name.
const SERVING: &[(&str, &[&str])] = &[
    ("accept", &["door", "guest", "places"]),
    ("activity", &[]),
    ("door", &[]),
    ("guest", &["activity", "places"]),
    ("pace", &["activity"]),
    ("places", &["activity"]),
];

/// Module of admit-cel, and the modules of admit-cel it may name.
const CEL: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("diagnostic", &["source"]),
    ("limits", &[]),
    ("names", &[]),
    ("syntax", &["source", "diagnostic", "limits", "names"]),
    ("types", &["source", "names"]),
    ("value", &["types", "limits", "document"]),
    ("document", &["limits"]),
    ("cost", &["syntax", "types"]),
    ("estimate", &["check", "cost", "library", "syntax", "types"]),
    ("library", &["types", "value", "cost", "limits", "document"]),
    ("check", &["syntax", "types", "library", "diagnostic", "source", "limits"]),
    ("plan", &["check", "syntax", "types", "value", "library", "source", "limits", "document"]),
    ("eval", &["plan", "value", "limits", "types", "library", "source", "document"]),
    (
        "env",
        &[
            "check",
            "cost",
            "diagnostic",
            "document",
            "estimate",
            "eval",
            "library",
            "limits",
            "plan",
            "source",
            "syntax",
            "types",
            "value",
        ],
    ),
];

/// A module, and what it may name.
type Table = &'static [(&'static str, &'static [&'static str])];

/// The tables of modules: the folder, the rows, and what a module calls its crate.
const TABLES: [(&str, Table, &str); 4] = [
    ("src", ROOT, "crate"),
    ("src/apimachinery", APIMACHINERY, "crate"),
    ("src/cel", CEL, "crate"),
    ("src/serving", SERVING, "crate"),
];

/// Packages that must never stand, at any depth, below a deciding package.
const NOT_IN_DECIDING_CODE: &[&str] = &["tokio", "hyper", "kube", "axum", "tower", "k8s-openapi", "reqwest"];

const LINES_HARD: usize = 700;
const LINES_HARD_TEST: usize = 1_000;

#[test]
fn modules_name_only_their_allowed_neighbours() {
    let mut wrong = Vec::new();
    for (folder, table, prefix) in TABLES {
        let allowed: BTreeMap<_, BTreeSet<_>> =
            table.iter().map(|(m, may)| (*m, may.iter().copied().collect())).collect();
        for file in rust_files(folder) {
            let Some(module) = module_of(folder, &file.path) else { continue };
            let Some(may) = allowed.get(module.as_str()) else { continue };
            for named in names_after(&file.text, prefix) {
                if named != module && allowed.contains_key(named.as_str()) && !may.contains(named.as_str()) {
                    wrong.push(format!("{}: `{module}` may not use `{named}`", file.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

/// A further controller is a folder on top of the kit; the kit knows none of them, and nothing of what they gather.
#[test]
fn controllers_know_the_kit_and_not_each_other() {
    let files = rust_files("src/controllers");
    let folder = |path: &str| {
        let below = path.strip_prefix("src/controllers/")?;
        below.split_once('/').map(|(folder, _)| folder.to_owned())
    };
    let all: BTreeSet<String> = files.iter().filter_map(|file| folder(&file.path)).collect();
    assert!(all.contains("kit") && all.len() > 2, "{all:?}");
    for file in &files {
        let Some(own) = folder(&file.path) else { continue };
        for other in all.iter().filter(|other| **other != own && *other != "kit") {
            let mut paths = vec![format!("controllers::{other}::"), format!("super::super::{other}::")];
            paths
                .extend(file.path.ends_with(&format!("{own}/mod.rs")).then(|| format!("use super::{other}")));
            for path in paths {
                assert!(!file.text.contains(&path), "{}: `{own}` may not use `{other}`", file.path);
            }
        }
        let gathers = file.text.contains("crate::gather");
        assert!(own != "kit" || !gathers, "{}: the kit may not use `gather`", file.path);
    }
}

#[test]
fn every_module_stands_in_a_table() {
    for (folder, table, _) in TABLES {
        for file in rust_files(folder) {
            let Some(module) = module_of(folder, &file.path) else { continue };
            assert!(
                table.iter().any(|(m, _)| *m == module),
                "{}: module `{module}` has no row in tests/product/architecture.rs; say what it may use",
                file.path
            );
        }
    }
}

#[test]
fn modules_name_only_their_allowed_packages() {
    let ours = ["admit_apimachinery", "admit_cel", "admit_policy", "admit_serving", "admit_apiserver"];
    for file in rust_files("src") {
        let nested = PACKAGES.iter().find(|(folder, _)| file.path.starts_with(&format!("src/{folder}/")));
        let (module, may) = match (nested, module_of("src", &file.path)) {
            (Some((folder, may)), _) => ((*folder).to_owned(), *may),
            (None, Some(module)) => {
                let may = ROOT_PACKAGES.iter().find(|(m, _)| *m == module).map_or(&[][..], |(_, may)| may);
                (module, may)
            }
            (None, None) => continue,
        };
        let own = format!("admit_{module}");
        for package in ours.into_iter().filter(|package| *package != own) {
            let named = file.text.contains(&format!("{package}::"));
            assert!(!named || may.contains(&package), "{}: `{module}` may not use `{package}`", file.path);
        }
    }
}

#[test]
fn deciding_code_does_not_await_or_read_clocks_and_files() {
    for folder in ["src/apimachinery", "src/cel", "src/policy"] {
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
    for package in ["admit-apimachinery", "admit-cel", "admit-policy"] {
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
fn files_stay_readable() {
    let long: Vec<_> = ["src", "tests"]
        .iter()
        .flat_map(|folder| rust_files(folder))
        .filter(|file| {
            file.text.lines().count() > if is_test(&file.path) { LINES_HARD_TEST } else { LINES_HARD }
        })
        .map(|file| format!("{} ({} lines)", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "past the hard limit; look for the seam:\n{}", long.join("\n"));
}

#[test]
fn every_module_says_what_it_decides() {
    for file in rust_files("src") {
        assert!(file.text.starts_with("//!"), "{}: no module head", file.path);
    }
}

/// Whether a file holds tests alone; those read their cases from files.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("/tests.rs")
}

/// The first path segment below `folder`; nothing for files of nested packages and for the crate root.
fn module_of(folder: &str, path: &str) -> Option<String> {
    let below = path.strip_prefix(folder)?.strip_prefix('/')?;
    let first = below.split('/').next()?.trim_end_matches(".rs");
    if folder == "src" && PACKAGES.iter().any(|(package, _)| *package == first) {
        return None;
    }
    (!["lib", "main"].contains(&first)).then(|| first.to_owned())
}

/// Every identifier that follows `prefix::`, also inside one level of braces: `crate::{a, b::c}`.
fn names_after(text: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let needle = format!("{prefix}::");
    for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices(&needle) {
            let rest = &line[at + needle.len()..];
            let list = rest.strip_prefix('{').map_or(rest, |inner| inner.split('}').next().unwrap_or(inner));
            let parts: Vec<_> = if rest.starts_with('{') { list.split(',').collect() } else { vec![list] };
            names.extend(parts.into_iter().map(|part| {
                part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
            }));
        }
    }
    names
}

#[test]
fn a_forbidden_import_would_be_found() {
    let names = names_after("use crate::{plan::Program, value};\nlet x = crate::eval::run();", "crate");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["eval", "plan", "value"]);
    assert_eq!(module_of("src/cel", "src/cel/value/node.rs").as_deref(), Some("value"));
    assert_eq!(module_of("src", "src/cel/value/node.rs"), None);
}
