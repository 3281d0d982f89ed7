//! Runs solver processes that answer one script after another. Each thread keeps one for each command, which is started again after
//! it was killed or has answered many scripts.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use admit_analysis::prove::SolverError;

/// The memory limit of a solver in KiB: 512 MiB.
const MEMORY: u64 = 512 << 10;
/// The messages of solvers that run out of memory.
const NO_MEMORY: [&str; 2] = ["out of memory", "bad_alloc"];
/// The most bytes of output that are read for one script: a model takes a few thousand.
const MOST_PRINTED: usize = 16 << 20;
/// The most scripts for one process, since solvers do not release all of their memory.
const MOST_SCRIPTS: usize = 500;
/// How long one of two solvers is awaited before the other is looked at.
const TURN: Duration = Duration::from_millis(1);

thread_local! {
    /// Idle processes of this thread.
    static IDLE: RefCell<Vec<Session>> = const { RefCell::new(Vec::new()) };
}

/// A solver as it is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command<'a> {
    pub(super) path: &'a Path,
    pub(super) args: &'static [&'static str],
    /// Commands that are run before each script, after its options.
    pub(super) lead: &'static str,
}

/// A process that waits for a script.
struct Session {
    path: PathBuf,
    args: &'static [&'static str],
    lead: &'static str,
    child: Child,
    /// Dropped at the end, so that both threads end.
    scripts: Option<Sender<String>>,
    printed: Option<Receiver<Vec<u8>>>,
    threads: Vec<JoinHandle<()>>,
    asked: usize,
    /// The options that were set in advance for the next script: to set them takes as long as an easy answer.
    options: Option<String>,
    /// What was printed since the script was sent.
    text: Vec<u8>,
    /// A line that cannot be part of an answer, where values are in parentheses.
    last: String,
}

/// Returns the solver's output for the script, as far as it was received by `end`.
pub(super) fn answer(
    command: Command<'_>,
    script: &str,
    end: Option<Instant>,
) -> Result<String, SolverError> {
    let mut session = Session::begun(command, script)?;
    let text = session.wait(end);
    session.finish(text)
}

