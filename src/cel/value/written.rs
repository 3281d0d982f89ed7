//! Equality of documents as they are written, without types.

use std::cmp::Ordering;

use super::{MapNode, Node, compare_int_double};

/// Equality of what no type declares: 1.0 is not 1.
pub(super) fn are_written_alike(a: &Node<'_>, b: &Node<'_>) -> bool {
    alike(a, b, |_, _| false)
}

pub(super) fn objects(a: MapNode<'_>, b: MapNode<'_>) -> bool {
    both(a, b, are_equal)
}

/// Equality of JSON: an integer and a double of equal value are equal.
pub(super) fn nodes(a: &Node<'_>, b: &Node<'_>) -> bool {
    alike(a, b, are_equal)
}

fn are_equal(a: i64, b: f64) -> bool {
    compare_int_double(a, b) == Some(Ordering::Equal)
}

fn alike(a: &Node<'_>, b: &Node<'_>, across: fn(i64, f64) -> bool) -> bool {
    match (a, b) {
        (Node::Null, Node::Null) => true,
        (Node::Bool(a), Node::Bool(b)) => a == b,
        (Node::Int(a), Node::Int(b)) => a == b,
        (Node::Double(a), Node::Double(b)) => a == b,
        (Node::Int(a), Node::Double(b)) | (Node::Double(b), Node::Int(a)) => across(*a, *b),
        (Node::String(a), Node::String(b)) => a == b,
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| alike(&a, &b, across))
        }
        (Node::Map(a), Node::Map(b)) => both(*a, *b, across),
        _ => false,
    }
}

fn both(a: MapNode<'_>, b: MapNode<'_>, across: fn(i64, f64) -> bool) -> bool {
    a.len() == b.len() && a.iter().all(|(name, x)| b.get(name).is_some_and(|y| alike(&x, &y, across)))
}
