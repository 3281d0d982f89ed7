//! Runs the commands of a scenario and compares their output and exit codes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use serde_json::Value;

use super::pattern::Bindings;
use super::server::Server;
use crate::report::{Aspect, Check};

/// How long a command may take, and how long a watch may take to be opened or to print.
const COMMAND_LIMIT: Duration = Duration::from_secs(40);
const WATCH_LIMIT: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(20);

/// A step's number, and how it compares.
type Step = (u64, Vec<Check>);

pub(super) struct Runner<'a> {
    kubectl: &'a Path,
    server: &'a Server,
    /// The working directory; output goes beside it.
    folder: PathBuf,
    bindings: Bindings,
}

/// A command that runs while later steps do.
struct Background<'s> {
    step: &'s Value,
    child: Child,
    until: u64,
}

impl<'a> Runner<'a> {
    pub(super) fn new(kubectl: &'a Path, server: &'a Server, folder: &Path) -> Result<Self, String> {
        let folder = folder.join("work");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(Self { kubectl, server, folder, bindings: Bindings::default() })
    }

    /// # Errors
    /// What keeps a command from being run at all.
    pub(super) fn run(&mut self, scenario: &Value) -> Result<Vec<Step>, String> {
        let mut compared = Vec::new();
        let mut background: Vec<Background<'_>> = Vec::new();
        for step in super::super::steps(scenario) {
            let number = number(step);
            let watches = self.server.watches();
            let child = self.start(step).map_err(|error| format!("step {number}: {error}"))?;
            if step["background"] == true {
                let until = step["endedAfterStep"].as_u64().unwrap_or(number);
                // `wait --for=create` polls and opens no watch: then the time limit lets the next step go on.
                poll(WATCH_LIMIT / 4, || self.server.watches() > watches);
                background.push(Background { step, child, until });
            } else {
                compared.push(self.finish(step, child));
            }
            let (ended, running) = background.into_iter().partition(|command| command.until <= number);
            background = running;
            for command in ended {
                compared.push(self.end(command));
            }
        }
        compared.extend(background.into_iter().map(|command| self.end(command)));
        Ok(compared)
    }

    fn fill(&self, text: &Value) -> String {
        self.bindings.fill(&self.server.fill(text.as_str().unwrap_or_default()))
    }

    fn start(&self, step: &Value) -> io::Result<Child> {
        for (name, text) in step["files"].as_object().into_iter().flatten() {
            let path = self.folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, self.fill(text))?;
        }
        let arguments = step["argv"].as_array().into_iter().flatten().skip(1);
        let mut command = Command::new(self.kubectl);
        command
            .args(arguments.map(|argument| self.fill(argument)))
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.join(".."))
            .env("TMPDIR", self.folder.join(".."))
            .env("KUBECONFIG", self.server.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(fs::File::create(self.output(number(step), "out"))?)
            .stderr(fs::File::create(self.output(number(step), "err"))?);
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            command.env(name, value.as_str().unwrap_or_default());
        }
        if let Some(editor) = step["editor"].as_str() {
            let script = self.folder.join("../editor.sh");
            fs::write(&script, format!("#!/bin/sh\n{editor}\n"))?;
            command.env("KUBE_EDITOR", format!("sh {}", script.display()));
        }
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input closes it first.
            let _ = stdin.write_all(self.fill(&step["stdin"]).as_bytes());
        }
        Ok(child)
    }

    fn finish(&mut self, step: &Value, mut child: Child) -> Step {
        let status = wait(&mut child, COMMAND_LIMIT);
        self.compare(step, status)
    }

    /// Lets a background command print what it was recorded to print, then interrupts it if that is how it ended.
    fn end(&mut self, mut command: Background<'_>) -> Step {
        if command.step["endedBy"] == "itself" {
            return self.finish(command.step, command.child);
        }
        let wanted = command.step["stdout"].as_str().unwrap_or_default().lines().count();
        let path = self.output(number(command.step), "out");
        poll(WATCH_LIMIT, || fs::read_to_string(&path).unwrap_or_default().lines().count() >= wanted);
        // One that has ended by itself cannot be interrupted any more; its output tells.
        let _ = Command::new("kill").args(["-INT", &command.child.id().to_string()]).status();
        wait(&mut command.child, COMMAND_LIMIT);
        self.compare(command.step, None)
    }

    fn compare(&mut self, step: &Value, status: Option<ExitStatus>) -> Step {
        let number = number(step);
        let mut checks = Vec::new();
        // `label --list` walks an unordered map.
        let unordered = step["argv"].as_array().is_some_and(|argv| argv.iter().any(|word| word == "--list"));
        for (name, kind) in [("stdout", "out"), ("stderr", "err")] {
            let actual = fs::read(self.output(number, kind)).unwrap_or_default();
            let actual = String::from_utf8_lossy(&actual);
            let recorded = step[name].as_str().unwrap_or_default();
            let same = if unordered {
                self.bindings.matches(&sorted(recorded), &sorted(&actual))
            } else {
                self.bindings.matches(recorded, &actual)
            };
            // Where placeholders stand for what was printed the texts differ, and yet say the same.
            let shown = if same { recorded } else { &actual };
            checks.push(Check::new(Aspect::Text, recorded, shown.to_owned()));
        }
        if step["endedBy"] != "interrupt" {
            let exit = status.and_then(|status| status.code());
            checks.push(Check::new(Aspect::Verdict, step["exit"].clone(), exit));
        }
        (number, checks)
    }

    fn output(&self, step: u64, kind: &str) -> PathBuf {
        self.folder.join(format!("../{step}.{kind}"))
    }
}

fn number(step: &Value) -> u64 {
    step["n"].as_u64().unwrap_or_default()
}

fn poll(limit: Duration, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() && start.elapsed() < limit {
        std::thread::park_timeout(POLL);
    }
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The status of a command that ended in time; one that did not is ended.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::park_timeout(POLL),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
