//! Matches label selectors against objects as expressions see them.

use admit_apimachinery::selector::LabelSelector;
use admit_cel::Node;

/// Whether the labels of `object` are selected; null is an object without labels.
pub(crate) fn selects(selector: &LabelSelector, object: Node<'_>) -> bool {
    selector.selects(labels(object))
}

/// Returns a function that looks up a label of an object by key.
pub(super) fn labels<'a>(object: Node<'a>) -> impl Fn(&str) -> Option<&'a str> {
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    move |key| match labels?.get(key)? {
        Node::String(value) => Some(value),
        _ => None,
    }
}
