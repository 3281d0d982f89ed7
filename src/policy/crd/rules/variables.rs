//! Provides the variables of a node's expressions: `self` and `oldSelf`, with the types that the schema declares.

use admit_cel::{DeclType, EvalError, Node, Slot, Value, Variables};
use bumpalo::Bump;
use serde_json::Value as Json;

/// `self` and `oldSelf` of one node; data that is not of its declared type is an error wherever it is named.
pub(super) struct NodeVariables<'a> {
    new: Result<Value<'a>, EvalError>,
    old: Option<Result<Value<'a>, EvalError>>,
    old_optional: Result<Value<'a>, EvalError>,
}

impl<'a> NodeVariables<'a> {
    pub(super) fn new(
        arena: &'a Bump,
        new: &'a Json,
        old: Option<&'a Json>,
        decl: Option<&'a DeclType>,
    ) -> Self {
        let value = |json: &'a Json| Value::from_node(arena, Node::from_json(json), decl);
        let old = old.map(value);
        let old_optional = match &old {
            None => Ok(Value::Optional(None)),
            Some(Ok(old)) => Ok(Value::Optional(Some(arena.alloc(*old)))),
            // cel-go wraps the error of an invalid value.
            Some(Err(error)) => Err(EvalError::Other(
                format!("unsupported conversion to ref.Val: (*errors.errorString){error}").into(),
            )),
        };
        Self { new: value(new), old, old_optional }
    }
}

/// The variables of one rule, in the order of their declaration.
pub(super) struct RuleVariables<'a, 'n> {
    pub(super) node: &'n NodeVariables<'a>,
    /// `oldSelf` is an optional value.
    pub(super) optional: bool,
}

impl<'a> Variables<'a> for RuleVariables<'a, '_> {
    fn get(&self, slot: Slot) -> Option<Result<Value<'a>, EvalError>> {
        match slot {
            Slot(0) => Some(self.node.new.clone()),
            Slot(1) if self.optional => Some(self.node.old_optional.clone()),
            Slot(1) => self.node.old.clone(),
            Slot(_) => None,
        }
    }
}
