//! The acceptance table of the admission server: what each row asks, and a record of what a test of it measured.
//!
//! Every test named `row_NN_…` leaves one line of JSON in one file, whether it passes or not: `reliability.jsonl` in the
//! target folder, or what `ADMIT_RELIABILITY` names. `tests/product/reliability.rs` makes the table of it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A row of the table: its number, the failure, and what is asked at full length.
pub(crate) struct Asked {
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) asked: &'static str,
}

const fn row(row: u8, name: &'static str, asked: &'static str) -> Asked {
    Asked { row, name, asked }
}

/// Rows 1 to 32 and 38; the others are those of the controllers and of uploads.
pub(crate) const ROWS: &[Asked] = &[
    row(
        1,
        "malformed reviews",
        "100,000 byte and 100,000 structure mutants: 0 panics, 0 let through, none over 1 s, growth below 20 MiB",
    ),
    row(
        2,
        "bypass",
        "100,000 Pods and 100,000 mutants, 20 policies: 0 disagreements with an oracle each, 0 flips to allow",
    ),
    row(
        3,
        "other versions and kinds",
        "12 vectors, exact answers; v1beta1 only where it is switched on, and echoed",
    ),
    row(4, "uid", "50,000 reviews on 64 connections: 0 mismatches; 1 KiB and odd uids byte for byte"),
    row(
        5,
        "patches from a validating endpoint",
        "10,000 random policies, answers verified as kube-apiserver verifies them: 0 refusals",
    ),
    row(
        7,
        "bodies over the limit",
        "3 MiB + 3 MiB pass, 8 MiB + 1 byte is 413, 1 GiB without end: growth below 16 MiB",
    ),
    row(8, "deep nesting", "depths up to 100,000: 0 aborts, a denial under the uid beyond the budget"),
    row(
        9,
        "wide objects",
        "3 MiB of empty lists, 200,000 keys, a string of 1 MiB: each below 250 ms and 64 MiB",
    ),
    row(10, "duplicate keys", "an envelope that says a thing twice is 400, an object that does is denied"),
    row(11, "spelling of keys", "20 vectors: other spellings are unknown keys"),
    row(12, "numbers", "40 vectors: what JSON or a double cannot hold is refused, the rest is exact"),
    row(13, "text", "25 vectors: plain data without normalisation; 0 raw control characters in logs"),
    row(14, "panic", "20,000 requests, every 100th panics: 200 denials, 0 other failures, counted"),
    row(
        15,
        "stack",
        "chains of 1 to 100,000 terms and nests of every operator, in a child process: 0 aborts",
    ),
    row(
        16,
        "costly expressions",
        "nested comprehensions over 3 MiB: below 150 ms an expression, 1.2 s a request",
    ),
    row(17, "parser bombs", "known bombs and mutants in a child process: 0 crashes, peak below 256 MiB"),
    row(
        18,
        "regular expressions",
        "50 evil patterns on 1 MiB: below 50 ms each; what compiles too large is refused",
    ),
    row(19, "time", "spinning policies, `timeout=1s`: answered within 0.9 s, 1,000 of 1,000"),
    row(20, "faults of lookups", "8 faults, Fail and Ignore: 16 of 16 count as failures, never as no match"),
    row(21, "self-exemption", "10 vectors: 0 exempted"),
    row(22, "broken policies at the start", "20 broken sets: 20 non-zero exits, nothing listens"),
    row(
        23,
        "broken policies at run time",
        "1,000 bad edits under 2,000 requests a second: 0 changed answers",
    ),
    row(24, "swap of policies", "1,000,000 requests during 500 swaps a minute: each answer of one set"),
    row(
        25,
        "rotation of certificates",
        "100 rotations in 60 s, 200 connections: 0 failed requests, seen within 1 s",
    ),
    row(
        26,
        "renewal and clocks",
        "certificates of 60 s over 10 min, clocks apart: every bundle verifies what is served",
    ),
    row(
        27,
        "unknown callers",
        "6 identities, 2 modes: 12 of 12; nothing of the refused is read; the authority is reloaded",
    ),
    row(28, "versions of TLS", "4 versions, 2 settings: 8 of 8"),
    row(
        29,
        "slow callers",
        "5,000 sockets for 60 s, heads, handshakes, bodies, silence: others' p99 below 50 ms, 0 failures",
    ),
    row(
        30,
        "HTTP/2 abuse of the API port",
        "100,000 resets, header blocks of 10 MiB: below 1 core-second and 32 MiB, others unaffected",
    ),
    row(31, "stopping", "SIGTERM under 2,000 requests a second, 50 times: 0 resets, not ready first"),
    row(
        32,
        "overload",
        "20 times what can be served, 60 s: below 512 MiB, p99 of the admitted below 1 s, well again within 2 s",
    ),
    row(38, "secrets", "canaries through every path, logs at trace: 0 hits"),
];

/// Rows that nothing can be asked about, with the reason.
pub(crate) const NOT_ASKED: &[(u8, &str, &str)] =
    &[(6, "JSON Patch", "nothing mutates: answers have no field for a patch (row 5)")];

/// What one test says of a row; written when the value goes.
pub(crate) struct Row {
    asked: &'static Asked,
    test: &'static str,
    /// Of the full length, in percent; none for a short form.
    percent: Option<usize>,
    measured: Value,
}

impl Row {
    /// A short form, of which `test` says in few words what it shows.
    pub(crate) fn short(row: u8, test: &'static str) -> Self {
        let asked = ROWS.iter().find(|asked| asked.row == row).unwrap();
        Self { asked, test, percent: None, measured: Value::Null }
    }

    /// The full form, or `percent` of it.
    pub(crate) fn full(row: u8, test: &'static str, percent: usize) -> Self {
        let mut row = Self::short(row, test);
        row.percent = Some(percent);
        row
    }

    /// Notes numbers, besides those noted before.
    pub(crate) fn measured(&mut self, numbers: Value) {
        match (&mut self.measured, numbers) {
            (Value::Object(all), Value::Object(more)) => all.extend(more),
            (none, numbers) => *none = numbers,
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        let Asked { row, name, asked } = *self.asked;
        let passed = !std::thread::panicking();
        let line = json!({
            "row": row, "name": name, "asked": asked, "test": self.test, "percent": self.percent,
            "optimised": !cfg!(debug_assertions), "measured": self.measured, "passed": passed,
        });
        // A panic while another one unwinds would end the whole run.
        let written = OpenOptions::new().create(true).append(true).open(results());
        let written = written.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        let mut stderr = std::io::stderr();
        if let Err(error) = written {
            let _ = writeln!(stderr, "row {row}: no record is kept: {error}");
        }
        if self.percent.is_some() {
            let _ = writeln!(stderr, "{line}");
        }
    }
}

fn results() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap_or(Path::new("."));
    std::env::var_os("ADMIT_RELIABILITY").map_or_else(|| target.join("reliability.jsonl"), PathBuf::from)
}
