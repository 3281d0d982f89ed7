//! Runs programs inside a container, in its environment and with its limits and a timeout: probes and hooks.
//!
//! INVARIANT: an exec is registered before its end can be noticed, because both hold the same lock.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::cgroup_entry::CgroupEntry;
use super::protocol::{Errand, Order, Report};
use super::{command, tell};

/// The most bytes of an exec's output that are reported.
const MAX_OUTPUT: u64 = 10 * 1024;
/// The exit code of container runtimes for a missing program.
const NOT_FOUND: i32 = 127;
/// How long the remaining output is awaited: a child of the program may keep the pipe open for ever.
const REST: Duration = Duration::from_millis(500);

/// The running programs, by process.
#[derive(Clone)]
pub(super) struct ExecCommands {
    order: Arc<Order>,
    /// Only one thread at a time may enter: the one with the lock on the running programs.
    doors: Arc<CgroupEntry>,
    socket: Arc<UnixStream>,
    under_way: Arc<Mutex<HashMap<Pid, mpsc::Sender<i32>>>>,
}

impl ExecCommands {
    pub(super) fn new(order: Order, doors: CgroupEntry, socket: UnixStream) -> Self {
        Self {
            order: Arc::new(order),
            doors: Arc::new(doors),
            socket: Arc::new(socket),
            under_way: Arc::default(),
        }
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<Pid, mpsc::Sender<i32>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the end of a process.
    pub(super) fn ended(&self, pid: Pid, code: i32) {
        if let Some(waiting) = self.under_way().remove(&pid) {
            let _ = waiting.send(code);
        }
    }

    /// Starts a program; its end is reported on the socket.
    pub(super) fn begin(&self, errand: Errand) {
        let this = self.clone();
        let id = errand.id;
        let begun = thread::Builder::new().spawn(move || this.run(&errand));
        if let Err(error) = begun {
            self.tell(id, Some(NOT_FOUND), format!("cannot start a thread: {error}"));
        }
    }

    fn tell(&self, id: u64, code: Option<i32>, output: String) {
        tell(&self.socket, &Report::Ran { id, code, output });
    }

    /// Whether a program exists where the container would find it.
    fn is_there(&self, program: &Path) -> bool {
        if program.components().count() > 1 {
            return may_run(&self.order.folder.join(program));
        }
        let path = self.order.env.iter().find(|(name, _)| name == "PATH");
        let folders = path.into_iter().flat_map(|(_, folders)| std::env::split_paths(folders));
        folders.into_iter().any(|folder| may_run(&folder.join(program)))
    }

    fn run(&self, errand: &Errand) {
        let (sender, ended) = mpsc::channel();
        let mut command = command(&self.order, &errand.program, &errand.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let failed = |why: &dyn Display| {
            let text = format!("exec: {:?}: {why}", errand.program);
            self.tell(errand.id, Some(NOT_FOUND), text);
        };
        // The standard library would wait for a child that fails to exec, but another thread reaps all children.
        if !self.is_there(&errand.program) {
            return failed(&"no such program");
        }
        let mut under_way = self.under_way();
        let mut child = match self.doors.inside(|| command.spawn()).flatten() {
            Ok(child) => child,
            Err(error) => {
                drop(under_way);
                return failed(&error);
            }
        };
        let Ok(pid) = i32::try_from(child.id()).map(Pid::from_raw) else { return };
        under_way.insert(pid, sender);
        drop(under_way);
        let output = output_of(&mut child);
        let code = ended.recv_timeout(Duration::from_millis(errand.milliseconds)).ok();
        if code.is_none() {
            let _ = killpg(pid, Signal::SIGKILL);
            self.under_way().remove(&pid);
        }
        let text = output.recv_timeout(REST).unwrap_or_default();
        self.tell(errand.id, code, String::from_utf8_lossy(&text).into_owned());
    }
}

/// Whether a file is executable.
fn may_run(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|known| known.is_file() && known.permissions().mode() & 0o111 != 0)
}

/// Returns a child's output, then its error output, once it has closed both.
fn output_of(child: &mut Child) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let errors = thread::spawn(move || err.map(beginning).unwrap_or_default());
    thread::spawn(move || {
        let mut text = out.map(beginning).unwrap_or_default();
        text.extend(errors.join().unwrap_or_default());
        let _ = sender.send(text);
    });
    receiver
}

/// Returns the first bytes; the rest is read too, so that the child does not block.
fn beginning(mut from: impl Read) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = from.by_ref().take(MAX_OUTPUT).read_to_end(&mut text);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    text
}
