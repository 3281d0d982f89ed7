//! Provides the objects of a request to expressions, converted to the version that the policy matches.

use admit_cel::Node;
use serde_json::Value;

use crate::matching::Matched;
use crate::read::object::{self, Object};
use crate::request::Request;
use crate::request::host::{Host, HostError};

/// The objects as expressions see them; null where absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects<'a> {
    pub(super) object: Node<'a>,
    pub(super) old_object: Node<'a>,
}

/// The objects in another version, the one that the policy speaks about.
pub(super) struct Converted {
    object: Option<Value>,
    old_object: Option<Value>,
}

impl Converted {
    /// `None` when the objects are in the right version as they are.
    pub(super) fn of(
        request: &Request<'_>,
        matched: &Matched<'_>,
        host: &dyn Host,
    ) -> Result<Option<Self>, HostError> {
        if matched.is_as_it_is() || *matched.kind == request.kind {
            return Ok(None);
        }
        let convert = |object: &Option<Object<'_>>| {
            object.as_ref().map(|object| host.convert(&object.value(), &matched.kind)).transpose()
        };
        Ok(Some(Self { object: convert(&request.object)?, old_object: convert(&request.old_object)? }))
    }

    pub(super) fn nodes(&self) -> Objects<'_> {
        Objects { object: node(self.object.as_ref()), old_object: node(self.old_object.as_ref()) }
    }
}

impl<'a> Objects<'a> {
    pub(super) fn of(request: &'a Request<'_>) -> Self {
        Self {
            object: object::node(request.object.as_ref()),
            old_object: object::node(request.old_object.as_ref()),
        }
    }
}

/// Returns a document as expressions see it; null where absent.
pub(super) fn node(value: Option<&Value>) -> Node<'_> {
    value.map_or(Node::Null, Node::from_json)
}
