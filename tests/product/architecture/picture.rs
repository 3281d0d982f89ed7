//! The import graph of packages and modules, drawn into the head of `src/lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use super::graph::Sources;
use crate::repository::root;

const HEAD: &str = "src/lib.rs";
const OPEN: &str =
    "//! Who imports whom, drawn from the sources by `tests/product/architecture`:\n//!\n//! ```text\n";
const CLOSE: &str = "//! ```\n";
const WIDTH: usize = 108;

#[test]
fn the_picture_is_that_of_the_sources() {
    let path = root().join(HEAD);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) =
        text.split_once(OPEN).unwrap_or_else(|| panic!("{HEAD}: no picture; write before it:\n{OPEN}"));
    let (now, after) = rest.split_once(CLOSE).unwrap();
    let drawn = drawn(&edges());
    if std::env::var_os("ADMIT_BLESS").is_some() {
        fs::write(&path, format!("{before}{OPEN}{drawn}{CLOSE}{after}")).unwrap();
    } else {
        assert_eq!(
            now, drawn,
            "{HEAD}: another picture than that of the sources; run with ADMIT_BLESS=1 and read the diff"
        );
    }
}

/// Each package and each module of the root package, with those that it names.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let sources = Sources::read();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for table in sources.tables().iter().filter(|table| table.head == HEAD) {
        edges.extend(table.modules().into_iter().map(|module| (module, BTreeSet::new())));
        for (module, other, _) in sources.uses(table) {
            edges.entry(module).or_default().insert(other);
        }
    }
    edges
}

/// A line for each, the highest first: whoever is named stands further down.
fn drawn(edges: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut all: Vec<_> =
        edges.iter().map(|(module, used)| (height(module, edges, edges.len()), module, used)).collect();
    all.sort_by_key(|(height, module, _)| (std::cmp::Reverse(*height), *module));
    let width = edges.keys().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    let mut last = None;
    for (height, module, used) in all {
        if last.is_some_and(|last| last != height) {
            text.push_str("//!\n");
        }
        last = Some(height);
        let mut line = format!("//! {:width$}", shown(module));
        let mut sign = " ─► ";
        for name in used {
            if line.chars().count() + name.len() + 4 > WIDTH {
                let _ = writeln!(text, "{line}");
                line = format!("//! {:width$}", "");
                sign = "    ";
            }
            let _ = write!(line, "{sign}{}", shown(name));
            sign = " ";
        }
        let _ = writeln!(text, "{line}");
    }
    text.lines().fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

/// How many stand below it, one on another. `left` ends the walk where there is a circle, which another test tells.
fn height(module: &str, edges: &BTreeMap<String, BTreeSet<String>>, left: usize) -> usize {
    let below = edges.get(module).filter(|_| left > 0).into_iter().flatten();
    below.map(|other| 1 + height(other, edges, left - 1)).max().unwrap_or_default()
}

fn shown(name: &str) -> String {
    name.replace('_', "-")
}

#[test]
fn who_is_used_stands_below() {
    let edges = [("b", vec!["a_x"]), ("c", vec!["a_x", "b"]), ("a_x", vec![])]
        .map(|(module, used)| (module.to_owned(), used.into_iter().map(str::to_owned).collect()));
    assert_eq!(drawn(&edges.into()), "//! c   ─► a-x b\n//!\n//! b   ─► a-x\n//!\n//! a-x\n");
}
