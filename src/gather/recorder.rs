//! Receives the records of gatherers: writes them into the archive's [`Spool`], and counts them per gatherer.
//!
//! A record that was written stays even if its gatherer fails later.

use std::sync::{Arc, Mutex, PoisonError};

use super::failure::Failure;
use super::record::Record;
use super::spool::{Kept, Spool};

/// The most errors, and the most warnings, of one gatherer that are kept; the rest is counted. They are in the archive and in the
/// object's status, and there may be one for each record.
const MAX_TOLD: usize = 20;

/// The shared spool, with the tally of one gatherer.
#[derive(Clone)]
pub struct Recorder {
    spool: Arc<Mutex<Option<Spool>>>,
    tally: Arc<Mutex<Tally>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// The records that one gatherer has written, with its errors and warnings.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) records: usize,
    errors: Told,
    warnings: Told,
}

#[derive(Debug, Default)]
struct Told {
    texts: Vec<String>,
    untold: usize,
}

impl Told {
    fn add(&mut self, text: String) {
        if self.texts.len() < MAX_TOLD {
            self.texts.push(text);
        } else {
            self.untold += 1;
        }
    }

    fn texts(&self) -> Vec<String> {
        let untold = (self.untold > 0).then(|| format!("and {} more", self.untold));
        self.texts.iter().cloned().chain(untold).collect()
    }
}

impl Tally {
    pub(super) fn errors(&self) -> Vec<String> {
        self.errors.texts()
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.texts()
    }
}

impl Recorder {
    pub fn new(spool: Spool) -> Self {
        Self { spool: Arc::new(Mutex::new(Some(spool))), tally: Arc::default() }
    }

    /// Returns a recorder for another gatherer, with the same spool.
    pub(super) fn of_another(&self) -> Self {
        Self { spool: Arc::clone(&self.spool), tally: Arc::default() }
    }

    /// Ends recording and returns the spool; None if it was closed before.
    pub fn close(&self) -> Option<Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes a record, obfuscated. If it exceeds the limits, that is a warning and no error.
    ///
    /// # Errors
    /// [`Failure::Disk`] when it cannot be written.
    pub(super) async fn keep(&self, record: Record) -> Result<(), Failure> {
        let spool = Arc::clone(&self.spool);
        // Obfuscation and disk writes block, so they run on a blocking thread.
        let kept = tokio::task::spawn_blocking(move || {
            let mut spool = spool.lock().unwrap_or_else(PoisonError::into_inner);
            spool.as_mut().map_or(Ok(Kept::Late), |spool| spool.keep(&record))
        });
        let kept = kept.await.map_err(|error| Failure::Disk(error.to_string()))?;
        let kept = kept.map_err(|error| Failure::Disk(error.to_string()))?;
        let mut tally = self.tally();
        match kept {
            Kept::New => tally.records += 1,
            Kept::Same(path) => {
                tally.records += 1;
                tally.warnings.add(format!("record {path} was stored twice with the same content"));
            }
            Kept::Overwrote(path) => {
                tally.records += 1;
                tally.errors.add(format!("record {path} overwrote another of that name"));
            }
            Kept::TooLarge(why) => tally.errors.add(why),
            Kept::Late => {}
        }
        Ok(())
    }

    /// Adds a warning for readers of the records.
    pub fn warn(&self, text: String) {
        self.tally().warnings.add(text);
    }

    /// Adds an error about a part that could not be read.
    pub fn fail(&self, text: String) {
        self.tally().errors.add(text);
    }

    pub(super) fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
