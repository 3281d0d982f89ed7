//! Finds solvers and runs them: each is a process with limits for time, memory and output.
//!
//! A wrong answer of a solver would prove a false claim. If none was chosen and both are installed, an `unsat` of the first is
//! checked by the second; if they contradict each other, the claim is undecided.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use admit_analysis::prove::{Solver, SolverError};
use thiserror::Error;

use super::session::{self, Command};

/// The time limit of the second solver. If it does not answer in time, the first one's answer counts: some proofs take one of them hours.
const SECOND_OPINION: Duration = Duration::from_secs(5);
/// The time limit of the way that answers easy queries soon.
const QUICK: Duration = Duration::from_secs(1);
/// Makes z3 choose its incremental solver: easy queries take it a third of the time, and some hard ones much longer.
const INCREMENTAL: &str = "(push 1)\n(pop 1)\n";

/// The known solvers, with the arguments that make them read standard input.
const KNOWN: [(&str, &[&str]); 2] =
    [("z3", &["-in", "-smt2"]), ("cvc5", &["--lang=smt2", "--incremental", "--strings-exp"])];

/// Why a requested solver cannot be used.
#[derive(Debug, Error)]
pub(in crate::cli) enum FindError {
    #[error("there is no solver `{0}`")]
    Missing(String),
    #[error("`{0}` is neither z3 nor cvc5 by its name")]
    Unknown(String),
}

/// An installed solver.
#[derive(Debug)]
pub(in crate::cli) struct Program {
    path: PathBuf,
    args: &'static [&'static str],
    /// When it must have answered.
    end: Option<Instant>,
    /// The solver that checks what this one refutes.
    second: Option<Box<Self>>,
}

impl Program {
    /// Finds a solver by its name or path, or else the first installed one. None if no solver is installed.
    pub(in crate::cli) fn find(asked: Option<&str>, end: Option<Instant>) -> Result<Option<Self>, FindError> {
        let Some(asked) = asked else {
            let mut found = KNOWN
                .iter()
                .filter_map(|(name, args)| on_path(name).map(|path| Self { path, args, end, second: None }));
            let first = found.next();
            return Ok(first.map(|first| Self { second: found.next().map(Box::new), ..first }));
        };
        let path = if asked.contains('/') { Some(PathBuf::from(asked)) } else { on_path(asked) };
        let path = path.filter(|path| path.is_file()).ok_or_else(|| FindError::Missing(asked.to_owned()))?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = KNOWN.iter().find(|(name, _)| file.starts_with(name));
        let (_, args) = known.ok_or_else(|| FindError::Unknown(asked.to_owned()))?;
        Ok(Some(Self { path, args, end, second: None }))
    }

    /// Returns half of the remaining time but `most` at most, so that the second solver has as much.
    fn half(&self, most: Duration) -> Duration {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        left.and_then(|left| left.checked_div(2)).map_or(most, |half| half.min(most))
    }

    fn soon(&self, most: Duration) -> Option<Instant> {
        self.end.into_iter().chain(Instant::now().checked_add(most)).min()
    }

    pub(in crate::cli) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn command(&self, lead: &'static str) -> Command<'_> {
        Command { path: &self.path, args: self.args, lead }
    }

    /// Returns the output for the script, as far as it was received by `end`.
    fn answer(&self, script: &str, end: Option<Instant>) -> Result<String, SolverError> {
        session::answer(self.command(""), script, end)
    }

    /// Returns the answer of the way that is quick for easy queries, if it has one soon; only z3 has two ways.
    fn quick(&self, script: &str) -> Option<String> {
        let has_ways = self.name().starts_with("z3");
        let end = has_ways.then(|| self.soon(self.half(QUICK)))?;
        session::answer(self.command(INCREMENTAL), script, end).ok().filter(|text| is_known(text))
    }

    /// Returns the output of the first solver that answers, and whether it is this one.
    fn first(&self, second: &Self, script: &str) -> Result<(String, bool), SolverError> {
        if let Some(text) = self.quick(script) {
            return Ok((text, true));
        }
        // Queries that take one solver hours often take the other no time.
        let (at, text) = session::race([self.command(""), second.command("")], script, self.end, is_known);
        Ok((text?, at == 0))
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder: PathBuf| Path::new(&folder).join(name))
        .find(|file| file.is_file())
}

/// Returns the answers in a solver's output.
fn answers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| matches!(*line, "sat" | "unsat" | "unknown"))
}

/// Reports whether the first answer is known.
fn is_known(text: &str) -> bool {
    answers(text).next().is_some_and(|answer| answer != "unknown")
}

impl Solver for Program {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        let Some(second) = &self.second else {
            return self.quick(script).map_or_else(|| self.answer(script, self.end), Ok);
        };
        let (text, is_first) = self.first(second, script)?;
        if !answers(&text).any(|answer| answer == "unsat") {
            return Ok(text);
        }
        let (asked, other) = if is_first { (&*self, &**second) } else { (&**second, &*self) };
        match other.answer(script, self.soon(SECOND_OPINION)) {
            Ok(opinion) if answers(&text).zip(answers(&opinion)).any(|pair| pair == ("unsat", "sat")) => {
                Err(SolverError::Broken(format!(
                    "{} refutes what {} satisfies: one of both is wrong",
                    asked.name(),
                    other.name()
                )))
            }
            _ => Ok(text),
        }
    }

    fn ask_in_part(&mut self, script: &str, parts: usize) -> Result<String, SolverError> {
        let whole = self.end;
        self.end = whole.map(|end| {
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            let part = left.checked_div(u32::try_from(parts).unwrap_or(u32::MAX)).unwrap_or(left);
            now.checked_add(part).unwrap_or(end)
        });
        let answer = self.ask(script);
        self.end = whole;
        answer
    }
}
