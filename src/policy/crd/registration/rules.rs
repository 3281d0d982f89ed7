//! Validates `x-kubernetes-validations` at registration: that the fields are set correctly, the expressions compile, and the estimated
//! cost is within the limit.

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;

use super::costs::{EXPRESSION_LIMIT, over_budget};
use super::node::{Context, Node, Typing};
use super::structural::has_unsupported;
use crate::crd::field_path;
use crate::crd::rules::compile::{CompiledRule, RuleEnv};
use crate::crd::rules::decl;
use crate::read::path::Path;
use crate::release;
use crate::schema::{Reason, Rule, Schema};

/// Checks the string fields of the node's rules.
pub(super) fn texts(node: &Node<'_>, errors: &mut FieldErrors) {
    let at = node.path.child("x-kubernetes-validations");
    for (i, rule) in node.schema.rules.iter().enumerate() {
        rule_texts(rule, node.schema, &at.index(i), errors);
    }
}

fn rule_texts(rule: &Rule, schema: &Schema, path: &Path<'_>, errors: &mut FieldErrors) {
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
        errors.push(FieldError::not_supported(path.child("reason"), BadValue::marshalled(reason), REASONS));
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
    // If a schema cannot be parsed as structural, its paths are unknown.
    if !has_unsupported(schema)
        && field_path::resolve(field_path, schema, field_path::Subscripts::Allowed).is_err()
    {
        errors.push(FieldError::invalid(at, field_path, "must be a valid path"));
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Compiles the node's rules.
pub(super) fn compile(node: &Node<'_>, cx: &mut Context<'_>) -> FieldErrors {
    let Some(scope) = node.scope.filter(|_| !node.schema.rules.is_empty()) else {
        return FieldErrors::default();
    };
    let at = node.path.child("x-kubernetes-validations");
    let decl = match node.typing {
        Typing::Own => decl::decl_type(node.schema, node.is_resource_root()),
        Typing::From(schema) => decl::decl_type(schema, schema.embedded_resource),
        Typing::Missing => return FieldErrors::from(FieldError::internal(at, decl::NOT_CONVERTED)),
        Typing::Unknown => None,
    };
    let Some(decl) = decl else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable \
                      to convert structural schema to CEL declarations";
        return FieldErrors::from(FieldError::internal(at, detail));
    };
    let env = RuleEnv::new(&decl);
    let repeated = scope.cardinality.unwrap_or_else(|| env.max_cardinality());
    let mut errors = FieldErrors::default();
    for (i, rule) in node.schema.rules.iter().enumerate() {
        let path = at.index(i);
        let mut patterns = cx.patterns.borrow_mut();
        let compiled = env.compile_among(rule, node.schema, cx.stored.modes(rule), &mut patterns);
        drop(patterns);
        let mut check = RuleCheck { rule, path: &path, cx, errors: &mut errors };
        check.expression(&compiled, repeated);
        check.message(&compiled);
        check.old_self(&compiled, node.uncorrelatable);
    }
    errors
}

struct RuleCheck<'a, 'c> {
    rule: &'a Rule,
    path: &'a Path<'a>,
    cx: &'a mut Context<'c>,
    errors: &'a mut FieldErrors,
}

impl RuleCheck<'_, '_> {
    fn expression(&mut self, compiled: &CompiledRule, repeated: u64) {
        let at = self.path.child("rule");
        match &compiled.program {
            None => {}
            Some(Ok(program)) => self.cost(&at, "rule", program.max_cost.saturating_mul(repeated)),
            Some(Err(error)) => {
                self.errors.push(FieldError::invalid(at, internal_form(self.rule), error.to_string()))
            }
        }
    }

    fn message(&mut self, compiled: &CompiledRule) {
        let at = self.path.child("messageExpression");
        match &compiled.message {
            None => {}
            Some(Ok(program)) => self.cost(&at, "messageExpression", program.max_cost),
            Some(Err(error)) => {
                self.errors.push(FieldError::invalid(at, internal_form(self.rule), error.to_string()))
            }
        }
    }

    fn cost(&mut self, at: &Path<'_>, what: &str, cost: u64) {
        if !self.cx.unchanged && cost > EXPRESSION_LIMIT {
            let detail = over_budget(&format!("estimated {what} cost"), cost, EXPRESSION_LIMIT);
            self.errors.push(FieldError::forbidden(at, detail));
        }
        self.cx.costs.observe(at, cost);
    }

    fn old_self(&mut self, compiled: &CompiledRule, uncorrelatable: Option<&Path<'_>>) {
        if compiled.uses_old_self {
            if let Some(within) = uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.errors.push(FieldError::invalid(
                    self.path.child("rule"),
                    self.rule.rule.as_str(),
                    detail,
                ));
            }
        } else if let Some(optional) = self.rule.optional_old_self.filter(|_| release::ratchets()) {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(self.path.child("optionalOldSelf"), optional, detail));
        }
    }
}

/// A rule as the API server prints it: the fields of its internal form.
fn internal_form(rule: &Rule) -> BadValue {
    let text = |text: &str| go::json::text(&serde_json::Value::from(text));
    let reason = rule.reason.as_ref().map_or("null".to_owned(), |reason| {
        text(match reason {
            Reason::Invalid => "FieldValueInvalid",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Other(other) => other,
        })
    });
    let optional = rule.optional_old_self.map_or("null".to_owned(), |optional| optional.to_string());
    BadValue::Verbatim(format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\"FieldPath\":{},\
         \"OptionalOldSelf\":{optional}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
    ))
}
