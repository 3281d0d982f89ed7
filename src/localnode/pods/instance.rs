//! Runs a container once: its supervisor, its output, and its end.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::images::Program;
use super::super::log::{Log, Stream};
use super::super::supervise::protocol::{Errand, Order, Report, Word};

/// How long the remaining output is awaited after all processes that could write it have ended.
const REST: Duration = Duration::from_secs(2);
/// The result of a container whose supervisor was killed.
const KILLED: Exit = Exit { code: 137, signal: Some(9) };

/// How a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) signal: Option<i32>,
}

/// Why a container did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("cannot start a process: {0}")]
    Process(#[from] io::Error),
    /// The program cannot be run, so retrying is useless.
    #[error("{0}")]
    Program(String),
}

/// The deadline for a container's end: it is asked to end at first, and killed then.
#[derive(Clone, Debug)]
pub(super) struct Stop(watch::Receiver<Option<Instant>>);

impl Stop {
    pub(super) fn new(of: &watch::Sender<Option<Instant>>) -> Self {
        Self(of.subscribe())
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub(super) async fn asked(&mut self) {
        let _ = self.0.wait_for(Option::is_some).await;
    }

    /// Returns the deadline, if the end was requested.
    pub(super) fn by(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// Waits until the deadline changes; for ever if nobody can change it any more.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    pub(super) async fn over(&mut self) {
        loop {
            let Some(at) = *self.0.borrow_and_update() else {
                self.asked().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(at) => return,
                changed = self.0.changed() => if changed.is_err() { return },
            }
        }
    }
}

/// The result of an exec: its exit code (None after a timeout), and its output.
pub(super) type Ran = (Option<i32>, String);

/// A program to run inside a container, and who waits for it.
#[derive(Debug)]
struct Ask {
    program: Program,
    within: Duration,
    answer: oneshot::Sender<Ran>,
}

/// Runs programs inside a container, while that runs.
#[derive(Debug)]
pub(super) struct Errands(mpsc::Sender<Ask>);

impl Errands {
    /// Also returns the receiver for the container, which runs them.
    pub(super) fn new() -> (Self, Asked) {
        // Each probe runs one program at a time, and so do the two hooks.
        let (sender, receiver) = mpsc::channel(5);
        (Self(sender), Asked { asks: receiver, under_way: HashMap::new(), next: 0 })
    }

    /// Runs a program for as long as `within`; None if the container ends before.
    pub(super) async fn run(&self, program: Program, within: Duration) -> Option<Ran> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask { program, within, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// The programs that a container has to run.
#[derive(Debug)]
pub(super) struct Asked {
    asks: mpsc::Receiver<Ask>,
    under_way: HashMap<u64, oneshot::Sender<Ran>>,
    next: u64,
}

impl Asked {
    /// Waits for the next one; for ever if there can be none any more.
    async fn next(&mut self) -> Word {
        let Some(Ask { program, within, answer }) = self.asks.recv().await else {
            return std::future::pending().await;
        };
        self.next += 1;
        self.under_way.insert(self.next, answer);
        let milliseconds = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        Word::Run(Errand { id: self.next, program: program.path, args: program.args, milliseconds })
    }

    fn ran(&mut self, id: u64, ran: Ran) {
        if let Some(answer) = self.under_way.remove(&id) {
            let _ = answer.send(ran);
        }
    }
}

/// A running container.
#[derive(Debug)]
pub(super) struct Instance {
    words: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    supervisor: Child,
    output: JoinSet<()>,
    group: i32,
    /// Why its volumes are not at their paths, if they are not.
    pub(super) unmounted: Option<String>,
}

impl Instance {
    /// Starts `order` under a supervisor, which is `program`.
    ///
    /// # Errors
    /// When a process or the container's program cannot be started.
    pub(super) async fn start(program: &Path, order: &Order, log: &Log) -> Result<Self, StartError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut supervisor = Command::new(program)
            .arg("supervise")
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for this process, which then stops its Pods in order.
            .process_group(0)
            .spawn()?;
        let (reader, mut words) = UnixStream::from_std(ours)?.into_split();
        let mut reports = BufReader::new(reader).lines();
        let mut output = JoinSet::new();
        if let Some(out) = supervisor.stdout.take() {
            output.spawn(log.clone().take(out, Stream::Out));
        }
        if let Some(err) = supervisor.stderr.take() {
            output.spawn(log.clone().take(err, Stream::Err));
        }
        let mut line = serde_json::to_vec(order).map_err(io::Error::from)?;
        line.push(b'\n');
        words.write_all(&line).await?;
        let (group, unmounted) = match report(&mut reports).await {
            Some(Report::Started { pid, unmounted }) => (pid, unmounted),
            Some(Report::Failed { message }) => return Err(StartError::Program(message)),
            Some(Report::Ended { .. } | Report::Ran { .. }) | None => {
                return Err(io::Error::other("its supervisor ended at once").into());
            }
        };
        Ok(Self { words, reports, supervisor, output, group, unmounted })
    }

    /// Waits for its end, by itself or because of `stop`, and runs the programs of `asked`.
    pub(super) async fn ended(mut self, stop: &Stop, mut asked: Asked) -> Exit {
        let (mut stopped, mut over) = (stop.clone(), stop.clone());
        let (mut terminated, mut killed) = (false, false);
        let exit = loop {
            tokio::select! {
                said = report(&mut self.reports) => match said {
                    Some(Report::Ended { code, signal }) => break Exit { code, signal },
                    Some(Report::Ran { id, code, output }) => asked.ran(id, (code, output)),
                    _ => {
                        // If the supervisor was killed, the container may still run.
                        let _ = killpg(Pid::from_raw(self.group), Signal::SIGKILL);
                        break KILLED;
                    }
                },
                () = stopped.asked(), if !terminated => {
                    terminated = true;
                    self.say(Word::Terminate).await;
                }
                () = over.over(), if terminated && !killed => {
                    killed = true;
                    self.say(Word::Kill).await;
                }
                errand = asked.next(), if !terminated => self.say(errand).await,
            }
        };
        let rest = async { while self.output.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(REST, rest).await;
        let _ = self.supervisor.wait().await;
        exit
    }

    /// Sends a message. A lost supervisor is noticed when its socket closes.
    async fn say(&mut self, word: Word) {
        let mut line = serde_json::to_vec(&word).unwrap_or_default();
        line.push(b'\n');
        let _ = self.words.write_all(&line).await;
    }
}

/// Waits for the first of two futures.
pub(super) async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    tokio::select! {
        () = one => {}
        () = other => {}
    }
}

async fn report(reports: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Report> {
    let line = reports.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}
