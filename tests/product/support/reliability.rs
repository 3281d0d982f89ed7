//! The acceptance table of the admission server: what each row asks, and a record of what a test of it measured.
//!
//! Every test named `row_NN_…` leaves one line of JSON in one file, whether it passes or not: `reliability.jsonl` in the
//! target folder, or what `ADMIT_RELIABILITY` names. `tests/product/reliability.rs` makes the table of it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};

/// A row of the table: its number, the failure, and what is asked at full length.
pub(crate) struct Asked {
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) asked: &'static str,
}

/// The rows of `reliability.txt`.
pub(crate) static ROWS: LazyLock<Vec<Asked>> = LazyLock::new(|| {
    let lines = include_str!("reliability.txt").lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.split(" | ").collect::<Vec<_>>());
    let row = |parts: Vec<&'static str>| match parts[..] {
        [row, name, asked] => Asked { row: row.parse().unwrap(), name, asked },
        _ => panic!("no row: {parts:?}"),
    };
    parts.map(row).collect()
});

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
