//! Holds an object of a request: borrowed, or shared with the caller.

use std::borrow::Cow;
use std::sync::Arc;

use admit_cel::Node;
use serde_json::Value;

/// A Kubernetes object, borrowed or shared.
///
/// ```
/// use admit_policy::Object;
/// use serde_json::json;
///
/// let pod = json!({"kind": "Pod"});
/// let object = Object::from(&pod);
/// assert_eq!(*object.value(), pod);
/// assert!(object.node().get("kind").is_some());
/// ```
#[derive(Clone, Debug)]
pub enum Object<'d> {
    /// In the arena of a reader, or as the API server holds it.
    Seen(Node<'d>),
    /// As a suite or the command line holds it.
    Shared(Arc<Value>),
}

impl Object<'_> {
    /// The object as expressions and selectors see it.
    pub fn node(&self) -> Node<'_> {
        match self {
            Self::Seen(node) => *node,
            Self::Shared(value) => Node::from_json(value),
        }
    }

    /// The object as JSON, for code that changes or validates it; copies a borrowed one.
    pub fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Seen(node) => Cow::Owned(node.to_json()),
            Self::Shared(value) => Cow::Borrowed(value),
        }
    }

    /// A field of the metadata that holds text.
    pub(crate) fn metadata(&self, field: &str) -> Option<&str> {
        match self.node().get("metadata")?.get(field)? {
            Node::String(text) => Some(text),
            _ => None,
        }
    }
}

impl<'d> From<&'d Value> for Object<'d> {
    fn from(value: &'d Value) -> Self {
        Self::Seen(Node::from_json(value))
    }
}

impl From<Value> for Object<'_> {
    fn from(value: Value) -> Self {
        Self::Shared(Arc::new(value))
    }
}

impl From<Arc<Value>> for Object<'_> {
    fn from(value: Arc<Value>) -> Self {
        Self::Shared(value)
    }
}

/// An object as expressions see it; null where there is none.
pub(crate) fn node<'a>(object: Option<&'a Object<'_>>) -> Node<'a> {
    object.map_or(Node::Null, Object::node)
}
