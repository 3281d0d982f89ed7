//! Validates `x-kubernetes-validations` at registration: their texts, whether they compile, and their estimated cost.

use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_cel::Mode;

use super::openapi::{Context, Node};
use crate::crd::field_path;
use crate::crd::rules::compile::{CompiledRule, Modes, RuleEnv};
use crate::crd::rules::decl;
use crate::read::path::Path;
use crate::release;
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
        let factor = occurrences(schema);
        Self { cardinality: self.cardinality.zip(factor).map(|(count, factor)| count.saturating_mul(factor)) }
    }
}

/// Where the type of a node's values comes from: below a node with rules, from the type of the node above.
#[derive(Clone, Copy, Debug)]
pub(super) enum Typing<'a> {
    /// No node above has rules: its own schema.
    Own,
    /// This schema, its own in definitions that make sense.
    From(&'a Schema),
    /// The type of the node above has no elements.
    Missing,
    /// The node above cannot be typed.
    Unknown,
}

impl<'a> Typing<'a> {
    /// Of a property of a node of this typing, and of all else that is no element.
    pub(super) fn of_property(self, node: &Node<'a>, property: &'a Schema) -> Self {
        self.below(node, |_| Some(property))
    }

    /// Of its items and additional properties, whichever of them makes the elements of its type.
    pub(super) fn of_element(self, node: &Node<'a>) -> Self {
        self.below(node, decl::element)
    }

    fn below(self, node: &Node<'a>, child: impl FnOnce(&'a Schema) -> Option<&'a Schema>) -> Self {
        let above = match self {
            Self::Own if node.schema.rules.is_empty() => return Self::Own,
            Self::Own => node.schema,
            Self::From(schema) => schema,
            Self::Missing | Self::Unknown => return self,
        };
        if decl::is_exposed(above) { child(above).map_or(Self::Missing, Self::From) } else { Self::Unknown }
    }
}

/// How many values the nodes right below a node can have for each of its own; none where nothing bounds it.
pub(crate) fn occurrences(schema: &Schema) -> Option<u64> {
    let factor = match &schema.schema_type {
        Some(SchemaType::Object) if schema.additional_properties.is_some() => schema.checks.max_properties,
        Some(SchemaType::Array) => schema.checks.max_items,
        _ => Some(1),
    };
    factor.map(|factor| u64::try_from(factor).unwrap_or(0))
}

/// The cost of all rules of a schema together.
#[derive(Debug, Default)]
pub(super) struct TotalCost {
    total: u64,
    /// The most expensive expressions, dearest first.
    dearest: Vec<(u64, String)>,
}

/// Static estimate that one expression may reach.
pub(crate) const EXPRESSION_LIMIT: u64 = 10_000_000;
/// Static estimate that all expressions of a schema may reach together.
pub(crate) const TOTAL_LIMIT: u64 = 100_000_000;
/// Expressions named when the total is too high; each has at least a hundredth of the limit.
const NAMED: usize = 4;

impl TotalCost {
    fn observe(&mut self, path: &Path<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < TOTAL_LIMIT / 100 {
            return;
        }
        self.dearest.push((cost, path.to_string()));
        self.dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.dearest.truncate(NAMED);
    }

    /// Tells that the rules cost too much together, and which of them most.
    pub(super) fn report(&self, path: &Path<'_>, errors: &mut FieldErrors) {
        if self.total <= TOTAL_LIMIT {
            return;
        }
        for (_, at) in &self.dearest {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(at, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, over_budget(what, self.total, TOTAL_LIMIT)));
    }
}

#[expect(clippy::cast_precision_loss, reason = "the factor is shown with one digit after the point")]
fn over_budget(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// What is wrong with the texts of the node's rules.
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
    // Where a schema cannot be read as structural, nothing is known of its paths.
    if !super::has_unsupported(schema)
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

/// The expressions that an update found in place, which are compiled as stored ones.
#[derive(Debug, Default)]
pub(super) struct StoredExpressions {
    rules: HashSet<String>,
    messages: HashSet<String>,
}

impl StoredExpressions {
    fn modes(&self, rule: &Rule) -> Modes {
        let mode = |known: bool| if known { Mode::Stored } else { Mode::New };
        Modes {
            rule: mode(self.rules.contains(&rule.rule)),
            message: mode(self.messages.contains(&rule.message_expression)),
        }
    }

    /// Adds the expressions of a stored schema.
    pub(super) fn collect(&mut self, schema: &Schema) {
        for rule in &schema.rules {
            self.rules.insert(rule.rule.clone());
            self.messages.insert(rule.message_expression.clone());
        }
        for child in schema.children() {
            self.collect(child);
        }
    }
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
