//! `+` where the left side is a list of a document: sets unite, map lists merge, both keeping the order of the left
//! (apiserver `pkg/cel/common/valuesunstructured.go`).

use crate::types::ListType;
use crate::value::{Identity, List, ListNode, Node, Value};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    pub(super) fn join(&self, left: &List<'a>, right: &List<'a>) -> Outcome<'a> {
        let identity = |item: &Value<'a>| match left.list_type() {
            ListType::Atomic => None,
            ListType::Set => Some(Identity::of_member(item)),
            ListType::Map(keys) => Some(Identity::of_entry(keys, item)),
        };
        let overwrites = matches!(left.list_type(), ListType::Map(_));
        let mut values = self.cx.room_for(left.len().saturating_add(right.len()))?;
        let mut known = std::collections::HashMap::new();
        for at in 0..left.len() {
            let Some(item) = left.try_get(self.cx.arena, at)? else { break };
            if let Some(identity) = identity(&item) {
                known.insert(identity, at);
            }
            values.push(item);
        }
        for at in 0..right.len() {
            let Some(item) = right.try_get(self.cx.arena, at)? else { break };
            let place = identity(&item).and_then(|identity| {
                let next = values.len();
                let place = *known.entry(identity).or_insert(next);
                (place < next).then_some(place)
            });
            match place.and_then(|place| values.get_mut(place)) {
                Some(place) if overwrites => *place = item,
                Some(_) => {}
                None => values.push(item),
            }
        }
        Ok(Value::List(
            self.as_document(left, right, &values).unwrap_or(List::Values(values.into_bump_slice())),
        ))
    }

    /// The joined list as one of the document's kind, so that it goes on comparing as one.
    fn as_document(&self, left: &List<'a>, right: &List<'a>, joined: &[Value<'a>]) -> Option<List<'a>> {
        let List::Document { items: a, decl } = left else { return None };
        if let (ListType::Atomic, List::Document { items: b, .. }) = (left.list_type(), right) {
            let mut items = self.cx.room_for(joined.len()).ok()?;
            items.extend(a.iter().chain(b.iter()));
            return Some(List::Document { items: ListNode::new(items.into_bump_slice()), decl: *decl });
        }
        let mut items = self.cx.room_for(joined.len()).ok()?;
        for value in joined {
            items.push(node_of(value)?);
        }
        Some(List::Document { items: ListNode::new(items.into_bump_slice()), decl: *decl })
    }
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
