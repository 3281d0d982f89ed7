//! Runs a solver process that answers one script after another. Each thread has one for each program, which is restarted after it
//! was killed or has answered many scripts.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use admit_analysis::prove::SolverError;

/// The memory limit of a solver in KiB: 512 MiB.
const MEMORY: u64 = 512 << 10;
/// The messages of solvers that run out of memory.
const NO_MEMORY: [&str; 2] = ["out of memory", "bad_alloc"];
/// The most bytes of output that are read for one script: a model takes a few thousand.
const MOST_PRINTED: usize = 16 << 20;
/// The most scripts for one process, since solvers do not release all of their memory.
const MOST_SCRIPTS: usize = 500;

thread_local! {
    /// Idle processes of this thread.
    static IDLE: RefCell<Vec<Session>> = const { RefCell::new(Vec::new()) };
}

/// A process that waits for a script.
struct Session {
    path: PathBuf,
    child: Child,
    /// Dropped at the end, so that both threads end.
    scripts: Option<Sender<String>>,
    printed: Option<Receiver<Vec<u8>>>,
    threads: Vec<JoinHandle<()>>,
    asked: usize,
}

/// Returns the solver's output for the script, as far as it was received by `end`.
pub(super) fn answer(
    path: &Path,
    args: &[&str],
    script: &str,
    end: Option<Instant>,
) -> Result<String, SolverError> {
    let broken = |why: &dyn std::fmt::Display| SolverError::Broken(format!("{}: {why}", path.display()));
    let idle = IDLE.with_borrow_mut(|idle| {
        let at = idle.iter().position(|session| session.path == path)?;
        Some(idle.swap_remove(at))
    });
    let mut session = match idle {
        Some(session) => session,
        None => Session::start(path, args).map_err(|error| broken(&error))?,
    };
    let (text, stopped) = session.ask(script, end);
    let Some(stopped) = stopped else {
        if session.asked < MOST_SCRIPTS {
            IDLE.with_borrow_mut(|idle| idle.push(session));
        }
        return Ok(text);
    };
    // An unfinished answer is not awaited: the process is killed.
    drop(session);
    match stopped {
        Stopped::TooMuch => Err(broken(&format!("it printed more than {MOST_PRINTED} bytes"))),
        // Answers that were printed before the memory ran out are valid.
        _ if NO_MEMORY.iter().any(|told| text.contains(told)) && !has_answer(&text) => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            Err(SolverError::OutOfMemory(name.unwrap_or_default()))
        }
        _ if !text.trim().is_empty() => Ok(text),
        Stopped::Ended => Err(broken(&"it ended without an answer")),
        Stopped::Time => Err(SolverError::TimedOut),
    }
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
    fn start(path: &Path, args: &[&str]) -> std::io::Result<Self> {
        // The shell sets the limit and execs the solver, so that the process id is the solver's.
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\""))
            .arg(path)
            .args(args)
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
        let (scripts, printed) = (Some(scripts), Some(printed));
        Ok(Self { path: path.to_owned(), child, scripts, printed, threads, asked: 0 })
    }

    /// Runs the script; returns its output, and what stopped it early.
    fn ask(&mut self, script: &str, end: Option<Instant>) -> (String, Option<Stopped>) {
        self.asked += 1;
        // A line that cannot be part of an answer, where values are in parentheses.
        let last = format!("end-of-answer-{}", self.asked);
        let script = format!("{script}\n(echo \"{last}\")\n(reset)\n");
        let sent = self.scripts.as_ref().is_some_and(|scripts| scripts.send(script).is_ok());
        let Some(printed) = self.printed.as_ref().filter(|_| sent) else {
            return (String::new(), Some(Stopped::Ended));
        };
        let mut text: Vec<u8> = Vec::new();
        loop {
            if let Some(answer) = before_last(&text, &last) {
                return (answer, None);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let piece = match left {
                Some(left) => printed.recv_timeout(left),
                None => printed.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let stopped = match piece {
                Ok(piece) if text.len() + piece.len() > MOST_PRINTED => Stopped::TooMuch,
                Ok(piece) => {
                    text.extend(piece);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => Stopped::Ended,
                Err(RecvTimeoutError::Timeout) => Stopped::Time,
            };
            return (String::from_utf8_lossy(&text).into_owned(), Some(stopped));
        }
    }
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
