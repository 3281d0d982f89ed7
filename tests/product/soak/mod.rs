//! Rows of the acceptance table at their full length: minutes each, so that `scripts/soak` runs them and nothing else does.
//! `ADMIT_SOAK_PERCENT` shortens them all.

mod bypass;
mod connections;
mod fuzzing;
mod held;
mod logs;
mod mutated;
mod reload;

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::serve::server::{Place, Serving};

/// The part of the full length that was asked for.
pub(crate) fn percent() -> usize {
    std::env::var("ADMIT_SOAK_PERCENT").map_or(100, |text| text.parse().unwrap())
}

/// So many, or the part of it that was asked for; never none.
pub(crate) fn scaled(full: usize) -> usize {
    (full * percent() / 100).max(1)
}

/// xorshift: the same sequence in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % bound
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn of<'v, V>(&mut self, values: &'v [V]) -> &'v V {
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
