//! What admission, authorization and webhook calls may read: stored objects, and the table of served kinds. The
//! registry implements it; nobody who reads through it can write, or knows the registry.

use std::fmt::Debug;
use std::sync::Arc;

use crate::resources::ResourceTable;
use crate::store::{Kept, Key, StoreError, Stored};

/// A cluster's objects, to be read.
pub(crate) trait Objects: Debug + Send + Sync {
    /// The object that readers see at this key.
    fn object(&self, key: &Key) -> Option<Kept>;

    /// The newest state of an object, also where it is not durable yet.
    fn latest_object(&self, key: &Key) -> Option<Stored>;

    /// Shows `each` of the objects of a resource, in one namespace or in all, in order of namespace and name.
    ///
    /// # Errors
    /// As those of [`Store::list`](crate::store::Store::list).
    fn each_object(
        &self,
        storage_key: &str,
        namespace: Option<&str>,
        each: &mut dyn FnMut(&Kept),
    ) -> Result<(), StoreError>;

    /// Whether no container may be privileged.
    fn refuses_privileged(&self) -> bool {
        false
    }

    /// What is served now.
    fn resources(&self) -> Arc<ResourceTable>;
}
