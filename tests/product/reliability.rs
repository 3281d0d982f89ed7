//! The table of `deploy/RELIABILITY.md` is the one that the results in `deploy/reliability.json` make. `scripts/soak keep FILE`
//! takes over the results of a run, and writes the table anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::repository::{root, rust_files};
use crate::support::reliability::{NOT_ASKED, ROWS};

const OPEN: &str = "<!-- made from reliability.json -->\n";
const CLOSE: &str = "<!-- end -->\n";

#[test]
fn the_table_is_that_of_the_results() {
    let path = root().join("deploy/RELIABILITY.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(OPEN).unwrap();
    let (now, after) = rest.split_once(CLOSE).unwrap();
    let results = fs::read_to_string(root().join("deploy/reliability.json")).unwrap();
    let table = table(&serde_json::from_str(&results).unwrap());
    if std::env::var_os("ADMIT_WRITE_TABLE").is_some() {
        fs::write(&path, format!("{before}{OPEN}{table}{CLOSE}{after}")).unwrap();
    } else {
        assert_eq!(now, table, "stale: `scripts/soak keep FILE` writes it");
    }
}

/// A line a test of each row, with the worst first in doubt: what failed is said to have failed.
fn table(results: &Value) -> String {
    let text = |key: &str| results[key].as_str().unwrap_or_default().to_owned();
    let mut table = format!(
        "Commit {}, {} cores, {}.\n\n| row | what | asked | measured | |\n|---|---|---|---|---|\n",
        text("commit"),
        results["cores"],
        text("remark"),
    );
    let mut by_row: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for record in results["rows"].as_array().unwrap() {
        by_row.entry(record["row"].as_u64().unwrap()).or_default().push(record);
    }
    for asked in &*ROWS {
        let records = by_row.remove(&u64::from(asked.row)).unwrap_or_default();
        let all: Vec<String> = records.iter().map(|record| measured(record)).collect();
        let verdict = match () {
            () if records.is_empty() => "not measured",
            () if records.iter().any(|record| record["passed"] != true) => "**missed**",
            () => "held",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {verdict} |",
            asked.row,
            asked.name,
            asked.asked,
            all.join("<br>")
        );
    }
    for (row, name, reason) in NOT_ASKED {
        let _ = writeln!(table, "| {row} | {name} | {reason} | | |");
    }
    assert!(by_row.is_empty(), "rows that nobody asks about: {by_row:?}");
    table
}

/// `mutated reviews (full): requests 200000, denied 199 …`
fn measured(record: &Value) -> String {
    let form = match (record["percent"].as_u64(), record["optimised"] == true) {
        (Some(100), true) => "full".to_owned(),
        (Some(percent), true) => format!("{percent} %"),
        (Some(percent), false) => format!("{percent} %, debug build"),
        (None, true) => "short".to_owned(),
        (None, false) => "short, debug build".to_owned(),
    };
    let numbers = record["measured"].as_object().into_iter().flatten();
    let numbers: Vec<String> = numbers.map(|(name, value)| format!("{name} {}", plain(value))).collect();
    let failed = if record["passed"] == true { "" } else { "**failed** " };
    format!("{failed}{} ({form}): {}", record["test"].as_str().unwrap_or_default(), numbers.join(", "))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:.1}", number.as_f64().unwrap()),
        Value::Object(map) => {
            let inner: Vec<String> =
                map.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect();
            format!("({})", inner.join(", "))
        }
        Value::String(text) => text.clone(),
        other => other.to_string().replace(',', ", "),
    }
}

/// Every row has a test of its number; those that take long have a form that `scripts/soak` runs.
#[test]
fn every_row_has_a_test() {
    let mut tested = BTreeSet::new();
    let needle = ["fn", "row_"].join(" ");
    for file in rust_files("tests/product") {
        for (at, _) in file.text.match_indices(&needle) {
            let number = file.text.get(at + 7..at + 9).unwrap_or_default();
            tested.insert(number.parse::<u8>().unwrap_or_else(|_| panic!("{}: row_{number}", file.path)));
        }
    }
    let asked: BTreeSet<u8> = ROWS.iter().map(|asked| asked.row).collect();
    assert_eq!(tested, asked);
    let all: BTreeSet<u8> = asked.into_iter().chain(NOT_ASKED.iter().map(|(row, ..)| *row)).collect();
    assert_eq!(all, (1..=47).collect());
}
