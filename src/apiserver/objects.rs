//! Defines what admission, authorization and webhook calls may read: stored objects, and the table of served kinds. The
//! registry implements the trait; its users cannot write, and do not know the registry.

use std::fmt::Debug;
use std::sync::Arc;

use crate::resources::ResourceTable;
use crate::store::{Kept, Key, StoreError, Stored};

/// Read access to a cluster's objects.
pub(crate) trait Objects: Debug + Send + Sync {
    /// Returns the object at this key, in the state that readers see.
    fn object(&self, key: &Key) -> Option<Kept>;

    /// Returns the latest state of an object, also if it is not durable yet.
    fn latest_object(&self, key: &Key) -> Option<Stored>;

    /// Calls `each` for the objects of a resource, in one namespace or in all, ordered by namespace and name.
    ///
    /// # Errors
    /// Those of [`Store::list`](crate::store::Store::list).
    fn each_object(
        &self,
        storage_key: &str,
        namespace: Option<&str>,
        each: &mut dyn FnMut(&Kept),
    ) -> Result<(), StoreError>;

    /// Returns whether privileged containers are refused.
    fn refuses_privileged(&self) -> bool {
        false
    }

    /// Returns the table of what is served now.
    fn resources(&self) -> Arc<ResourceTable>;
}
