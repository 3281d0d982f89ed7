//! Runs a solver as a process: its time, its memory and what it prints are bounded, and it is ended by its id.
//!
//! A solver that is wrong makes a claim hold that does not. Where nobody chose one and there are two, what the first refutes is asked
//! of the second as well; where they contradict each other, nothing is known.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use admit_analysis::prove::{Solver, SolverError};

/// Kibibytes of memory that a solver may take: 2 GiB.
const MEMORY: u64 = 2 << 20;

/// Bytes that are read of what it prints: a model takes a few thousand.
const MOST_PRINTED: usize = 16 << 20;
/// How long the second solver has: some that one refutes at once, the other does not in hours, which contradicts nothing.
const SECOND_OPINION: Duration = Duration::from_secs(5);
/// How long the first one has before the second is asked instead.
const FIRST_OPINION: Duration = Duration::from_secs(3);

/// What a solver is called, and what it is to be told so that it reads standard input.
const KNOWN: [(&str, &[&str]); 2] =
    [("z3", &["-in", "-smt2"]), ("cvc5", &["--lang=smt2", "--incremental", "--strings-exp"])];

/// A solver on this machine.
#[derive(Debug)]
pub(in crate::cli) struct Program {
    path: PathBuf,
    args: &'static [&'static str],
    /// When it is to have answered.
    end: Option<Instant>,
    /// Asked about what this one refutes.
    second: Option<Box<Self>>,
}

impl Program {
    /// One by its name or path; without, the first that there is. None where there is none.
    pub(in crate::cli) fn find(asked: Option<&str>, end: Option<Instant>) -> Result<Option<Self>, String> {
        let Some(asked) = asked else {
            let mut found = KNOWN
                .iter()
                .filter_map(|(name, args)| on_path(name).map(|path| Self { path, args, end, second: None }));
            let first = found.next();
            return Ok(first.map(|first| Self { second: found.next().map(Box::new), ..first }));
        };
        let path = if asked.contains('/') { Some(PathBuf::from(asked)) } else { on_path(asked) };
        let path =
            path.filter(|path| path.is_file()).ok_or_else(|| format!("there is no solver `{asked}`"))?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = KNOWN.iter().find(|(name, _)| file.starts_with(name));
        let (_, args) = known.ok_or_else(|| format!("`{asked}` is neither z3 nor cvc5 by its name"))?;
        Ok(Some(Self { path, args, end, second: None }))
    }

    /// Half of the time that is left, so that as much is left for the second.
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

    /// What it prints for the script, as far as it came by `end`.
    fn answer(&self, script: &str, end: Option<Instant>) -> Result<String, SolverError> {
        let broken =
            |why: &dyn std::fmt::Display| SolverError::Broken(format!("{}: {why}", self.path.display()));
        let mut child = self.start().map_err(|error| broken(&error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let script = script.to_owned();
        // Each ends with the solver: by a closed pipe.
        let writer = thread::spawn(move || input.map(|mut input| input.write_all(script.as_bytes())));
        // Few pieces wait, so that what is printed is bounded by who reads.
        let (send, receive) = mpsc::sync_channel(4);
        let reader = thread::spawn(move || {
            let Some(mut output) = output else { return };
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let Some(read) = buffer.get(..count) else { return };
                if send.send(read.to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut text = Vec::new();
        let ended = loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let piece = match left {
                Some(left) => receive.recv_timeout(left),
                None => receive.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match piece {
                Ok(piece) if text.len() + piece.len() > MOST_PRINTED => {
                    break Err(broken(&format!("it printed more than {MOST_PRINTED} bytes")));
                }
                Ok(piece) => text.extend(piece),
                Err(RecvTimeoutError::Disconnected) => break Ok(broken(&"it ended without an answer")),
                Err(RecvTimeoutError::Timeout) => break Ok(SolverError::TimedOut),
            }
        };
        // It may have ended by itself; and the reader may wait for somebody to take what it read.
        let _ = child.kill();
        drop(receive);
        let _ = child.wait();
        let _ = (writer.join(), reader.join());
        let without_answer = ended?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if text.trim().is_empty() { Err(without_answer) } else { Ok(text) }
    }

    fn start(&self) -> std::io::Result<Child> {
        // The shell sets the limit and becomes the solver, so that the id is the solver's.
        Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\""))
            .arg(&self.path)
            .args(self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder: PathBuf| Path::new(&folder).join(name))
        .find(|file| file.is_file())
}

/// The answers among what a solver printed.
fn answers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| matches!(*line, "sat" | "unsat" | "unknown"))
}

impl Solver for Program {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        let Some(second) = &self.second else { return self.answer(script, self.end) };
        // What one takes hours for, the other often answers at once.
        let (text, is_first) = match self.answer(script, self.soon(self.half(FIRST_OPINION))) {
            Ok(text) if answers(&text).next().is_some_and(|answer| answer != "unknown") => (text, true),
            _ => match second.answer(script, self.end) {
                Ok(text) if answers(&text).next().is_some_and(|answer| answer != "unknown") => (text, false),
                _ => (self.answer(script, self.end)?, true),
            },
        };
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
}