/// Asks two solvers at the same time: the first answer that `is_known` counts, and the other solver is killed. Returns also which one
/// gave it.
pub(super) fn race(
    commands: [Command<'_>; 2],
    script: &str,
    end: Option<Instant>,
    is_known: impl Fn(&str) -> bool,
) -> (usize, Result<String, SolverError>) {
    let mut outcomes = Vec::new();
    let mut running = Vec::new();
    for (at, command) in commands.into_iter().enumerate() {
        match Session::begun(command, script) {
            Ok(session) => running.push((at, session)),
            Err(error) => outcomes.push((at, Err(error))),
        }
    }
    while !running.is_empty() {
        for (at, mut session) in std::mem::take(&mut running) {
            let turn = end.into_iter().chain(Instant::now().checked_add(TURN)).min();
            let text = session.wait(turn);
            if matches!(text, Err(Stopped::Time)) && end.is_none_or(|end| Instant::now() < end) {
                running.push((at, session));
                continue;
            }
            let outcome = session.finish(text);
            if outcome.as_ref().is_ok_and(|text| is_known(text)) {
                return (at, outcome);
            }
            outcomes.push((at, outcome));
        }
    }
    // A longer time limit would not give more memory, so that this reason is told before others.
    let rank = |outcome: &Result<String, SolverError>| match outcome {
        Err(SolverError::OutOfMemory(_)) => 0,
        Ok(_) => 1,
        Err(_) => 2,
    };
    outcomes.sort_by_key(|(at, outcome)| (rank(outcome), *at));
    outcomes.into_iter().next().unwrap_or((0, Err(SolverError::TimedOut)))
}

fn has_answer(text: &str) -> bool {
    text.lines().any(|line| matches!(line.trim(), "sat" | "unsat"))
}

/// Why a session cannot be used again.
enum Stopped {
    Time,
    Ended,
    TooMuch,
}

impl Session {
    /// An idle process, or a new one, that was sent the script.
    fn begun(command: Command<'_>, script: &str) -> Result<Self, SolverError> {
        let idle = IDLE.with_borrow_mut(|idle| {
            let at = idle.iter().position(|session| session.is_of(command))?;
            Some(idle.swap_remove(at))
        });
        let mut session = match idle {
            Some(session) => session,
            None => Self::start(command).map_err(|error| broken(command.path, &error))?,
        };
        session.send(script);
        Ok(session)
    }

    fn is_of(&self, command: Command<'_>) -> bool {
        (&*self.path, self.args, self.lead) == (command.path, command.args, command.lead)
    }

    /// Keeps the process for the next script if it has answered this one; an unfinished answer is not awaited: the process is killed.
    fn finish(self, text: Result<String, Stopped>) -> Result<String, SolverError> {
        let stopped = match text {
            Ok(text) => {
                if self.asked < MOST_SCRIPTS {
                    IDLE.with_borrow_mut(|idle| idle.push(self));
                }
                return Ok(text);
            }
            Err(stopped) => stopped,
        };
        let text = String::from_utf8_lossy(&self.text);
        match stopped {
            Stopped::TooMuch => {
                Err(broken(&self.path, &format!("it printed more than {MOST_PRINTED} bytes")))
            }
            // Answers that were printed before the memory ran out are valid.
            _ if NO_MEMORY.iter().any(|told| text.contains(told)) && !has_answer(&text) => {
                let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
                Err(SolverError::OutOfMemory(name.unwrap_or_default()))
            }
            _ if !text.trim().is_empty() => Ok(text.into_owned()),
            Stopped::Ended => Err(broken(&self.path, &"it ended without an answer")),
            Stopped::Time => Err(SolverError::TimedOut),
        }
    }

    fn start(solver: Command<'_>) -> std::io::Result<Self> {
        // The shell sets the limit and execs the solver, so that the process id is the solver's.
        let mut child = process::Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\""))
            .arg(solver.path)
            .args(solver.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (scripts, to_write) = mpsc::channel::<String>();
        // Each thread ends with the solver, when its pipe is closed.
        let writer = thread::spawn(move || {
            let Some(mut input) = input else { return };
            for script in to_write {
                if input.write_all(script.as_bytes()).and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
        // The channel is short, so that the memory for output is bounded.
        let (send, printed) = mpsc::sync_channel(4);
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
        let threads = vec![writer, reader];
        Ok(Self {
            path: solver.path.to_owned(),
            args: solver.args,
            lead: solver.lead,
            child,
            scripts: Some(scripts),
            printed: Some(printed),
            threads,
            asked: 0,
            options: None,
            text: Vec::new(),
            last: String::new(),
        })
    }

    /// Sends the script. A process that has ended is noticed when its answer is awaited.
    fn send(&mut self, script: &str) {
        self.asked += 1;
        self.text.clear();
        self.last = format!("end-of-answer-{}", self.asked);
        let is_option = |line: &&str| line.starts_with("(set-");
        let length = script.split_inclusive('\n').take_while(is_option).map(str::len).sum();
        let (options, body) = script.split_at_checked(length).unwrap_or(("", script));
        let set = match &self.options {
            Some(set) if set == options => String::new(),
            Some(_) => format!("(reset)\n{options}{}", self.lead),
            None => format!("{options}{}", self.lead),
        };
        let (lead, last) = (self.lead, &self.last);
        let script = format!("{set}{body}\n(echo \"{last}\")\n(reset)\n{options}{lead}");
        self.options = Some(options.to_owned());
        let is_sent = self.scripts.as_ref().is_some_and(|scripts| scripts.send(script).is_ok());
        if !is_sent {
            self.printed = None;
        }
    }

    /// Waits for the answer until then. After `Time` it can be awaited again.
    fn wait(&mut self, end: Option<Instant>) -> Result<String, Stopped> {
        let Some(printed) = &self.printed else { return Err(Stopped::Ended) };
        loop {
            if let Some(answer) = before_last(&self.text, &self.last) {
                return Ok(answer);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let piece = match left {
                Some(left) => printed.recv_timeout(left),
                None => printed.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match piece {
                Ok(piece) if self.text.len() + piece.len() > MOST_PRINTED => return Err(Stopped::TooMuch),
                Ok(piece) => self.text.extend(piece),
                Err(RecvTimeoutError::Disconnected) => return Err(Stopped::Ended),
                Err(RecvTimeoutError::Timeout) => return Err(Stopped::Time),
            }
        }
    }
}

fn broken(path: &Path, why: &dyn std::fmt::Display) -> SolverError {
    SolverError::Broken(format!("{}: {why}", path.display()))
}

/// Returns the output before the line that marks the end, which some solvers put in quotes.
fn before_last(text: &[u8], last: &str) -> Option<String> {
    let begin = text.len().saturating_sub(last.len() + 4);
    let tail = String::from_utf8_lossy(text.get(begin..)?).into_owned();
    if !tail.trim_end().trim_end_matches('"').ends_with(last) || !tail.ends_with('\n') {
        return None;
    }
    let text = String::from_utf8_lossy(text).into_owned();
    let (answer, line) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    (line.trim_matches('"') == last).then(|| format!("{answer}\n"))
}

impl Drop for Session {
    fn drop(&mut self) {
        // The process may have ended already. The reader thread may be blocked on the full channel.
        let _ = self.child.kill();
        drop((self.scripts.take(), self.printed.take()));
        let _ = self.child.wait();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
