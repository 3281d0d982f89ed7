//! Row 17 by a fuzzer: an hour for each target of `tests/fuzz`, which knows what it has not seen yet.

use std::process::{Command, Stdio};

use serde_json::json;

use super::{percent, scaled};
use crate::repository::root;
use crate::support::reliability::Row;

const HOUR: usize = 3_600;
/// The targets, and what their records are called.
const TARGETS: &[(&str, &str)] = &[
    ("parse", "an hour of fuzzing: text to a tree"),
    ("check", "an hour of fuzzing: checks and estimates"),
    ("eval", "an hour of fuzzing: evaluation"),
    ("document", "an hour of fuzzing: documents"),
];

#[test]
#[ignore = "an hour for each target; scripts/soak runs it"]
fn row_17_under_a_fuzzer() {
    if !has_fuzzer() {
        eprintln!("SKIPPED: there is no nightly compiler with cargo-fuzz (`cargo install cargo-fuzz`)");
        return;
    }
    for (target, name) in TARGETS {
        let mut row = Row::full(17, name, percent());
        let output = Command::new(root().join("tests/fuzz/run"))
            .args([&scaled(HOUR).to_string(), *target])
            .stdout(Stdio::inherit())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        row.measured(json!({
            "runs": statistic(&told, "number_of_executed_units"),
            "crashes": u8::from(!output.status.success()),
            "peakMiB": statistic(&told, "peak_rss_mb"),
        }));
        assert!(output.status.success(), "{target}:\n{told}");
    }
}

fn has_fuzzer() -> bool {
    let version = Command::new("cargo").args(["+nightly", "fuzz", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// `stat::NAME:  VALUE`, as libFuzzer ends; none where it ended before.
fn statistic(told: &str, name: &str) -> Option<u64> {
    let mut lines = told.lines().filter_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
    lines.next_back()?.trim_start_matches(':').trim().parse().ok()
}

#[test]
fn the_targets_are_those_that_there_are() {
    let entries = std::fs::read_dir(root().join("tests/fuzz/fuzz_targets")).unwrap();
    let mut there: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let mut known: Vec<String> = TARGETS.iter().map(|(target, _)| format!("{target}.rs")).collect();
    there.sort();
    known.sort();
    assert_eq!(known, there);
    assert_eq!(statistic("INFO: x\nstat::peak_rss_mb:              34\n", "peak_rss_mb"), Some(34));
}
