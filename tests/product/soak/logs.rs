//! Audit logs with cut lines, flipped bytes and torn archives. Every line is counted once, what cannot be read is named, and
//! nothing ends the replay.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{Random, scaled};
use crate::repository::root;

const LINES: usize = 100_000;

/// Lines of a log, one in ten as it was, the others cut, with flipped bytes, or with a piece of another one in them.
fn mutated(count: usize, random: &mut Random) -> Vec<u8> {
    let folder = root().join("tests/product/offline/files/replay");
    let text = std::fs::read_to_string(folder.join("audit.log")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.ends_with('}')).collect();
    let mut log = Vec::new();
    for _ in 0..count {
        let mut line = random.of(&lines).as_bytes().to_vec();
        match random.below(10) {
            0 => {}
            1..4 => line.truncate(1 + random.below(line.len() - 1)),
            4..8 => {
                for _ in 0..=random.below(4) {
                    let at = random.below(line.len());
                    line[at] ^= 1 << random.below(8);
                }
            }
            _ => {
                let other = random.of(&lines).as_bytes();
                let (from, to) = (random.below(other.len()), random.below(line.len()));
                line.splice(to..to, other[from..(from + 40).min(other.len())].iter().copied());
            }
        }
        // One that holds a line feed is two, and an empty one none.
        line.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        if line.trim_ascii().is_empty() {
            line = b"x".to_vec();
        }
        log.extend(line);
        log.push(b'\n');
    }
    log
}

fn replayed(log: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args([
            "replay",
            "--policies",
            "tests/product/offline/files/replay/new",
            "-o",
            "json",
            "--timeout",
            "1h",
        ])
        .arg(log)
        .current_dir(root())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 5)), "{:?}: {told}", output.status);
    assert!(!told.contains("panicked"), "{told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Lines that are in no count, or in two.
fn lost(report: &Value) -> i64 {
    let summary = |field: &str| report["summary"][field].as_i64().unwrap();
    let unread: i64 =
        report["unread"].as_array().unwrap().iter().map(|cause| cause["count"].as_i64().unwrap()).sum();
    let told = ["otherStages", "reads", "refused", "unmatched", "admitted", "denied", "undecided"];
    summary("lines") - unread - told.into_iter().map(summary).sum::<i64>()
}

fn look(count: usize) {
    let place = tempfile::tempdir().unwrap();
    let mut random = Random(0x5eed_0106);
    let log = mutated(count, &mut random);
    let path = place.path().join("audit.log");
    std::fs::write(&path, &log).unwrap();
    let report = replayed(&path);
    assert_eq!(report["summary"]["lines"], json!(count), "every line is looked at");
    assert_eq!(lost(&report), 0, "{:#}", report["summary"]);
    let causes: Vec<&str> =
        report["unread"].as_array().unwrap().iter().map(|cause| cause["cause"].as_str().unwrap()).collect();
    assert!(causes.contains(&"cut") && causes.contains(&"malformed"), "{causes:?}");
    assert!(
        report["unread"]
            .as_array()
            .unwrap()
            .iter()
            .all(|cause| !cause["places"].as_array().unwrap().is_empty())
    );

    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&log).unwrap();
    let packed = encoder.finish().unwrap();
    for number in 0..(count / 1_000).max(10) {
        let mut archive = packed.clone();
        if number % 2 == 0 {
            archive.truncate(3 + random.below(archive.len() - 3));
        } else {
            let at = 10 + random.below(archive.len() - 10);
            archive[at] ^= 1 << random.below(8);
        }
        // The beginning says as much as the whole.
        let path = place.path().join("audit.log.gz");
        std::fs::write(&path, &archive).unwrap();
        let report = replayed(&path);
        let told = report["unread"].as_array().unwrap().iter().any(|cause| cause["cause"] == "torn");
        assert!(told, "archive {number} is damaged, and nothing says so: {:#}", report["summary"]);
    }
}

#[test]
fn mutated_logs() {
    look(2_000);
}

#[test]
#[ignore = "minutes: scripts/soak runs it"]
fn mutated_logs_at_full_length() {
    look(scaled(LINES));
}
