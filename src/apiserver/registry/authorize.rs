//! Calls [`Authorization`](crate::authorization::Authorization) with the roles and bindings of this store.

use std::sync::Arc;

use admit_policy::rbac::AccessRules;
use admit_policy::{Access, AccessAttributes};

use super::Registry;
use crate::identity::Identity;
use crate::objects::Objects;
use crate::resources::ResourceTable;
use crate::status::Refusal;
use crate::store::{Kept, Key, StoreError, Stored};

impl Objects for Registry {
    fn object(&self, key: &Key) -> Option<Kept> {
        self.store.kept(key)
    }

    fn refuses_privileged(&self) -> bool {
        self.refuses_privileged
    }

    fn latest_object(&self, key: &Key) -> Option<Stored> {
        self.store.latest(key)
    }

    fn each_object(
        &self,
        storage_key: &str,
        namespace: Option<&str>,
        each: &mut dyn FnMut(&Kept),
    ) -> Result<(), StoreError> {
        self.store.all(storage_key, namespace)?.iter().for_each(each);
        Ok(())
    }

    fn resources(&self) -> Arc<ResourceTable> {
        Arc::clone(&self.served().table)
    }
}

impl Registry {
    /// Returns the rules of the stored roles and bindings.
    pub(crate) fn access_rules(&self) -> Arc<AccessRules> {
        self.authorization.rules(self)
    }

    pub(crate) fn access(&self, user: &Identity, attributes: &AccessAttributes) -> Access {
        self.authorization.access(self, &user.to_user(), attributes)
    }

    /// Estimates the number of rules to evaluate for `user`, in the namespace of a request or in all.
    pub(crate) fn effort(&self, user: &Identity, attributes: Option<&AccessAttributes>) -> usize {
        self.authorization.effort(self, user, attributes)
    }

    /// # Errors
    /// 403 with kube-apiserver's message.
    pub(crate) fn authorize(&self, user: &Identity, attributes: &AccessAttributes) -> Result<(), Refusal> {
        self.authorization.authorize(self, user, attributes)
    }
}
