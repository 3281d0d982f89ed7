//! Looks up the kinds that expressions are about: those that CustomResourceDefinitions in files define, and built-in ones.

use std::sync::Arc;

use admit_cel::Type;
use admit_policy::crd::CompiledCrd;
use admit_policy::{Documents, GroupVersionKind, GroupVersionResource, Types};

/// The definitions of the files, and the built-in kinds.
pub(crate) struct Known<'k> {
    pub(crate) defined: Documents,
    pub(crate) builtin: &'k dyn Types,
}

impl Known<'_> {
    /// Finds a kind by name, with or without version and group, ignoring case; without a name, the only kind that files define. Returns
    /// its storage version.
    pub(crate) fn named(&self, name: Option<&str>) -> Option<GroupVersionKind> {
        let mut found = None;
        for crd in self.defined.crds() {
            let kind = stored(crd)?;
            let full = format!("{}.{}.{}", kind.kind, kind.version, kind.group);
            match name {
                Some(name) if name.eq_ignore_ascii_case(&kind.kind) || name.eq_ignore_ascii_case(&full) => {
                    return Some(kind);
                }
                Some(_) => {}
                None if found.is_some() => return None,
                None => found = Some(kind),
            }
        }
        found
    }
}

fn stored(crd: &Arc<CompiledCrd>) -> Option<GroupVersionKind> {
    let definition = crd.definition();
    let version = definition.versions.iter().find(|version| version.storage)?;
    Some(GroupVersionKind::new(&*definition.group, &*version.name, &*definition.names.kind))
}

impl Types for Known<'_> {
    fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind> {
        let defined = self.defined.kinds(resource);
        if defined.is_empty() { self.builtin.kinds(resource) } else { defined }
    }

    fn type_of(&self, kind: &GroupVersionKind) -> Option<Type> {
        self.defined.type_of(kind).or_else(|| self.builtin.type_of(kind))
    }
}
