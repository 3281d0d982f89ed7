//! Processes of solvers that answer one script after another, as `admit prove` has them: a start takes longer than most answers.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Error, Result, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The line after an answer, in quotes or not.
const END: &str = "end-of-answer";
/// The most scripts for one process, since solvers do not release all of their memory.
const MOST_SCRIPTS: usize = 500;

thread_local! {
    /// Idle processes of this thread, by their arguments.
    static IDLE: RefCell<Vec<(Vec<String>, Kept)>> = const { RefCell::new(Vec::new()) };
}

struct Kept {
    child: Child,
    scripts: Sender<String>,
    lines: Receiver<String>,
    asked: usize,
}

/// A limit of time, and the arguments that remain: z3 would count the time of all scripts together, so that it is ended from outside;
/// cvc5 counts that of each check by itself.
fn arguments(command: &[&str], parts: usize) -> (Option<Duration>, Vec<String>) {
    let mut limit = None;
    let mut arguments = Vec::new();
    for argument in command {
        if let Some(seconds) = argument.strip_prefix("-T:").and_then(|time| time.parse::<usize>().ok()) {
            limit = u64::try_from((seconds / parts).max(seconds.min(4))).ok().map(Duration::from_secs);
        } else if let Some(time) =
            argument.strip_prefix("--tlimit-per=").and_then(|time| time.parse::<usize>().ok())
        {
            arguments.push(format!("--tlimit-per={}", (time / parts).max(time.min(2500))));
        } else {
            arguments.push((*argument).to_owned());
        }
    }
    (limit, arguments)
}

/// The program's output for the script; where the time ends, what was printed until then.
pub(super) fn answer(command: &[&str], script: &str, parts: usize) -> Result<String> {
    let (limit, arguments) = arguments(command, parts);
    let idle = IDLE.with_borrow_mut(|idle| {
        let at = idle.iter().position(|(of, _)| *of == arguments)?;
        Some(idle.swap_remove(at).1)
    });
    let mut kept = match idle {
        Some(kept) => kept,
        None => Kept::start(&arguments)?,
    };
    let (answer, whole) = kept.ask(script, limit);
    if whole && kept.asked < MOST_SCRIPTS {
        IDLE.with_borrow_mut(|idle| idle.push((arguments, kept)));
    }
    Ok(answer)
}

impl Kept {
    fn start(arguments: &[String]) -> Result<Self> {
        let (program, arguments) = arguments.split_first().ok_or_else(|| Error::other("no program"))?;
        let mut child =
            Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let piped = || Error::other("no pipe");
        let mut input = child.stdin.take().ok_or_else(piped)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(piped)?);
        let (scripts, to_write) = channel::<String>();
        let (send, lines) = channel();
        // Both end with the process. A solver reads a script's end after it has answered its beginning, and may not read on before
        // what it printed is taken.
        std::thread::spawn(move || {
            to_write
                .iter()
                .all(|script| input.write_all(script.as_bytes()).and_then(|()| input.flush()).is_ok())
        });
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| send.send(line).is_ok()));
        Ok(Self { child, scripts, lines, asked: 0 })
    }

    /// The answer, and whether it came to its end.
    fn ask(&mut self, script: &str, limit: Option<Duration>) -> (String, bool) {
        self.asked += 1;
        let end = limit.map(|limit| Instant::now() + limit);
        let is_read = self.scripts.send(format!("{script}\n(echo \"{END}\")\n(reset)\n")).is_ok();
        if !is_read {
            return (String::new(), false);
        }
        let mut answer = String::new();
        loop {
            let line = match end {
                Some(end) => self.lines.recv_timeout(end.saturating_duration_since(Instant::now())),
                None => self.lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match line {
                Ok(line) if line.trim_matches('"') == END => return (answer, true),
                Ok(line) => {
                    answer.push_str(&line);
                    answer.push('\n');
                }
                Err(_) => return (answer, false),
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
