//! Where gatherers put what they find: straight into the archive's [`Spool`], counted per gatherer.
//!
//! A record that was kept stays, whatever becomes of its gatherer: a list that breaks off half-way has been read half-way.

use std::sync::{Arc, Mutex, PoisonError};

use super::failure::Failure;
use super::record::Record;
use super::spool::{Kept, Spool};

/// Errors, and warnings, of one gatherer that are told; of the rest only how many there are. They go into the archive and into the
/// object's status, and there may be one for each record.
const MAX_TOLD: usize = 20;

/// A spool, and what one gatherer has put there.
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

/// What one gatherer has put into the spool, and what it has to say about it.
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

    /// The same spool with a tally of its own.
    pub(super) fn of_another(&self) -> Self {
        Self { spool: Arc::clone(&self.spool), tally: Arc::default() }
    }

    /// Ends keeping; the spool, unless somebody else ended it before.
    pub fn close(&self) -> Option<Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Puts a record into the archive, obfuscated. One that does not fit is told, and is no failure.
    ///
    /// # Errors
    /// [`Failure::Disk`] when it cannot be written.
    pub(super) async fn keep(&self, record: Record) -> Result<(), Failure> {
        let spool = Arc::clone(&self.spool);
        // It is rewritten and goes to a disk: neither is for threads that wait for many things.
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

    /// Something that a reader of the records has to know.
    pub fn warn(&self, text: String) {
        self.tally().warnings.add(text);
    }

    /// A part that could not be read while others could.
    pub fn fail(&self, text: String) {
        self.tally().errors.add(text);
    }

    pub(super) fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
