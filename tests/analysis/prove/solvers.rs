//! Solvers of this machine, as processes.

use std::io::Write;
use std::process::{Command, Stdio};

use admit_analysis::prove::{Solver, SolverError};
use testing::{Need, skip};

/// A solver by its program and arguments; it ends by itself after a while.
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

/// An argument that limits the time, with that limit divided; others as they are.
fn in_part(argument: &str, parts: usize) -> String {
    for (limit, least) in [("-T:", 2), ("--tlimit-per=", 1000)] {
        let time = argument.strip_prefix(limit).and_then(|time| time.parse::<usize>().ok());
        if let Some(time) = time {
            return format!("{limit}{}", (time / parts).max(least));
        }
    }
    argument.to_owned()
}

impl Solver for Program {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let broken = |error: std::io::Error| SolverError::Broken(error.to_string());
        let (program, args) = self.0.split_first().expect("a program");
        let mut child = Command::new(program)
            .args(args.iter().map(|argument| in_part(argument, parts)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(broken)?;
        let mut input = child.stdin.take().expect("piped");
        let script = script.to_owned();
        let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
        let output = child.wait_with_output().map_err(broken)?;
        let _ = writer.join();
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
