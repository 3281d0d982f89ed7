//! Looks up kinds, resources and conversions in the definitions of the folders and among built-in kinds.

use std::sync::Arc;

use admit_policy::crd::CompiledCrd;
use admit_policy::{Builtins, Documents, GroupVersionKind, GroupVersionResource, Host as _};
use serde_json::Value;

/// The kinds of one or two folders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds<'s> {
    first: &'s Documents,
    /// The second folder if two are compared; else the first again.
    second: &'s Documents,
}

impl<'s> Kinds<'s> {
    pub(super) const fn new(first: &'s Documents, second: &'s Documents) -> Self {
        Self { first, second }
    }

    pub(super) fn builtins(self) -> Option<&'static dyn Builtins> {
        self.first.builtins().or_else(|| self.second.builtins())
    }

    pub(super) fn crd_of(self, kind: &GroupVersionKind) -> Option<&'s Arc<CompiledCrd>> {
        self.second.crd_of(kind).or_else(|| self.first.crd_of(kind))
    }

    /// Reports whether a definition serves the resource.
    pub(super) fn defines(self, resource: &GroupVersionResource) -> bool {
        self.definition(resource).is_some()
    }

    pub(super) fn kind_of(self, resource: &GroupVersionResource) -> Option<GroupVersionKind> {
        let GroupVersionResource { group, version, resource: plural } = resource;
        if let Some(crd) = self.definition(resource) {
            let kind = &*crd.definition().names.kind;
            return Some(GroupVersionKind::new(group.as_str(), version.as_str(), kind));
        }
        self.builtins()?.kind_of(group, version, plural)
    }

    /// Returns the resource of a kind: from its definition, else by the English plural rules of Kubernetes'
    /// `UnsafeGuessKindToResource`.
    pub(super) fn resource_of(self, kind: &GroupVersionKind) -> GroupVersionResource {
        let documents = if self.second.crd_of(kind).is_some() { self.second } else { self.first };
        documents.resource_of(kind)
    }

    /// Converts the object to another version; `None` if the conversion is unknown.
    pub(super) fn convert(self, object: &Value, kind: &GroupVersionKind) -> Option<Value> {
        let of = if self.second.crd_of(kind).is_some() { self.second } else { self.first };
        of.convert(object, kind).ok()
    }

    fn definition(self, resource: &GroupVersionResource) -> Option<&'s Arc<CompiledCrd>> {
        let GroupVersionResource { group, version, resource } = resource;
        self.second.crds().iter().chain(self.first.crds()).find(|crd| {
            let definition = crd.definition();
            definition.group == *group
                && definition.names.plural == *resource
                && definition.version(version).is_some()
        })
    }
}
