//! Answers what decisions need beside the request (namespaces, params, authorization, conversion) from given documents; records what is
//! unknown, so that no decision rests on a guess.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use admit_policy::{
    Access, AccessAttributes, Documents, GroupVersionKind, GroupVersionResource, Host, HostError, Scope,
    UserInfo,
};
use serde_json::Value;

use super::report::Cause;

/// The environment of one request.
#[derive(Debug)]
pub(super) struct Surroundings<'s> {
    pub(super) documents: &'s Documents,
    /// The request's Namespace, with its name, if the log or a dump contains it.
    pub(super) namespace: Option<(&'s str, Arc<Value>)>,
    /// Whether roles or authorizer answers were given.
    pub(super) knows_access: bool,
    /// When the request was made; if unknown, the documents' time is used.
    time: Option<SystemTime>,
    /// A bit for each cause in `ASKED` that was needed and is unknown.
    unknown: AtomicU8,
}

/// What may be unknown, by bit.
const ASKED: [Cause; 4] = [Cause::Namespace, Cause::Params, Cause::Access, Cause::Conversion];

impl<'s> Surroundings<'s> {
    pub(super) const fn new(
        documents: &'s Documents,
        namespace: Option<(&'s str, Arc<Value>)>,
        knows_access: bool,
        time: Option<SystemTime>,
    ) -> Self {
        Self { documents, namespace, knows_access, time, unknown: AtomicU8::new(0) }
    }

    /// Returns what was needed since the last call and is unknown, if anything.
    pub(super) fn asked_in_vain(&self) -> Option<Cause> {
        let bits = self.unknown.swap(0, Ordering::Relaxed);
        (0_u32..)
            .zip(ASKED)
            .find(|(bit, _)| bits.checked_shr(*bit).unwrap_or(0) & 1 == 1)
            .map(|(_, cause)| cause)
    }

    fn note(&self, cause: Cause) {
        let bit = (0_u32..).zip(ASKED).find(|(_, asked)| *asked == cause).map_or(0, |(bit, _)| bit);
        self.unknown.fetch_or(1_u8.checked_shl(bit).unwrap_or(0), Ordering::Relaxed);
    }

    /// If no object of the param kind was given, the cluster may still have some.
    fn note_params(&self, kind: &GroupVersionKind) {
        let is_namespace = kind.group.is_empty() && kind.kind == "Namespace";
        if !self.documents.holds(kind) && !is_namespace {
            self.note(Cause::Params);
        }
    }
}

impl Host for Surroundings<'_> {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        if let Some((_, known)) = self.namespace.as_ref().filter(|(known, _)| *known == name) {
            return Ok(Some(Arc::clone(known)));
        }
        let found = self.documents.namespace(name)?;
        if found.is_none() {
            self.note(Cause::Namespace);
        }
        Ok(found)
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.documents.param_scope(kind)
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.note_params(kind);
        self.documents.params(kind, namespace)
    }

    fn params_named(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Arc<Value>>, HostError> {
        self.note_params(kind);
        self.documents.params_named(kind, namespace, name)
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        self.documents.equivalents(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.documents.convert(object, kind).inspect_err(|_| self.note(Cause::Conversion))
    }

    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        if !self.knows_access {
            self.note(Cause::Access);
        }
        self.documents.authorize(user, attributes)
    }

    fn now(&self) -> Option<SystemTime> {
        self.time.or_else(|| self.documents.now())
    }
}
