//! Runs a gathering command of any image: copies its output to a log, limits its time, and marks how it ended for the container
//! that uploads.

use std::fs::{self, File};
use std::io::{self, PipeReader, Read as _, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::mark::{Ended, Gathering};

/// The log of the command, in the folder that it fills.
pub const LOG: &str = "must-gather.log";
/// An environment variable for the command that says that its output is logged already.
pub const LOGGED: &str = "must_gather_log";
/// The time between SIGTERM and SIGKILL for the command and all its children.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait for output after the command has ended: children that it left behind may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The exit codes of shells for a command that does not exist, and for one that cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;
/// Added to the number of a signal in an exit code.
const SIGNALLED: i32 = 128;
/// The size of the buffer for output in bytes.
const BUFFER: usize = 64 * 1024;

/// A command with its settings.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder that it fills.
    pub output: PathBuf,
    /// The folder where its end is marked.
    pub state: PathBuf,
    /// The time limit; None for no limit.
    pub limit: Option<Duration>,
}

/// Runs the command to its end, or until `stop`, and marks how it ended.
///
/// # Errors
/// When a folder cannot be written. A command that cannot be started has an exit code of its own: 126 or 127.
pub async fn run(
    wanted: Wanted,
    stop: CancellationToken,
    out: impl Write + Send + 'static,
) -> io::Result<Ended> {
    let Wanted { command, output, state, limit } = wanted;
    let gathering = Gathering::begin(&state)?;
    fs::create_dir_all(&output)?;
    let log = File::create(output.join(LOG))?;
    let (code, timed_out) = match spawn(&command, log, out)? {
        Ok(running) => watch(running, limit, &stop).await,
        Err(code) => (code, false),
    };
    let ended = Ended { code, timed_out, finished: Timestamp::now() };
    gathering.end(&ended)?;
    Ok(ended)
}

/// A running command.
struct Running {
    group: Option<Pid>,
    exited: oneshot::Receiver<io::Result<ExitStatus>>,
    /// Completes when the output has ended.
    said: oneshot::Receiver<()>,
}

/// Starts the command in a process group of its own, and a thread that copies its output. The inner error is its exit code.
fn spawn(
    command: &[String],
    mut log: File,
    mut out: impl Write + Send + 'static,
) -> io::Result<Result<Running, i32>> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
    let (reader, writer) = io::pipe()?;
    let spawned = Command::new(program)
        .args(arguments)
        .env(LOGGED, LOG)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn();
    let child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let line = format!("cannot run `{program}`: {error}\n");
            log.write_all(line.as_bytes())?;
            // The line is in the log even if standard output is closed.
            let _ = out.write_all(line.as_bytes());
            return Ok(Err(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }));
        }
    };
    let group = i32::try_from(child.id()).ok().map(Pid::from_raw);
    let (tell_exit, exited) = oneshot::channel();
    let (tell_said, said) = oneshot::channel();
    thread::Builder::new().spawn(move || {
        hand_on(reader, log, out);
        let _ = tell_said.send(());
    })?;
    thread::Builder::new().spawn(move || {
        let mut child: Child = child;
        let _ = tell_exit.send(child.wait());
    })?;
    Ok(Ok(Running { group, exited, said }))
}

/// Copies output to the log and to `out`. A full disk or a closed pipe does not stop the command.
fn hand_on(mut reader: PipeReader, mut log: File, mut out: impl Write) {
    let mut buffer = vec![0; BUFFER];
    let (mut logs, mut tells) = (true, true);
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        tells = tells && out.write_all(read).and_then(|()| out.flush()).is_ok();
        if logs && let Err(error) = log.write_all(read) {
            logs = false;
            warn!(%error, "the log of the command ends here");
        }
    }
}

/// Waits for the command; returns its exit code, and whether it ran out of time.
async fn watch(mut running: Running, limit: Option<Duration>, stop: &CancellationToken) -> (i32, bool) {
    let over = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let (status, timed_out) = tokio::select! {
        status = &mut running.exited => (Some(status), false),
        () = over => {
            info!("Gather timed out.");
            (None, true)
        }
        () = stop.cancelled() => {
            warn!("asked to stop: the command is ended");
            (None, false)
        }
    };
    let status = match status {
        Some(status) => status,
        None => end(&mut running).await,
    };
    // Children that it left behind are killed.
    signal(running.group, Signal::SIGKILL);
    if timeout(LAST_WORDS, running.said).await.is_err() {
        warn!("something that the command started still holds its output");
    }
    (status.ok().and_then(Result::ok).map_or(NOT_RUN, code), timed_out)
}

type Exited = Result<io::Result<ExitStatus>, oneshot::error::RecvError>;

/// Sends SIGTERM to the command, and SIGKILL later.
async fn end(running: &mut Running) -> Exited {
    signal(running.group, Signal::SIGTERM);
    if let Ok(exited) = timeout(GRACE, &mut running.exited).await {
        return exited;
    }
    signal(running.group, Signal::SIGKILL);
    (&mut running.exited).await
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The group may be gone already.
        let _ = killpg(group, signal);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::mark;
    use super::*;

    struct Folders(tempfile::TempDir);

    impl Folders {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn wanted(&self, script: &str) -> Wanted {
            Wanted {
                command: ["sh", "-c", script].map(str::to_owned).to_vec(),
                output: self.0.path().join("output"),
                state: self.0.path().to_owned(),
                limit: None,
            }
        }

        fn log(&self) -> String {
            fs::read_to_string(self.0.path().join("output").join(LOG)).unwrap()
        }
    }

    async fn ran(wanted: Wanted) -> Ended {
        run(wanted, CancellationToken::new(), io::sink()).await.unwrap()
    }

    #[tokio::test]
    async fn output_and_end_are_kept() {
        let folders = Folders::new();
        let ended = ran(folders.wanted("echo out; echo err >&2; exit 3")).await;
        assert_eq!((ended.code, ended.timed_out, ended.is_kept()), (3, false, false));
        assert_eq!(folders.log(), "out\nerr\n");
        assert_eq!(mark::ended(folders.0.path()).await.unwrap(), ended);
        assert!(ran(folders.wanted("true")).await.is_kept());
        assert_eq!(ran(folders.wanted("kill -SEGV $$")).await.code, SIGNALLED + 11);
        let absent = Wanted { command: vec!["/no/such/program".to_owned()], ..folders.wanted("") };
        assert_eq!(ran(absent).await.code, NOT_FOUND);
        assert!(folders.log().starts_with("cannot run `/no/such/program`"), "{}", folders.log());
    }

    #[tokio::test]
    async fn a_command_out_of_time_is_ended_with_all_that_it_started() {
        let folders = Folders::new();
        let limit = Some(Duration::from_secs(1));
        let wanted = Wanted { limit, ..folders.wanted("sleep 1000 & echo begun; wait") };
        let ended = ran(wanted).await;
        assert!(ended.timed_out && ended.is_kept() && ended.code != 0, "{ended:?}");
        assert_eq!(folders.log(), "begun\n");
    }

    #[tokio::test]
    async fn a_command_is_ended_when_its_pod_is() {
        let folders = Folders::new();
        let stop = CancellationToken::new();
        stop.cancel();
        let ended = run(folders.wanted("sleep 1000"), stop, io::sink()).await.unwrap();
        assert_eq!((ended.code, ended.is_kept()), (SIGNALLED + 15, false));
    }
}
