//! Represents one write as plugins see it, with access to stored objects.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::live::Live;
use crate::admission::Cluster;
use crate::admission::review::{Operation, Review};
use crate::kinds::shared::pod_uses;
use crate::object;
use crate::status::Refusal;
use crate::store::{Kept, Key};

/// A write that plugins check and change; the object is copied when the first plugin changes it.
pub(in crate::admission) struct Request<'r> {
    pub(super) cluster: &'r dyn Cluster,
    pub(super) review: &'r Review<'r>,
    pub(super) live: &'r Live,
    object: Option<Cow<'r, Value>>,
}

impl<'r> Request<'r> {
    pub(in crate::admission) fn new(
        cluster: &'r dyn Cluster,
        review: &'r Review<'r>,
        live: &'r Live,
    ) -> Self {
        Self { cluster, review, live, object: review.object.map(Cow::Borrowed) }
    }

    /// Returns the object if a plugin changed it.
    pub(in crate::admission) fn into_changed(self) -> Option<Value> {
        match self.object {
            Some(Cow::Owned(object)) => Some(object),
            _ => None,
        }
    }

    /// Returns the object as the previous plugins left it; null for a deletion.
    pub(super) fn object(&self) -> &Value {
        self.object.as_deref().unwrap_or(&Value::Null)
    }

    /// Returns the object for changes; the request must have one.
    pub(super) fn object_mut(&mut self) -> &mut Value {
        self.object.get_or_insert(Cow::Owned(Value::Null)).to_mut()
    }

    pub(super) fn old(&self) -> &Value {
        self.review.old_object.unwrap_or(&Value::Null)
    }

    pub(super) fn namespace(&self) -> &str {
        &self.review.call.namespace
    }

    /// Returns whether this is the operation on this built-in resource; an empty subresource means the object itself.
    pub(super) fn is(&self, operation: Operation, (group, plural, subresource): (&str, &str, &str)) -> bool {
        let info = &self.review.call.info;
        self.review.operation == operation
            && info.builtin
            && info.group == group
            && info.plural == plural
            && self.review.subresource() == subresource
    }

    pub(super) fn creates(&self, group: &str, plural: &str) -> bool {
        self.is(Operation::Create, (group, plural, ""))
    }

    pub(super) fn updates(&self, group: &str, plural: &str) -> bool {
        self.is(Operation::Update, (group, plural, ""))
    }

    /// Builds the refusal that kube-apiserver makes of a plugin's error.
    pub(super) fn forbidden(&self, why: &str) -> Refusal {
        Refusal::forbidden(&self.review.call.info, self.name(), why)
    }

    /// Returns the object's name for messages: that in the URL or the object, or else `generateName`, or else `Unknown`.
    pub(super) fn name(&self) -> &str {
        let object = self.object();
        let generated = object::meta_str(object, "generateName");
        let names = [self.review.name, object::name(object), generated, "Unknown"];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    }

    /// Returns the latest stored object of a built-in kind.
    pub(super) fn stored(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resource = self.storage_key(plural).into();
        let key = Key { resource, namespace: namespace.to_owned(), name: name.to_owned() };
        self.cluster.latest_object(&key).map(|stored| stored.object)
    }

    /// Returns the stored objects of a built-in kind, in a namespace or in all: for kinds with few objects.
    pub(super) fn all(&self, plural: &str, namespace: Option<&str>) -> Result<Vec<Arc<Value>>, Refusal> {
        Ok(self.all_packed(plural, namespace)?.iter().map(|kept| kept.object.values()).collect())
    }

    /// Like [`Self::all`], for kinds with many objects: callers unpack one at a time.
    pub(super) fn all_packed(&self, plural: &str, namespace: Option<&str>) -> Result<Vec<Kept>, Refusal> {
        let mut found: Vec<Kept> = Vec::new();
        let listed = self
            .cluster
            .each_object(&self.storage_key(plural), namespace, &mut |kept| found.push(kept.clone()));
        listed.map_err(|error| Refusal::internal(error.to_string()))?;
        Ok(found)
    }

    /// Returns the storage key of a built-in kind, which is not always its plural.
    fn storage_key(&self, plural: &str) -> String {
        let resources = self.cluster.resources();
        let row = resources.rows().iter().find(|row| row.builtin && row.plural == plural);
        row.map_or_else(|| plural.to_owned(), |row| row.storage_key.clone())
    }

    /// Returns whether the pod mirrors a static pod of a kubelet.
    pub(super) fn is_mirror_pod(&self) -> bool {
        pod_uses::is_mirror(self.object())
    }
}
