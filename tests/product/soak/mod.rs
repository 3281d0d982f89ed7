//! Rows of the acceptance table at their full length: minutes each, so that `scripts/soak` runs them and nothing else does.
//! Each leaves one line of JSON in the file that `ADMIT_SOAK_RESULTS` names; `ADMIT_SOAK_PERCENT` shortens them all.

mod bypass;
mod connections;
mod mutated;
mod reload;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::serve::server::{Place, Serving};

/// Notes what was measured. Bounds are asserted by the row itself, before.
fn record(row: u8, what: &str, measured: &Value) {
    let percent = percent();
    let line = json!({
        "row": row, "what": what, "percent": percent, "optimised": !cfg!(debug_assertions), "measured": measured,
    });
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
    if let Some(path) = std::env::var_os("ADMIT_SOAK_RESULTS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn percent() -> usize {
    std::env::var("ADMIT_SOAK_PERCENT").map_or(100, |text| text.parse().unwrap())
}

/// So many, or the part of it that was asked for; never none.
fn scaled(full: usize) -> usize {
    (full * percent() / 100).max(1)
}

/// xorshift: the same sequence in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn of<'v, V>(&mut self, values: &'v [V]) -> &'v V {
        &values[self.below(values.len())]
    }
}

/// A running `admit bench`.
struct Bench(Child);

impl Bench {
    fn start(place: &Place, serving: &Serving, args: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["bench", &format!("https://{}/validate", serving.webhook), "-o", "json"])
            .arg("--ca")
            .arg(place.path("ca/ca.crt"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Ends it early; it reports what there was.
    fn interrupt(&self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }

    fn report(self) -> Value {
        let output = self.0.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
