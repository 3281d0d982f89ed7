//! Runs the thread that commits writes to the backend: writes that arrive while one batch is being synced are committed
//! together in the next batch.
//!
//! A batch that cannot be stored because the disk is full is rolled back with everything that was built on it;
//! further writes are refused until the backend accepts them again, which is tried from time to time. Reads continue
//! meanwhile, at the newest state that is stored.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::backend::{Backend, BackendError, Record};
use super::core::Shared;

/// Most writes in one batch; also bounds how much is lost when one batch fails.
const BATCH: usize = 512;

/// Delay after a failure until the backend is tried again, and between further attempts. Disk space is freed by people or by
/// other programs, who expect to see the effect soon.
const RETRY: Duration = Duration::from_secs(1);

pub(super) type Done = oneshot::Sender<Result<(), BackendError>>;

#[derive(Clone, Debug)]
pub(super) struct Committer {
    queue: Sender<Asked>,
}

/// A write, and the channel that receives its outcome.
type Asked = (Record, Done);

impl Committer {
    pub(super) fn start(backend: Box<dyn Backend>, shared: Arc<Shared>) -> Result<Self, BackendError> {
        let (queue, records) = channel();
        let mut writer = Writer { backend, shared, records };
        thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| BackendError(format!("the writer thread cannot start: {error}")))?;
        Ok(Self { queue })
    }

    pub(super) fn submit(&self, record: Record, done: Done) {
        // When the thread is gone `done` is dropped with the message, and the waiting writer gets an error.
        let _ = self.queue.send((record, done));
    }
}

struct Writer {
    backend: Box<dyn Backend>,
    shared: Arc<Shared>,
    records: Receiver<Asked>,
}

impl Writer {
    fn run(&mut self) {
        while let Ok(first) = self.records.recv() {
            let asked = std::iter::once(first).chain(self.records.try_iter().take(BATCH - 1));
            let (batch, waiting): (Vec<Record>, Vec<Done>) = asked.unzip();
            match self.backend.append(&batch) {
                Ok(()) => self.publish(&batch, waiting),
                Err(error) => {
                    tracing::error!(
                        %error,
                        "the store cannot write; every change is refused until it can"
                    );
                    self.refuse(&error, waiting);
                    if self.recovered(&batch).is_err() {
                        return;
                    }
                    tracing::warn!("the store writes again");
                }
            }
        }
    }

    fn publish(&self, batch: &[Record], waiting: Vec<Done>) {
        if let Some(newest) = batch.last() {
            let touched: Vec<&Arc<str>> = batch.iter().map(|record| &record.key.resource).collect();
            self.shared.publish(newest.revision, &touched);
        }
        answer(waiting, &Ok(()));
    }

    /// Rolls back everything that is not stored, including writes that came after the failed batch, and reports `error` to all.
    fn refuse(&self, error: &BackendError, mut waiting: Vec<Done>) {
        self.shared.refuse(error, || waiting.extend(self.records.try_iter().map(|(_, done)| done)));
        answer(waiting, &Err(error.clone()));
    }

    /// Waits until the backend takes writes and holds the published state. An error when all senders are gone.
    fn recovered(&mut self, refused: &[Record]) -> Result<(), RecvTimeoutError> {
        let mut told = BackendError(String::new());
        loop {
            match self.records.recv_timeout(RETRY) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(gone) => return Err(gone),
                // Nothing is submitted while writes are refused.
                Ok((_, done)) => answer(vec![done], &Err(told.clone())),
            }
            match self.recover(refused) {
                Ok(()) => {
                    self.shared.accept();
                    return Ok(());
                }
                Err(error) if error != told => {
                    tracing::debug!(%error, "the store still cannot write");
                    told = error;
                }
                Err(_) => {}
            }
        }
    }

    fn recover(&mut self, refused: &[Record]) -> Result<(), BackendError> {
        let (holds, published) = (self.backend.recover()?, self.shared.published());
        if holds == published {
            return Ok(());
        }
        // A batch may have been stored although its last sync failed: its writers got an error, so it is undone here.
        let newest = refused.last().map_or(0, |record| record.revision);
        if holds != newest {
            return Err(BackendError(format!(
                "the storage is at revision {holds} after a failure, and this process at {published}: start it again"
            )));
        }
        let before = |Record { key, .. }: &Record| Record {
            key: key.clone(),
            revision: published,
            object: self.shared.kept(key, published).map(|kept| kept.object),
        };
        let undo: Vec<Record> = refused.iter().map(before).collect();
        self.backend.append(&undo)
    }
}

fn answer(waiting: Vec<Done>, outcome: &Result<(), BackendError>) {
    for done in waiting {
        // The receiver is gone when a writer no longer waits.
        let _ = done.send(outcome.clone());
    }
}
