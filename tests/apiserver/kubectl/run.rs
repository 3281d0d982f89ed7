//! Runs the commands of a recorded scenario and says which of them differ.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pattern::Bindings;
use super::server::TestServer;

/// How long a command may take, and how long a watch may take to be opened or to print.
const COMMAND_LIMIT: Duration = Duration::from_secs(40);
const WATCH_LIMIT: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(20);

/// One step that printed something else, or ended otherwise.
pub(crate) struct Difference {
    pub(crate) step: u64,
    pub(crate) report: String,
}

pub(crate) struct Runner<'a> {
    kubectl: &'a Path,
    server: &'a TestServer,
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
    pub(crate) fn new(kubectl: &'a Path, server: &'a TestServer, folder: &Path) -> Self {
        let folder = folder.join("work");
        fs::create_dir_all(&folder).expect("a working folder");
        Self { kubectl, server, folder, bindings: Bindings::default() }
    }

    pub(crate) fn run(&mut self, scenario: &Value) -> Vec<Difference> {
        let mut differences = Vec::new();
        let mut background: Vec<Background<'_>> = Vec::new();
        for step in scenario["steps"].as_array().expect("steps") {
            let number = step["n"].as_u64().expect("a number");
            self.write_files(step);
            let watches = self.server.watches();
            let child = self.start(step, number);
            if step["background"] == true {
                let until = step["endedAfterStep"].as_u64().unwrap_or(number);
                // `wait --for=create` polls and opens no watch: then the time limit lets the next step go on.
                poll(WATCH_LIMIT / 4, || self.server.watches() > watches);
                background.push(Background { step, child, until });
            } else {
                differences.extend(self.finish(step, child));
            }
            let (ended, running) = background.into_iter().partition(|command| command.until <= number);
            background = running;
            for command in ended {
                differences.extend(self.end(command));
            }
        }
        differences
    }

    fn write_files(&self, step: &Value) {
        for (name, text) in step["files"].as_object().into_iter().flatten() {
            let text = self.bindings.fill(text.as_str().expect("a file's text"));
            let path = self.folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).expect("a folder");
            }
            fs::write(path, text).expect("a file");
        }
    }

    fn start(&self, step: &Value, number: u64) -> Child {
        let arguments = step["argv"].as_array().expect("argv").iter().skip(1);
        let mut command = Command::new(self.kubectl);
        command
            .args(arguments.map(|argument| self.bindings.fill(argument.as_str().expect("an argument"))))
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.join(".."))
            .env("TMPDIR", self.folder.join(".."))
            .env("KUBECONFIG", self.server.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(fs::File::create(self.output(number, "out")).expect("a file"))
            .stderr(fs::File::create(self.output(number, "err")).expect("a file"));
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            command.env(name, value.as_str().expect("text"));
        }
        if let Some(editor) = step["editor"].as_str() {
            let script = self.folder.join("../editor.sh");
            fs::write(&script, format!("#!/bin/sh\n{editor}\n")).expect("a file");
            command.env("KUBE_EDITOR", format!("sh {}", script.display()));
        }
        let mut child = command.spawn().expect("kubectl runs");
        if let Some(mut stdin) = child.stdin.take() {
            let text = self.bindings.fill(step["stdin"].as_str().unwrap_or_default());
            // A command that does not read its input closes it first.
            let _ = stdin.write_all(text.as_bytes());
        }
        child
    }

    fn finish(&mut self, step: &Value, mut child: Child) -> Option<Difference> {
        let status = wait(&mut child, COMMAND_LIMIT);
        self.compare(step, status)
    }

    /// Lets a background command print what it was recorded to print, then interrupts it if that is how it ended.
    fn end(&mut self, mut command: Background<'_>) -> Option<Difference> {
        if command.step["endedBy"] == "itself" {
            return self.finish(command.step, command.child);
        }
        let number = command.step["n"].as_u64().expect("a number");
        let wanted = command.step["stdout"].as_str().unwrap_or_default().lines().count();
        let path = self.output(number, "out");
        poll(WATCH_LIMIT, || fs::read_to_string(&path).unwrap_or_default().lines().count() >= wanted);
        let interrupted = Command::new("kill").args(["-INT", &command.child.id().to_string()]).status();
        assert!(interrupted.is_ok_and(|status| status.success()), "the command is still running");
        wait(&mut command.child, COMMAND_LIMIT);
        self.compare(command.step, None)
    }

    fn compare(&mut self, step: &Value, status: Option<ExitStatus>) -> Option<Difference> {
        let number = step["n"].as_u64().expect("a number");
        let read = |kind| {
            String::from_utf8_lossy(&fs::read(self.output(number, kind)).unwrap_or_default()).into_owned()
        };
        let (out, err) = (read("out"), read("err"));
        let mut report = String::new();
        for (name, actual) in [("stdout", &out), ("stderr", &err)] {
            let recorded = step[name].as_str().unwrap_or_default();
            // `label --list` walks an unordered map.
            let unordered =
                step["argv"].as_array().is_some_and(|argv| argv.iter().any(|word| word == "--list"));
            let same = if unordered {
                self.bindings.matches(&sorted(recorded), &sorted(actual))
            } else {
                self.bindings.matches(recorded, actual)
            };
            if !same {
                report.push_str(&format!("--- recorded {name}\n{recorded}\n--- actual {name}\n{actual}\n"));
            }
        }
        let exit = status.and_then(|status| status.code()).map(i64::from);
        if step["endedBy"] != "interrupt" && exit != step["exit"].as_i64() {
            report.push_str(&format!("--- exit: recorded {}, actual {exit:?}\n", step["exit"]));
        }
        (!report.is_empty()).then_some(Difference { step: number, report })
    }

    fn output(&self, step: u64, kind: &str) -> PathBuf {
        self.folder.join(format!("../{step}.{kind}"))
    }
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
            Err(error) => panic!("kubectl: {error}"),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
