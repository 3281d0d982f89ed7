//! Provides what long-running commands share: logging, the async runtime, signal handling, and error output.

use std::fmt;
use std::future::{Future, pending};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use admit_policy::manifest::LoadError;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::telemetry::{self, LogFormat};

/// Evaluation recurses as deep as the parser's limit allows; the blocking threads that run it get room for that.
const THREAD_STACK: usize = 8 * 1024 * 1024;

/// The longest queue of connections that wait to be accepted; the system's limit may be lower. A connection that finds it full
/// is retried after a second, which is a large part of a webhook's timeout.
const BACKLOG: u32 = 4_096;

/// Why a command fails: the exit code, and the message for standard error.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) exit: Exit,
    pub(super) message: String,
    /// The mistakes in the message that have a position in a manifest.
    pub(super) mistakes: Vec<LoadError>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// Creates a usage error, or a problem of the environment that the user can fix.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), mistakes: Vec::new() }
    }

    /// Creates an error about a manifest that does not compile, or that an API server would reject.
    pub(super) fn not_compiled(message: impl fmt::Display) -> Self {
        Self { exit: Exit::NotCompiled, ..Self::usage(message) }
    }

    /// Creates an error for a question that is undecided.
    pub(super) fn undecided(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Undecided, ..Self::usage(message) }
    }

    pub(super) fn internal(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Internal, ..Self::usage(message) }
    }
}

/// The kind of work of the async runtime's threads, which determines their number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Threads {
    /// The work of the command: one for each processor.
    Work,
    /// They pass data between connections and worker threads: one for every two processors. With more, they would mostly
    /// wake each other, and tasks that wait for a processor meanwhile determine the tail latency.
    Carry,
}

impl Threads {
    fn count(self) -> usize {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        match self {
            Self::Work => processors,
            Self::Carry => processors.div_ceil(2),
        }
    }
}

/// How long a process may continue after SIGTERM or SIGINT: orchestrators send SIGKILL after 30 seconds, and people at a
/// terminal do not wait longer either.
pub(super) const GRACE: Duration = Duration::from_secs(25);
/// How long writing the last line to standard error may take: a pipe that nobody reads blocks.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs `main` on an async runtime until it returns; after SIGINT or SIGTERM its token is cancelled, and it has
/// `grace` to finish.
///
/// The calling thread only watches: it listens for the signals and, if `main` has not ended `grace` after the first one,
/// returns without it. So a process ends even if all threads of its runtime are busy with work that never ends.
pub(super) fn run<F>(
    threads: Threads,
    format: LogFormat,
    grace: Duration,
    main: impl FnOnce(CancellationToken) -> F + Send + 'static,
) -> Exit
where
    F: Future<Output = Result<(), Fault>>,
{
    let outcome = telemetry::init(format).map_err(|error| Fault::usage(error.to_string())).and_then(|()| {
        let watching = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::internal(format!("cannot start the runtime: {error}")))?;
        watching.block_on(async {
            // The handlers are installed first, so that an early signal does not end the process at once.
            let listening = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
            supervised(asked_to_stop(listening), grace, move |asked| work(threads, asked, main)).await
        })
    });
    match outcome {
        Ok(()) => Exit::Expected,
        Err(fault) => fail(&fault),
    }
}

/// Returns the outcome of `work`, which runs on a thread of its own and receives the token that is cancelled when `asked`
/// completes; its time is over `grace` after that.
async fn supervised(
    asked: impl Future<Output = &'static str>,
    grace: Duration,
    work: impl FnOnce(oneshot::Receiver<&'static str>) -> Result<(), Fault> + Send + 'static,
) -> Result<(), Fault> {
    let (stop, stopping) = oneshot::channel();
    let (ended, mut outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("admit".to_owned()).stack_size(THREAD_STACK);
    thread
        .spawn(move || {
            let _ = ended.send(work(stopping));
        })
        .map_err(|error| Fault::internal(format!("cannot start a thread: {error}")))?;
    let outcome = tokio::select! {
        outcome = &mut outcome => Ok(outcome),
        name = asked => {
            let _ = stop.send(name);
            tokio::time::timeout(grace, outcome).await
        }
    };
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Fault::internal("the command ended by a panic")),
        Err(_) => Err(Fault::internal(format!(
            "still busy {} seconds after it was asked to stop: what was under way is given up",
            grace.as_secs()
        ))),
    }
}

