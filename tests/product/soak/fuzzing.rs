//! Rows 17 and 39 by a fuzzer, which knows what it has not seen yet: an hour for each target of `tests/fuzz` that is about
//! admit-cel, ten minutes for each that counts memory.

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

const TEN_MINUTES: usize = 600;
/// The targets that count what bytes take, and what their records are called.
const OF_MEMORY: &[(&str, &str)] = &[
    ("memory_json", "ten minutes of fuzzing: JSON and reviews"),
    ("memory_yaml", "ten minutes of fuzzing: YAML"),
    ("memory_policies", "ten minutes of fuzzing: policies"),
    ("memory_protobuf", "ten minutes of fuzzing: protobuf"),
    ("memory_json_patch", "ten minutes of fuzzing: JSON patches"),
    ("memory_merge_patch", "ten minutes of fuzzing: merge patches"),
    ("memory_strategic_patch", "ten minutes of fuzzing: strategic merge patches"),
    ("memory_apply_patch", "ten minutes of fuzzing: configurations to apply"),
];

#[test]
#[ignore = "an hour for each target; scripts/soak runs it"]
fn row_17_under_a_fuzzer() {
    fuzz(17, TARGETS, HOUR);
}

/// The short form is the test of the package `memory`.
#[test]
#[ignore = "ten minutes for each target; scripts/soak runs it"]
fn row_39_under_a_fuzzer() {
    fuzz(39, OF_MEMORY, TEN_MINUTES);
}

fn fuzz(row: u8, targets: &[(&str, &'static str)], seconds: usize) {
    if !has_fuzzer() {
        let reason = "there is no nightly compiler with cargo-fuzz (`cargo install cargo-fuzz`)";
        return testing::skip(testing::Need::Other, reason);
    }
    for (target, name) in targets {
        let mut row = Row::full(row, name, percent());
        let output = Command::new(root().join("tests/fuzz/run"))
            .args([&scaled(seconds).to_string(), *target])
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
    let mut known: Vec<String> =
        TARGETS.iter().chain(OF_MEMORY).map(|(target, _)| format!("{target}.rs")).collect();
    there.sort();
    known.sort();
    assert_eq!(known, there);
    assert_eq!(statistic("INFO: x\nstat::peak_rss_mb:              34\n", "peak_rss_mb"), Some(34));
}
