//! Caches the object that the last attribute passed through, so that the next one need not start at the root of the document.

use std::sync::Arc;

use crate::plan::{Field, Local, Qualifier, QualifierKey, Root};
use crate::types::DeclType;
use crate::value::MapNode;

/// The declared type of a node, where it has one.
pub(super) type Decl<'a> = Option<&'a DeclType>;

/// An object of a document, and the path that led to it. It stays valid until the comprehension variable that is its root changes.
pub(super) struct Landmark<'a> {
    pub(super) root: &'a Root,
    pub(super) path: &'a [Qualifier],
    pub(super) map: MapNode<'a>,
    pub(super) decl: Decl<'a>,
}

impl<'a> Landmark<'a> {
    /// Returns the object and the rest of a path, if the path passes through it.
    #[inline(always)]
    pub(super) fn rest(
        &self,
        root: &Root,
        path: &'a [Qualifier],
    ) -> Option<(MapNode<'a>, Decl<'a>, &'a [Qualifier])> {
        let is_same_root = match (self.root, root) {
            (Root::Local(a), Root::Local(b)) => a == b,
            (Root::Variable(a), Root::Variable(b)) => a == b,
            _ => false,
        };
        let (start, rest) = path.split_at_checked(self.path.len()).filter(|_| is_same_root)?;
        let is_same = |(a, b): (&Qualifier, &Qualifier)| match (plain(a), plain(b)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let leads_by = self.path.iter().zip(start).all(is_same);
        leads_by.then_some((self.map, self.decl, rest))
    }

    /// Whether the object is part of the value of a comprehension variable.
    #[inline(always)]
    pub(super) const fn is_of(&self, local: Local) -> bool {
        matches!(self.root, Root::Local(root) if *root == local)
    }
}

/// The field of a link that is nothing but one.
#[inline(always)]
pub(super) fn plain(link: &Qualifier) -> Option<&Arc<Field>> {
    match &link.key {
        QualifierKey::Field(field) if !link.is_optional => Some(field),
        _ => None,
    }
}
