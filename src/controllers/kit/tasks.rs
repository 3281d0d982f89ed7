//! Supervises tasks: no task runs detached.
//!
//! [`Supervisor`] runs the long-lived parts of a process; when one ends before it was told to, all are told to stop
//! and the process learns which one it was. [`pool`] runs short-lived work that is submitted while a part is running;
//! the work is cancelled with the part that drives it.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::telemetry::panic_text;

/// Why a set of parts stopped without a request.
#[derive(Debug, thiserror::Error)]
pub enum TaskError<E> {
    #[error("`{0}` ended unexpectedly")]
    Ended(&'static str),
    #[error("`{part}` failed: {source}")]
    Failed {
        part: &'static str,
        #[source]
        source: E,
    },
    #[error("a part panicked: {0}")]
    Panicked(String),
}

/// Long-lived parts that are stopped together.
#[derive(Debug)]
pub struct Supervisor<E> {
    parts: JoinSet<(&'static str, Result<(), E>)>,
    shutdown: CancellationToken,
}

impl<E: std::error::Error + Send + 'static> Supervisor<E> {
    /// Creates a supervisor: parts stop when `shutdown` is cancelled, and cancel it when one of them ends by itself.
    pub fn new(shutdown: CancellationToken) -> Self {
        Self { parts: JoinSet::new(), shutdown }
    }

    /// Starts a part. It must end soon after the shutdown token is cancelled.
    pub fn part(&mut self, name: &'static str, run: impl Future<Output = Result<(), E>> + Send + 'static) {
        self.parts.spawn(async move { (name, run.await) });
    }

    /// Waits for all parts.
    ///
    /// # Errors
    /// The first part that failed or panicked; if none did, the first that ended before shutdown. The order matters little: a part that
    /// ends because another failed may be noticed first.
    pub async fn join(mut self) -> Result<(), TaskError<E>> {
        let mut first = None;
        while let Some(ended) = self.parts.join_next().await {
            if let Some(error) = self.unexpected(ended) {
                error!(%error, "stopping all parts");
                let counts = match first {
                    None => true,
                    Some(TaskError::Ended(_)) => !matches!(error, TaskError::Ended(_)),
                    Some(TaskError::Failed { .. } | TaskError::Panicked(_)) => false,
                };
                if counts {
                    first = Some(error);
                }
            }
            self.shutdown.cancel();
        }
        first.map_or(Ok(()), Err)
    }

    fn unexpected(&self, ended: Result<(&'static str, Result<(), E>), JoinError>) -> Option<TaskError<E>> {
        match ended {
            Ok((part, Ok(()))) if self.shutdown.is_cancelled() => {
                info!(part, "stopped");
                None
            }
            Ok((part, Ok(()))) => Some(TaskError::Ended(part)),
            Ok((part, Err(source))) => Some(TaskError::Failed { part, source }),
            Err(error) => Some(TaskError::Panicked(join_text(error))),
        }
    }
}

fn join_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_text(panic.as_ref()),
        Err(error) => error.to_string(),
    }
}

/// Submits work to a [`Driver`].
#[derive(Clone, Debug)]
pub struct Pool {
    queue: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

/// Runs the work of a [`Pool`].
#[derive(Debug)]
pub struct Driver {
    queue: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
}

/// The driver has stopped, because the process is shutting down.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq)]
#[error("no more work is taken: shutting down")]
pub struct Closed;

/// Creates a pool, and the driver that runs its work.
pub fn pool() -> (Pool, Driver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Pool { queue: sender }, Driver { queue: receiver })
}

impl Pool {
    /// # Errors
    /// [`Closed`] once the driver has stopped.
    pub fn submit(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), Closed> {
        self.queue.send(work.boxed()).map_err(|_| Closed)
    }
}

impl Driver {
    /// Runs work until `shutdown` is cancelled, then drops what is unfinished. A panic ends only its own work.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                work = self.queue.recv() => match work {
                    Some(work) => { running.spawn(work); }
                    None => break,
                },
                Some(ended) = running.join_next() => {
                    if let Err(error) = ended {
                        error!(error = join_text(error), "work ended without a result");
                    }
                }
            }
        }
        running.shutdown().await;
    }
}
