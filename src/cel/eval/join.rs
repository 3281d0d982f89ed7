//! Implements `+` if the left side is a list of a document: sets are united, map lists merged, both in the order of the left side
//! (apiserver `pkg/cel/common/valuesunstructured.go`).

use std::collections::{HashMap, HashSet};

use bumpalo::collections::Vec as Room;

use crate::types::{DeclType, ListType};
use crate::value::{EvalError, Identity, List, ListNode, Node, Value};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    pub(super) fn join(&self, left: &List<'a>, right: &List<'a>) -> Outcome<'a> {
        match (left, left.list_type()) {
            (List::Document { decl: None, .. }, _) if left.is_empty() => Ok(Value::List(*right)),
            // Behind plain JSON, items keep their declared types.
            (List::Document { decl: None, .. }, _)
                if matches!(right, List::Document { decl: Some(_), .. }) =>
            {
                let mut values = self.cx.room_for(left.len().saturating_add(right.len()))?;
                values.extend(left.to_slice(self.cx.arena)?);
                values.extend(right.to_slice(self.cx.arena)?);
                Ok(Value::List(List::Values(values.into_bump_slice())))
            }
            (List::Document { items, decl }, ListType::Map(keys)) => {
                self.merged((*items, *decl), keys, right)
            }
            (List::Document { items, decl }, kind) => {
                self.extended((*items, *decl), *kind == ListType::Set, right)
            }
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// The items as they are written, then those of the right; of a set those alone that it does not have.
    fn extended(&self, (items, decl): Declared<'a>, is_set: bool, right: &List<'a>) -> Outcome<'a> {
        let mut nodes = self.cx.room_for(items.len().saturating_add(right.len()))?;
        nodes.extend(items.iter());
        let mut known = HashSet::new();
        if is_set {
            for node in items.iter() {
                known.insert(Identity::of_member(&Value::untyped(node))?);
            }
        } else if let List::Document { items, .. } = right {
            nodes.extend(items.iter());
            return Ok(document(nodes, decl));
        }
        let mut added = self.cx.room_for(right.len())?;
        for at in 0..right.len() {
            let Some(item) = right.try_get(self.cx.arena, at)? else { break };
            if !is_set || known.insert(Identity::of_member(&item)?) {
                nodes.extend(node_of(&item));
                added.push(item);
            }
        }
        if nodes.len() == items.len().saturating_add(added.len()) {
            return Ok(document(nodes, decl));
        }
        let mut values = self.cx.room_for(items.len().saturating_add(added.len()))?;
        values.extend(List::Document { items, decl }.to_slice(self.cx.arena)?);
        values.extend(added);
        Ok(Value::List(List::Values(values.into_bump_slice())))
    }

    /// An item of the right takes the place of the last one of its keys on the left, or comes behind.
    fn merged(&self, (items, decl): Declared<'a>, keys: &'a [Box<str>], right: &List<'a>) -> Outcome<'a> {
        let left = List::Document { items, decl };
        let mut values = self.cx.room_for(items.len().saturating_add(right.len()))?;
        values.extend(left.to_slice(self.cx.arena)?.iter().copied());
        let identities = values.iter().map(|item| Identity::of_entry(keys, item));
        let known: HashMap<_, _> = identities.zip(0_usize..).collect();
        for at in 0..right.len() {
            let Some(item) = right.try_get(self.cx.arena, at)? else { break };
            let place = known.get(&Identity::of_entry(keys, &item));
            match place.and_then(|place| values.get_mut(*place)) {
                Some(place) => *place = item,
                None => values.push(item),
            }
        }
        let mut nodes = self.cx.room_for(values.len())?;
        nodes.extend(values.iter().filter_map(node_of));
        if nodes.len() == values.len() {
            return Ok(document(nodes, decl));
        }
        Ok(Value::List(List::Values(values.into_bump_slice())))
    }
}

/// Items with the declared type of their list.
type Declared<'a> = (ListNode<'a>, Option<&'a DeclType>);

/// Builds a list of the same list type as its source, so that it is still compared that way.
fn document<'a>(nodes: Room<'a, Node<'a>>, decl: Option<&'a DeclType>) -> Value<'a> {
    Value::List(List::Document { items: ListNode::new(nodes.into_bump_slice()), decl })
}

/// The node that a value of a document was read from, where its type is JSON's own.
const fn node_of<'a>(value: &Value<'a>) -> Option<Node<'a>> {
    Some(match value {
        Value::Null => Node::Null,
        Value::Bool(b) => Node::Bool(*b),
        Value::Int(i) => Node::Int(*i),
        Value::Double(d) => Node::Double(*d),
        Value::String(s) => Node::String(s),
        Value::List(List::Document { items, .. }) => Node::List(*items),
        Value::Map(crate::value::Map::Document { node, .. }) => Node::Map(*node),
        _ => return None,
    })
}
