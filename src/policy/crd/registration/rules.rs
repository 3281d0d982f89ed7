//! `x-kubernetes-validations` at registration: their texts, whether they compile, what they may cost.

use super::openapi::Node;
use crate::crd::field_path;
use crate::error::FieldError;
use crate::path::Path;
use crate::schema::{Reason, Rule, Schema, SchemaType};

/// How often a rule of a node can run on one object; none where nothing bounds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub(super) cardinality: Option<u64>,
}

impl Scope {
    /// The root: its rules run once.
    pub(super) const ROOT: Self = Self { cardinality: Some(1) };

    /// The scope of the nodes below a node of this one.
    pub(super) fn below(self, schema: &Schema) -> Self {
        let factor = match &schema.schema_type {
            Some(SchemaType::Object) if schema.additional_properties.is_some() => {
                schema.checks.max_properties
            }
            Some(SchemaType::Array) => schema.checks.max_items,
            _ => Some(1),
        };
        let factor = factor.map(|factor| u64::try_from(factor).unwrap_or(0));
        Self { cardinality: self.cardinality.zip(factor).map(|(count, factor)| count.saturating_mul(factor)) }
    }
}

/// The cost of all rules of a schema together.
#[derive(Debug, Default)]
pub(super) struct TotalCost {}

impl TotalCost {
    /// Tells that the rules cost too much together, and which of them most.
    pub(super) fn report(&self, _path: &Path<'_>, _errors: &mut Vec<FieldError>) {}
}

/// What is wrong with the texts of the node's rules.
pub(super) fn texts(node: &Node<'_>, errors: &mut Vec<FieldError>) {
    let at = node.path.child("x-kubernetes-validations");
    for (i, rule) in node.schema.rules.iter().enumerate() {
        rule_texts(rule, node.schema, &at.index(i), errors);
    }
}

fn rule_texts(rule: &Rule, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let text = rule.rule.trim();
    let message = rule.message.trim();
    let message_at = path.child("message");
    if text.is_empty() {
        errors.push(FieldError::required(path.child("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.push(FieldError::invalid(message_at, rule.message.as_str(), "must be non-empty if specified"));
    } else if has_line_break(message) {
        errors.push(FieldError::invalid(message_at, rule.message.as_str(), "must not contain line breaks"));
    } else if has_line_break(text) && message.is_empty() {
        errors
            .push(FieldError::required(message_at, "message must be specified if rule contains line breaks"));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(path.child("messageExpression"), detail));
    }
    if let Some(Reason::Other(reason)) = &rule.reason {
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        errors.push(FieldError::not_supported(path.child("reason"), &**reason, REASONS));
    }
    let field_path = rule.field_path.as_str();
    if field_path.is_empty() {
        return;
    }
    let at = path.child("fieldPath");
    if field_path.trim().is_empty() {
        errors.push(FieldError::invalid(at, field_path, "must be non-empty if specified"));
    }
    if has_line_break(field_path) {
        errors.push(FieldError::invalid(at, field_path, "must not contain line breaks"));
    }
    if field_path::resolve(field_path, schema, field_path::Subscripts::Allowed).is_err() {
        errors.push(FieldError::invalid(at, field_path, "must be a valid path"));
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Compiles the node's rules.
pub(super) fn compile(_node: &Node<'_>, _costs: &mut TotalCost) -> Vec<FieldError> {
    Vec::new()
}
