//! Durable storage of writes: the record of a write, and the trait that backends implement.

use std::sync::Arc;

use super::{Kept, Key, Packed, Revision};

/// One write: the object, or its removal.
#[derive(Clone, Debug)]
pub struct Record {
    pub key: Key,
    pub revision: Revision,
    pub object: Option<Arc<Packed>>,
}

/// Everything a backend holds.
#[derive(Debug, Default)]
pub struct Image {
    pub revision: Revision,
    pub objects: Vec<(Key, Kept)>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// Durable storage. One thread calls it.
///
/// ```
/// use admit_apiserver::store::{Backend, BackendError, Image, Record, Revision, Store};
///
/// /// Says that it keeps everything, and keeps nothing.
/// #[derive(Default)]
/// struct Forgetful(Revision);
///
/// impl Backend for Forgetful {
///     fn load(&self) -> Result<Image, BackendError> {
///         Ok(Image { revision: self.0, objects: Vec::new() })
///     }
///
///     fn append(&mut self, batch: &[Record]) -> Result<(), BackendError> {
///         self.0 = batch.last().map_or(self.0, |record| record.revision);
///         Ok(())
///     }
///
///     fn recover(&mut self) -> Result<Revision, BackendError> {
///         Ok(self.0)
///     }
/// }
///
/// let store = Store::open(Box::new(Forgetful::default()))?;
/// assert_eq!(store.takes_writes(), Some(true));
/// # Ok::<(), BackendError>(())
/// ```
pub trait Backend: Send {
    /// # Errors
    /// When the content is unreadable.
    fn load(&self) -> Result<Image, BackendError>;

    /// Stores all of `batch`, in order, or nothing; returns once it survives a crash, and damage of it would be told from a
    /// batch that was not stored whole.
    ///
    /// # Errors
    /// When it could not be stored.
    fn append(&mut self, batch: &[Record]) -> Result<(), BackendError>;

    /// Called after [`Self::append`] failed, again and again, until it succeeds: makes the storage usable again and answers
    /// the newest revision that it holds. Cheap as long as nothing has changed for the better.
    ///
    /// # Errors
    /// While nothing can be stored.
    fn recover(&mut self) -> Result<Revision, BackendError> {
        Ok(self.load()?.revision)
    }
}
