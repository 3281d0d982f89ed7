//! Solvers of this machine, as processes.

use std::io::Write;
use std::process::Command;

use admit_analysis::prove::{Solver, SolverError};
use testing::{Need, skip};

use super::kept;

/// A solver by its program and arguments, one of which limits the time of an answer.
pub(crate) struct Program(&'static [&'static str]);

pub(super) const Z3: &[&str] = &["z3", "-in", "-T:10"];
pub(super) const CVC5: &[&str] =
    &["cvc5", "--lang=smt2", "--incremental", "--strings-exp", "--tlimit-per=1500"];

impl Program {
    /// Those that are installed; of the others it is said that they were not asked.
    pub(crate) fn installed() -> Vec<Self> {
        let all = [(Need::Z3, Z3), (Need::Cvc5, CVC5)];
        let is_there = |(need, command): &(Need, &'static [&'static str])| {
            let name = command.first().copied().unwrap_or_default();
            let runs = Command::new(name).arg("--version").output();
            let runs = runs.is_ok_and(|output| output.status.success());
            if !runs {
                skip(*need, &format!("there is no {name}"));
            }
            runs
        };
        all.into_iter().filter(is_there).map(|(_, command)| Self(command)).collect()
    }

    pub(super) fn name(&self) -> &str {
        self.0.first().copied().unwrap_or_default()
    }
}

impl Solver for Program {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        kept::answer(self.0, script, parts).map_err(|error| SolverError::Broken(error.to_string()))
    }
}

/// Both, one after the other: what the first one does not answer soon is asked of the second.
#[derive(Default)]
pub(super) struct Both {
    /// How long they took, all in all.
    pub(super) spent: std::time::Duration,
}

impl Solver for Both {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let start = std::time::Instant::now();
        let mut answer = Program(&["z3", "-in", "-T:2"]).ask_in_part(script, parts)?;
        if !answer.starts_with("sat") && !answer.starts_with("unsat") {
            answer = Program(&["cvc5", "--lang=smt2", "--incremental", "--strings-exp", "--tlimit-per=3000"])
                .ask_in_part(script, parts)?;
        }
        self.spent += start.elapsed();
        Ok(answer)
    }
}

/// Both, for many questions about given objects: cvc5 answers these soon, and z3 what it leaves.
pub(super) struct Soon;

impl Solver for Soon {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let asked = script.matches("(check-sat)").count();
        let answered = |text: &str| text.lines().take_while(|line| matches!(*line, "sat" | "unsat")).count();
        let first = Program(CVC5).ask_in_part(script, parts)?;
        if answered(&first) == asked {
            return Ok(first);
        }
        let second = Program(&["z3", "-in", "-T:2"]).ask_in_part(script, parts)?;
        Ok(if answered(&second) > answered(&first) { second } else { first })
    }
}

/// A figure, for whoever runs the tests with `--nocapture`.
pub(super) fn tell(line: &str) {
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}
