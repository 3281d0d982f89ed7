//! Equality of documents as they are written, without types.

use std::cmp::Ordering;

use super::{MapNode, Node, compare_int_double};

/// Equality of what no type declares: 1.0 is not 1.
pub(super) fn are_written_alike(a: &Node<'_>, b: &Node<'_>) -> bool {
    match (a, b) {
        (Node::Int(_), Node::Double(_)) | (Node::Double(_), Node::Int(_)) => false,
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| are_written_alike(&a, &b))
        }
        (Node::Map(a), Node::Map(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| are_written_alike(&a, &b)))
        }
        _ => nodes(a, b),
    }
}

pub(super) fn objects(a: MapNode<'_>, b: MapNode<'_>) -> bool {
    a.len() == b.len() && a.iter().all(|(name, x)| b.get(name).is_some_and(|y| nodes(&x, &y)))
}

/// Equality of JSON: an integer and a double of equal value are equal.
pub(super) fn nodes(a: &Node<'_>, b: &Node<'_>) -> bool {
    match (a, b) {
        (Node::Null, Node::Null) => true,
        (Node::Bool(a), Node::Bool(b)) => a == b,
        (Node::Int(a), Node::Int(b)) => a == b,
        (Node::Double(a), Node::Double(b)) => a == b,
        (Node::Int(a), Node::Double(b)) | (Node::Double(b), Node::Int(a)) => {
            compare_int_double(*a, *b) == Some(Ordering::Equal)
        }
        (Node::String(a), Node::String(b)) => a == b,
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| nodes(&a, &b))
        }
        (Node::Map(a), Node::Map(b)) => objects(*a, *b),
        _ => false,
    }
}
