//! Solvers of this machine, as processes.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use admit_analysis::prove::{Solver, SolverError};
use testing::{Need, skip};

use super::session;

/// A solver with the time that it has for an answer.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    command: session::Command<'static>,
    /// Of the whole answer; cvc5 has a limit for each of its parts in its arguments instead.
    limit: Option<Duration>,
}

/// The least time of a part, unless the whole has less.
const SHORTEST: Duration = Duration::from_secs(4);
/// The time of both at once.
const AT_ONCE: Duration = Duration::from_millis(2500);
/// Makes z3 choose its incremental solver, as `admit prove` does for easy queries.
const INCREMENTAL: &str = "(push 1)\n(pop 1)\n";

fn z3(limit: Duration, lead: &'static str) -> Program {
    let command = session::Command { path: Path::new("z3"), args: &["-in", "-smt2"], lead };
    Program { command, limit: Some(limit) }
}

fn cvc5(args: &'static [&'static str], limit: Option<Duration>) -> Program {
    Program { command: session::Command { path: Path::new("cvc5"), args, lead: "" }, limit }
}

const OF_EACH: &[&str] = &["--lang=smt2", "--incremental", "--strings-exp", "--tlimit-per=1500"];

/// An answer that does not come in time is none, as that of a solver that gives up.
fn in_time(answer: Result<String, SolverError>) -> Result<String, SolverError> {
    match answer {
        Err(SolverError::TimedOut) => Ok(String::new()),
        answer => answer,
    }
}

fn is_known(text: &str) -> bool {
    text.starts_with("sat") || text.starts_with("unsat")
}

impl Program {
    /// Those that are installed; of the others it is said that they were not asked.
    pub(crate) fn installed() -> Vec<Self> {
        let all = [(Need::Z3, z3(Duration::from_secs(10), "")), (Need::Cvc5, cvc5(OF_EACH, None))];
        let is_there = |(need, program): &(Need, Self)| {
            let name = program.name();
            let runs = Command::new(&name).arg("--version").output();
            let runs = runs.is_ok_and(|output| output.status.success());
            if !runs {
                skip(*need, &format!("there is no {name}"));
            }
            runs
        };
        all.into_iter().filter(is_there).map(|(_, program)| program).collect()
    }

    pub(super) fn name(&self) -> String {
        self.command.path.to_string_lossy().into_owned()
    }
}

impl Solver for Program {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let part = |limit: Duration| {
            let part = limit.checked_div(u32::try_from(parts).unwrap_or(u32::MAX)).unwrap_or(limit);
            part.max(limit.min(SHORTEST))
        };
        let end = self.limit.and_then(|limit| Instant::now().checked_add(part(limit)));
        in_time(session::answer(self.command, script, end))
    }
}

/// Both, as `admit prove` asks them, with limits of their own: what z3 does not answer soon is asked of both at the same time.
#[derive(Default)]
pub(super) struct Both {
    /// How long they took, all in all.
    pub(super) spent: Duration,
}

impl Solver for Both {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        self.ask_in_part(script, 1)
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let start = Instant::now();
        let mut answer = z3(Duration::from_secs(1), INCREMENTAL).ask_in_part(script, parts)?;
        if !is_known(&answer) {
            let pair = [z3(AT_ONCE, "").command, cvc5(&OF_EACH[..3], None).command];
            let end = Instant::now().checked_add(AT_ONCE);
            answer = in_time(session::race(pair, script, end, is_known).1)?;
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
        let first = cvc5(OF_EACH, None).ask_in_part(script, parts)?;
        if answered(&first) == asked {
            return Ok(first);
        }
        let second = z3(Duration::from_secs(2), "").ask_in_part(script, parts)?;
        Ok(if answered(&second) > answered(&first) { second } else { first })
    }
}

/// A figure, for whoever runs the tests with `--nocapture`.
pub(super) fn tell(line: &str) {
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}
