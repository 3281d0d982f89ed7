//! Runs a solver as a process: its time and its memory are bounded, and it is ended by its id.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use admit_analysis::prove::{Solver, SolverError};

/// Kibibytes of memory that a solver may take: 2 GiB.
const MEMORY: u64 = 2 << 20;

/// What a solver is called, and what it is to be told so that it reads standard input.
const KNOWN: [(&str, &[&str]); 2] =
    [("z3", &["-in", "-smt2"]), ("cvc5", &["--lang=smt2", "--incremental", "--strings-exp"])];

/// A solver on this machine.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    args: &'static [&'static str],
    /// When it is to have answered.
    end: Option<Instant>,
}

impl Program {
    /// One by its name or path; without, the first that there is. None where there is none.
    pub(super) fn find(asked: Option<&str>, end: Option<Instant>) -> Result<Option<Self>, String> {
        let Some(asked) = asked else {
            let mut found = KNOWN.iter().filter_map(|(name, args)| Some((on_path(name)?, *args)));
            return Ok(found.next().map(|(path, args)| Self { path, args, end }));
        };
        let path = if asked.contains('/') { Some(PathBuf::from(asked)) } else { on_path(asked) };
        let path =
            path.filter(|path| path.is_file()).ok_or_else(|| format!("there is no solver `{asked}`"))?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = KNOWN.iter().find(|(name, _)| file.starts_with(name));
        let (_, args) = known.ok_or_else(|| format!("`{asked}` is neither z3 nor cvc5 by its name"))?;
        Ok(Some(Self { path, args, end }))
    }

    pub(super) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
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

impl Solver for Program {
    fn ask(&mut self, script: &str) -> Result<String, SolverError> {
        let broken = |error: std::io::Error| SolverError::Broken(format!("{}: {error}", self.path.display()));
        let mut child = self.start().map_err(broken)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let script = script.to_owned();
        // Each ends with the solver: by a closed pipe.
        let writer = thread::spawn(move || input.map(|mut input| input.write_all(script.as_bytes())));
        let (send, receive) = mpsc::channel();
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
        let is_late = loop {
            let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
            let piece = match left {
                Some(left) => receive.recv_timeout(left),
                None => receive.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match piece {
                Ok(piece) => text.extend(piece),
                Err(RecvTimeoutError::Disconnected) => break false,
                Err(RecvTimeoutError::Timeout) => break true,
            }
        };
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        let _ = (writer.join(), reader.join());
        let text = String::from_utf8_lossy(&text).into_owned();
        match (text.trim().is_empty(), is_late) {
            (true, true) => Err(SolverError::TimedOut),
            (true, false) => {
                Err(SolverError::Broken(format!("{} ended without an answer", self.path.display())))
            }
            (false, _) => Ok(text),
        }
    }
}
