//! Reads a node of a document through its declared type: the counterpart of apiserver's `pkg/cel/common/valuesunstructured.go`, with
//! its error messages.

use bumpalo::Bump;

use super::{EvalError, List, Map, Node, Value, formats};
use crate::types::{DeclKind, DeclType, Type};

impl<'a> Value<'a> {
    /// A node as a value: through its declared type, or as it is without one.
    ///
    /// # Errors
    ///
    /// When the node is not of the declared type, in apiserver's words.
    pub fn from_node(arena: &'a Bump, node: Node<'a>, decl: Option<&'a DeclType>) -> Result<Self, EvalError> {
        match decl {
            Some(decl) => typed(Some(arena), node, decl),
            None => Ok(Self::untyped(node)),
        }
    }

    /// Converts a node, like `from_node` if there is an arena. Without one, a node that does not have its declared type, and a byte
    /// string, which would need the arena, are read by their JSON form.
    pub(super) fn from_node_in(
        arena: Option<&'a Bump>,
        node: Node<'a>,
        decl: Option<&'a DeclType>,
    ) -> Result<Self, EvalError> {
        match decl {
            None => Ok(Self::untyped(node)),
            Some(decl) if arena.is_none() => {
                Ok(typed(None, node, decl).unwrap_or_else(|_| Self::untyped(node)))
            }
            Some(decl) => typed(arena, node, decl),
        }
    }

    /// A node without declared type: the value that its JSON form suggests.
    #[must_use]
    #[inline]
    pub const fn untyped(node: Node<'a>) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(b) => Self::Bool(b),
            Node::Int(i) => Self::Int(i),
            Node::Double(d) => Self::Double(d),
            Node::String(s) => Self::String(s),
            Node::List(items) => Self::List(List::Document { items, decl: None }),
            Node::Map(node) => Self::Map(Map::Document { node, decl: None }),
        }
    }
}

fn typed<'a>(arena: Option<&'a Bump>, node: Node<'a>, decl: &'a DeclType) -> Result<Value<'a>, EvalError> {
    if let Node::Null = node {
        return if decl.nullable {
            Ok(Value::Null)
        } else {
            Err(invalid("invalid data, got null for schema with nullable=false"))
        };
    }
    match (&decl.kind, node) {
        (DeclKind::Scalar(ty), _) => scalar(arena, node, ty),
        (DeclKind::Date, Node::String(text)) => formats::day(text).map(Value::Timestamp),
        (DeclKind::Date, _) => Err(unexpected("string", node)),
        (DeclKind::List { .. }, Node::List(items)) => {
            Ok(Value::List(List::Document { items, decl: Some(decl) }))
        }
        (DeclKind::List { .. }, _) => {
            Err(invalid("invalid data, expected an array for the provided schema with type=array"))
        }
        (DeclKind::Map { .. } | DeclKind::Object { .. }, Node::Map(node)) => {
            Ok(Value::Map(Map::Document { node, decl: Some(decl) }))
        }
        (DeclKind::Map { .. } | DeclKind::Object { .. }, _) => {
            Err(invalid("invalid data, expected a map for the provided schema with type=object"))
        }
    }
}

fn scalar<'a>(arena: Option<&'a Bump>, node: Node<'a>, ty: &Type) -> Result<Value<'a>, EvalError> {
    match (ty, node) {
        (Type::Bool, Node::Bool(b)) => Ok(Value::Bool(b)),
        (Type::Int, Node::Int(i)) => Ok(Value::Int(i)),
        (Type::Double, Node::Double(d)) => Ok(Value::Double(d)),
        // A whole number loses its fraction on the way from YAML to JSON; the type `number` is a double all the same.
        #[expect(clippy::cast_precision_loss, reason = "Kubernetes rounds in the same way")]
        (Type::Double, Node::Int(i)) => Ok(Value::Double(i as f64)),
        (Type::String, Node::String(s)) => Ok(Value::String(s)),
        (Type::Bytes, Node::String(s)) => match arena {
            Some(arena) => formats::bytes(arena, s).map(Value::Bytes),
            None => Ok(Value::String(s)),
        },
        (Type::Duration, Node::String(s)) => formats::span(s).map(Value::Duration),
        (Type::Timestamp, Node::String(s)) => formats::instant(s).map(Value::Timestamp),
        (Type::Dyn, Node::String(_) | Node::Int(_)) => Ok(Value::untyped(node)),
        (Type::Dyn, _) => {
            Err(invalid("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        (Type::Bool, _) => Err(unexpected("bool", node)),
        (Type::Int, _) => Err(unexpected("int", node)),
        (Type::Double, _) => Err(unexpected("float", node)),
        (Type::String | Type::Bytes | Type::Duration | Type::Timestamp, _) => Err(unexpected("string", node)),
        _ => Ok(Value::untyped(node)),
    }
}

fn unexpected(expected: &str, node: Node<'_>) -> EvalError {
    let found = match node {
        Node::Null => "<nil>",
        Node::Bool(_) => "bool",
        Node::Int(_) => "int64",
        Node::Double(_) => "float64",
        Node::String(_) => "string",
        Node::List(_) => "[]interface {}",
        Node::Map(_) => "map[string]interface {}",
    };
    invalid(&format!("invalid data, expected {expected}, got {found}"))
}

fn invalid(text: &str) -> EvalError {
    EvalError::Other(text.into())
}
