//! What every long-running command shares: logging, the runtime, signals, and one line for what went wrong.

use std::fmt;
use std::future::Future;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZero;
use std::thread;

use admit_policy::manifest::LoadError;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::telemetry::{self, LogFormat};

/// Evaluation recurses as deep as the parser's limit allows; the blocking threads that run it get room for that.
const THREAD_STACK: usize = 8 * 1024 * 1024;

/// Connections that the kernel completes before anybody takes them; the system may hold fewer. One that finds no room is
/// tried again by its caller after a second, which is most of a webhook's patience.
const BACKLOG: u32 = 4_096;

/// Why a command ends: the exit code and the line, or lines, for standard error.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) exit: Exit,
    pub(super) message: String,
    /// The mistakes that the message tells, where they have a place in a manifest.
    pub(super) mistakes: Vec<LoadError>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// Wrong usage, or surroundings that the user can mend.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), mistakes: Vec::new() }
    }

    /// A manifest that the API server, or the engine in its place, refuses.
    pub(super) fn not_compiled(message: impl fmt::Display) -> Self {
        Self { exit: Exit::NotCompiled, ..Self::usage(message) }
    }

    pub(super) fn internal(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Internal, ..Self::usage(message) }
    }
}

/// What the threads of a command's runtime do, and so how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Threads {
    /// The work of the command: one for each processor.
    Work,
    /// They carry bytes between connections and those who work: one for every two processors. More would mostly wake each
    /// other, and who waits for a processor meanwhile is the tail of every latency.
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

/// Runs `main` on a runtime until it ends by itself or, after SIGINT or SIGTERM cancelled its token, has drained.
pub(super) fn run<F>(threads: Threads, format: LogFormat, main: impl FnOnce(CancellationToken) -> F) -> Exit
where
    F: Future<Output = Result<(), Fault>>,
{
    let outcome = telemetry::init(format).map_err(Fault::usage).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .worker_threads(threads.count())
            .thread_stack_size(THREAD_STACK)
            .build()
            .map_err(|error| Fault::internal(format!("cannot start the runtime: {error}")))?;
        let outcome = runtime.block_on(async {
            let shutdown = CancellationToken::new();
            // Listened for before anything else is done, so that none that comes early ends the process at once.
            let listening = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
            let signals = tokio::spawn(cancel_on_signal(listening, shutdown.clone()));
            let outcome = main(shutdown).await;
            signals.abort();
            outcome
        });
        // A blocking thread that still evaluates has nobody left to answer.
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => Exit::Expected,
        Err(fault) => fail(&fault),
    }
}

/// Says what went wrong on standard error.
pub(super) fn fail(fault: &Fault) -> Exit {
    // A closed stream leaves nobody to tell, so the exit code alone speaks.
    let _ = writeln!(io::stderr(), "admit: {}", fault.message);
    fault.exit
}

/// Says on standard error what does not keep the command from doing its work.
pub(super) fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "admit: warning: {message}");
}

/// Writes lines to standard error as they are.
pub(super) fn remark(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A listener, or the line that tells what to do instead; `flag` names the option that moves it.
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

/// Must be called on the runtime that is to accept.
fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // The port of a process that has just ended is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn cancel_on_signal(
    (terminate, interrupt): (io::Result<Signal>, io::Result<Signal>),
    shutdown: CancellationToken,
) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (terminate, interrupt) else {
        tracing::warn!("cannot listen for signals: only killing ends this process");
        return;
    };
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = name, "shutting down");
    shutdown.cancel();
}
