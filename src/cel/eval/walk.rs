//! Evaluates the most common attributes fast: a chain of field selections from a document.
//!
//! Only the last field is converted to a value. Result and cost equal those of `attribute`'s general path. If a link is anything but a
//! present field of an object with its declared type, this path gives up before any cost is charged, and the general one starts over.

use crate::document::Key;
use crate::plan::{Attribute, Field, Qualifier, Root};
use crate::types::{DeclKind, Type};
use crate::value::{EvalError, Map, MapNode, Node, Value};

use super::landmark::{Decl, Landmark, plain};
use super::machine::{Machine, Outcome};
use super::watch::Watch;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    /// Evaluates an attribute on the fast path; None if the general path is needed.
    #[inline]
    pub(super) fn walked(&mut self, attribute: &'a Attribute) -> Option<Outcome<'a>> {
        if attribute.is_test {
            return self.tested(attribute).map(|outcome| outcome.map(Value::Bool));
        }
        let (node, decl) = self.walk(attribute)?;
        let value = match decl {
            None => Value::untyped(node?),
            Some(_) => Value::from_node(self.cx.arena, node?, decl).ok()?,
        };
        // One for every link, and one for the operand.
        let units = attribute.qualifiers.len().saturating_add(1);
        Some(self.charge_each(crate::library::cost::length(units)).map(|()| value))
    }

    /// Tests whether an attribute that is a map of a document with string keys has a key; None if the general path is needed, also if a
    /// value may not have its declared type.
    #[inline]
    pub(super) fn walked_key(
        &mut self,
        attribute: &'a Attribute,
        key: Key<'_>,
    ) -> Option<Result<bool, EvalError>> {
        if attribute.is_test {
            return None;
        }
        let (map, decl) = self.walk_to(&attribute.root, &attribute.qualifiers)?;
        let is_there = match decl.map(|decl| &decl.kind) {
            None => map.look(key).is_some(),
            Some(DeclKind::Map { value, .. }) => match map.find(key) {
                Some(node) if !is_of_type(node, Some(value)) => return None,
                found => found.is_some(),
            },
            Some(_) => return None,
        };
        let units = attribute.qualifiers.len().saturating_add(1);
        Some(self.charge_each(crate::library::cost::length(units)).map(|()| is_there))
    }

    /// Evaluates a presence test; None if the general path is needed.
    #[inline]
    pub(super) fn tested(&mut self, attribute: &'a Attribute) -> Option<Result<bool, EvalError>> {
        let (map, decl, field) = self.walk_links(attribute)?;
        let (is_there, object) = match decl {
            None => {
                let found = map.look(field.key());
                (found.is_some(), found.flatten().map(|object| (object, None)))
            }
            Some(_) => match select(map, decl, field)? {
                (None, _) => (false, None),
                (Some(Node::Map(object)), decl) if is_of_type(Node::Map(object), decl) => {
                    (true, Some((object, decl)))
                }
                (Some(node), decl) if is_of_type(node, decl) => (true, None),
                _ => return None,
            },
        };
        if let Some((map, decl)) = object {
            self.landmark = Some(Landmark { root: &attribute.root, path: &attribute.qualifiers, map, decl });
        }
        let units = attribute.qualifiers.len();
        Some(self.charge_each(crate::library::cost::length(units)).map(|()| is_there))
    }

    /// What the last field selects, if it is there, and its declared type.
    #[inline(always)]
    fn walk(&mut self, attribute: &'a Attribute) -> Option<(Option<Node<'a>>, Decl<'a>)> {
        let (map, decl, field) = self.walk_links(attribute)?;
        select(map, decl, field)
    }

    /// The object that the last field is selected from, its declared type, and the field.
    #[inline(always)]
    fn walk_links(&mut self, attribute: &'a Attribute) -> Option<(MapNode<'a>, Decl<'a>, &'a Field)> {
        let (last, links) = attribute.qualifiers.split_last()?;
        let (map, decl) = self.walk_to(&attribute.root, links)?;
        Some((map, decl, &**plain(last)?))
    }

    /// Returns the object at a path, and its declared type. Expressions often test a field and then select it, so the search mostly
    /// starts at the last object.
    #[inline(always)]
    fn walk_to(&mut self, root: &'a Root, path: &'a [Qualifier]) -> Option<(MapNode<'a>, Decl<'a>)> {
        if W::WATCHES {
            return None;
        }
        let known = self.landmark.as_ref().and_then(|landmark| landmark.rest(root, path));
        let (mut map, mut decl, rest) = match known {
            Some(known) => known,
            None => {
                let (map, decl) = self.document(root)?;
                (map, decl, path)
            }
        };
        if rest.is_empty() {
            return Some((map, decl));
        }
        for link in rest {
            let field = plain(link)?;
            (map, decl) = match decl {
                None => (map.look(field.key())??, None),
                Some(_) => match select(map, decl, field)? {
                    (Some(Node::Map(inner)), decl) => (inner, decl),
                    _ => return None,
                },
            };
        }
        self.landmark = Some(Landmark { root, path, map, decl });
        Some((map, decl))
    }

    /// The object of a document that a root names.
    #[inline(always)]
    fn document(&self, root: &'a Root) -> Option<(MapNode<'a>, Decl<'a>)> {
        match root {
            Root::Variable(slot) => match self.variables.get(*slot)? {
                Ok(Value::Map(Map::Document { node, decl })) => Some((node, decl)),
                _ => None,
            },
            // Accumulators are evaluated when they are first read.
            Root::Local(local) if self.pending.is_empty() => match self.cx.locals.get(usize::from(*local))? {
                Ok(Value::Map(Map::Document { node, decl })) => Some((*node, *decl)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Selects a field from an object of a document, with its type; None if the object does not have the type that the checker inferred.
#[inline(always)]
fn select<'a>(map: MapNode<'a>, decl: Decl<'a>, field: &'a Field) -> Option<(Option<Node<'a>>, Decl<'a>)> {
    let key = field.key();
    let Some(decl) = decl else { return Some((map.find(key), None)) };
    match &decl.kind {
        DeclKind::Object { fields, .. } => {
            let (expected, at) = field.declared.as_ref()?;
            if !std::ptr::eq(&raw const **expected, decl) {
                return None;
            }
            let declared = fields.get(*at)?;
            let key = if *declared.name == *field.name { key } else { Key::new(&declared.name) };
            // A null is an absent field.
            Some((map.find(key).filter(|node| !matches!(node, Node::Null)), Some(&declared.decl)))
        }
        DeclKind::Map { value, .. } => Some((map.find(key), Some(value))),
        DeclKind::Scalar(_) | DeclKind::Date | DeclKind::List { .. } => None,
    }
}

/// Whether a node certainly is of its declared type.
#[inline]
const fn is_of_type(node: Node<'_>, decl: Decl<'_>) -> bool {
    let Some(decl) = decl else { return true };
    matches!(
        (&decl.kind, node),
        (DeclKind::Object { .. } | DeclKind::Map { .. }, Node::Map(_))
            | (DeclKind::List { .. }, Node::List(_))
            | (DeclKind::Scalar(Type::String), Node::String(_))
            | (DeclKind::Scalar(Type::Int), Node::Int(_))
            | (DeclKind::Scalar(Type::Bool), Node::Bool(_))
    )
}
