//! The short way through attributes: fields selected one after the other from a document, which most attributes are.
//!
//! Only the last of them becomes a value. The short way ends as `attribute`'s long one would, at the same cost; where it
//! meets anything but a field of an object that is there and of its declared type, it gives up before it has paid
//! anything, and the long way begins at the start.

use crate::document::Key;
use crate::plan::{Attribute, Field, QualifierKey, Root};
use crate::types::{DeclKind, DeclType, Type};
use crate::value::{EvalError, Map, MapNode, Node, Value};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

/// The declared type of a node, where it has one.
type Decl<'a> = Option<&'a DeclType>;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    /// The attribute as a step of its own; none where the short way does not lead there.
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
        // One for every link, and one for the attribute.
        let units = attribute.qualifiers.len().saturating_add(1);
        Some(self.charge_each(crate::library::cost::length(units)).map(|()| value))
    }

    /// The map that an attribute is, if it is one of a document whose keys are names; none where the short way does not
    /// lead there.
    #[inline]
    pub(super) fn walked_map(&mut self, attribute: &'a Attribute) -> Option<Result<MapNode<'a>, EvalError>> {
        let (Some(Node::Map(map)), decl) = self.walk(attribute)? else { return None };
        if attribute.is_test || decl.is_some_and(|decl| !matches!(decl.kind, DeclKind::Map { .. })) {
            return None;
        }
        let units = attribute.qualifiers.len().saturating_add(1);
        Some(self.charge_each(crate::library::cost::length(units)).map(|()| map))
    }

    /// A presence test; none where the short way does not lead there.
    #[inline]
    pub(super) fn tested(&mut self, attribute: &'a Attribute) -> Option<Result<bool, EvalError>> {
        let (node, decl) = self.walk(attribute)?;
        if !node.is_none_or(|node| is_of_type(node, decl)) {
            return None;
        }
        let units = attribute.qualifiers.len();
        Some(self.charge_each(crate::library::cost::length(units)).map(|()| node.is_some()))
    }

    /// What the last field selects, if it is there, and its declared type.
    #[inline(always)]
    fn walk(&self, attribute: &'a Attribute) -> Option<(Option<Node<'a>>, Decl<'a>)> {
        if W::WATCHES {
            return None;
        }
        let (last, links) = attribute.qualifiers.split_last()?;
        let (mut map, mut decl) = self.document(&attribute.root)?;
        for link in links {
            let (QualifierKey::Field(field), false) = (&link.key, link.is_optional) else { return None };
            let (Some(Node::Map(inner)), ty) = select(map, decl, field)? else { return None };
            (map, decl) = (inner, ty);
        }
        let (QualifierKey::Field(field), false) = (&last.key, last.is_optional) else { return None };
        select(map, decl, field)
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

/// What a field selects from an object of a document, and the type of it; none where the object is not of the type
/// that the checker thought of.
#[inline(always)]
fn select<'a>(map: MapNode<'a>, decl: Decl<'a>, field: &'a Field) -> Option<(Option<Node<'a>>, Decl<'a>)> {
    let key = Key::with_hash(&field.name, field.hash);
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
        DeclKind::Scalar(_) | DeclKind::List { .. } => None,
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