/// Creates the runtime of a command, runs `main` on it, and shuts it down.
fn work<F>(
    threads: Threads,
    asked: oneshot::Receiver<&'static str>,
    main: impl FnOnce(CancellationToken) -> F,
) -> Result<(), Fault>
where
    F: Future<Output = Result<(), Fault>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(threads.count())
        .thread_stack_size(THREAD_STACK)
        .build()
        .map_err(|error| Fault::internal(format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let signals = tokio::spawn(cancel_when(asked, shutdown.clone()));
        let outcome = main(shutdown).await;
        signals.abort();
        outcome
    });
    // Blocking threads that still evaluate are not awaited.
    runtime.shutdown_background();
    outcome
}

/// Prints the error to standard error and returns the exit code.
pub(super) fn fail(fault: &Fault) -> Exit {
    let line = format!("admit: {}\n", fault.message);
    let (done, written) = mpsc::channel();
    // A closed stream cannot be written, and a full one must not block, so the exit code alone has to do.
    let writing = thread::Builder::new().spawn(move || {
        let _ = io::stderr().write_all(line.as_bytes());
        let _ = done.send(());
    });
    if writing.is_ok() {
        let _ = written.recv_timeout(LAST_WORDS);
    }
    fault.exit
}

/// Prints a warning to standard error.
pub(super) fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "admit: warning: {message}");
}

/// Writes lines to standard error as they are.
pub(super) fn remark(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Binds a listener; the error names `flag`, the option that chooses another address.
pub(super) fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Fault> {
    bound(address).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => "stop what listens there, or choose another address",
            _ => "choose another address",
        };
        Fault::usage(format!(
            "cannot listen on {address}: {error}; {remedy} with {flag} (port 0 takes a free one)"
        ))
    })
}

/// Creates the listener. Must be called on the runtime that accepts connections.
fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Allows the port of a process that has just ended.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Waits for the first signal that asks this process to stop, and returns its name.
async fn asked_to_stop((terminate, interrupt): (io::Result<Signal>, io::Result<Signal>)) -> &'static str {
    let (Ok(mut terminate), Ok(mut interrupt)) = (terminate, interrupt) else {
        tracing::warn!("cannot listen for signals: only killing ends this process");
        return pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

async fn cancel_when(asked: oneshot::Receiver<&'static str>, shutdown: CancellationToken) {
    let Ok(name) = asked.await else { return };
    tracing::info!(signal = name, "shutting down");
    shutdown.cancel();
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_never_ends_is_left_at_the_end_of_the_grace() {
        let (held, hold) = mpsc::channel::<()>();
        // Like a thread that computes, it ignores its token.
        let never = move |_| hold.recv().map_err(Fault::internal);
        let fault = supervised(ready("SIGTERM"), GRACE, never).await.unwrap_err();
        assert_eq!(
            (fault.exit, fault.message.as_str()),
            (
                Exit::Internal,
                "still busy 25 seconds after it was asked to stop: what was under way is given up"
            )
        );
        drop(held);
    }

    #[tokio::test]
    async fn work_that_ends_is_not_waited_for_longer_than_it_takes() {
        let unasked = supervised(pending(), GRACE, |_| Err(Fault::usage("mine"))).await;
        assert_eq!(unasked.unwrap_err().message, "mine");
        let told = |asked: oneshot::Receiver<_>| asked.blocking_recv().map(drop).map_err(Fault::internal);
        assert!(supervised(ready("SIGINT"), GRACE, told).await.is_ok());
        let dies = supervised(pending(), GRACE, |_| panic!("on purpose")).await;
        assert_eq!(dies.unwrap_err().message, "the command ended by a panic");
    }
}
