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
/// assert_eq!((object.text("kind"), object.metadata("name")), (Some("Pod"), None));
/// assert!(object.node().get("kind").is_some());
/// ```
#[derive(Clone, Debug)]
pub enum Object<'d> {
    /// A node in the arena of a parser, or a view of the API server's object.
    Seen(Node<'d>),
    /// A value shared with a suite or the command line.
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

    /// Returns a string field of the object itself, such as its kind.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        match self.node().get(field)? {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a string field of the metadata.
    #[must_use]
    pub fn metadata(&self, field: &str) -> Option<&str> {
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

/// Returns an object as expressions see it; null if there is none.
pub(crate) fn node<'a>(object: Option<&'a Object<'_>>) -> Node<'a> {
    object.map_or(Node::Null, Object::node)
}
