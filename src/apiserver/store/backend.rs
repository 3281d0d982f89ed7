//! Defines durable storage of writes: the record of a write, and the trait that backends implement.

use std::sync::Arc;

use super::{Kept, Key, Packed, Revision};

/// One write: the new object, or None for its removal.
#[derive(Clone, Debug)]
pub struct Record {
    pub key: Key,
    pub revision: Revision,
    pub object: Option<Arc<Packed>>,
}

/// The whole content of a backend: the newest revision, and each object.
#[derive(Debug, Default)]
pub struct Image {
    pub revision: Revision,
    pub objects: Vec<(Key, Kept)>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// Stores writes durably. Called by one thread only.
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

    /// Stores all of `batch`, in order, or nothing. Returns once the batch survives a crash and later damage to it can be
    /// distinguished from a batch that was not stored completely.
    ///
    /// # Errors
    /// When it could not be stored.
    fn append(&mut self, batch: &[Record]) -> Result<(), BackendError>;

    /// Called repeatedly after [`Self::append`] failed, until it succeeds: makes the storage usable again and returns
    /// the newest revision that it holds. Must be cheap while the cause of the failure persists.
    ///
    /// # Errors
    /// While nothing can be stored.
    fn recover(&mut self) -> Result<Revision, BackendError> {
        Ok(self.load()?.revision)
    }
}
