//! Where writes survive the process, and the thread that takes them there: writes that arrive while one batch is being
//! synced go into the next batch together.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::Value;
use tokio::sync::oneshot;

use super::core::Shared;
use super::{Key, Revision, Stored};

/// One write: the object, or its removal.
#[derive(Clone, Debug)]
pub struct Record {
    pub key: Key,
    pub revision: Revision,
    pub object: Option<Arc<Value>>,
}

/// Everything a backend holds.
#[derive(Debug, Default)]
pub struct Image {
    pub revision: Revision,
    pub objects: Vec<(Key, Stored)>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// Durable storage. One thread calls it.
pub trait Backend: Send {
    /// # Errors
    /// When the content is unreadable.
    fn load(&self) -> Result<Image, BackendError>;

    /// Stores all of `batch`, in order, or nothing; returns once it survives a crash.
    ///
    /// # Errors
    /// When it could not be stored.
    fn append(&mut self, batch: &[Record]) -> Result<(), BackendError>;
}

type Done = oneshot::Sender<Result<(), String>>;

#[derive(Clone, Debug)]
pub(super) struct Committer {
    queue: Sender<(Record, Done)>,
}

impl Committer {
    pub(super) fn start(backend: Box<dyn Backend>, shared: Arc<Shared>) -> Result<Self, BackendError> {
        let (queue, records) = channel();
        thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn(move || commit_batches(backend, &shared, &records))
            .map_err(|error| BackendError(format!("the writer thread cannot start: {error}")))?;
        Ok(Self { queue })
    }

    pub(super) fn submit(&self, record: Record, done: Done) {
        // When the thread is gone `done` is dropped with the message, and the waiting writer hears of it.
        let _ = self.queue.send((record, done));
    }
}

/// Writes of one batch; also bounds how much is lost to one failing batch.
const BATCH: usize = 512;

fn commit_batches(mut backend: Box<dyn Backend>, shared: &Shared, records: &Receiver<(Record, Done)>) {
    // Revisions after a failed batch were built on it, so nothing can be stored any more.
    let mut broken: Option<String> = None;
    let mut waiting = Vec::new();
    while let Ok(first) = records.recv() {
        waiting.push(first);
        waiting.extend(records.try_iter().take(BATCH - 1));
        let (batch, done): (Vec<Record>, Vec<Done>) = waiting.drain(..).unzip();
        let outcome = match &broken {
            Some(why) => Err(why.clone()),
            None => backend.append(&batch).map_err(|error| error.to_string()),
        };
        match &outcome {
            Ok(()) => {
                let newest = batch.last().map_or(0, |record| record.revision);
                let touched: Vec<&Arc<str>> = batch.iter().map(|record| &record.key.resource).collect();
                shared.publish(newest, &touched);
            }
            Err(why) => broken = Some(why.clone()),
        }
        for done in done {
            let _ = done.send(outcome.clone());
        }
    }
}
