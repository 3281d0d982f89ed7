//! Compiles a ValidatingAdmissionPolicy, with kube-apiserver's error messages about each field.

use std::sync::Arc;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_cel::{PatternSum, Type, is_identifier};
use serde_json::Value;

use super::binding::mutated_operations;
use super::expression::{CompileError, Compiler, Expression, Role};
use super::param_kind;
use super::stored::Stored;
use crate::matching::MatchResources;
use crate::read::decode::{DecodeError, Fields};
use crate::report::decision::{Reason, reason_named};
use crate::report::recording::{self, ExpressionId, Origin};
use crate::request::GroupVersionKind;
use crate::schema::metadata::configuration;

/// A compiled policy.
///
/// [`Binding`](crate::Binding) has an example.
#[derive(Clone, Debug)]
pub struct Policy {
    pub name: Arc<str>,
    pub failure_policy: FailurePolicy,
    pub param_kind: Option<GroupVersionKind>,
    pub constraints: MatchResources,
    pub(super) conditions: Vec<Expression>,
    pub(super) variables: Vec<Variable>,
    pub(super) variable_names: Box<[Box<str>]>,
    pub(super) validations: Vec<Validation>,
    pub(super) audit_annotations: Vec<AuditAnnotation>,
    /// Whether it is the part of a MutatingAdmissionPolicy that both kinds have.
    pub(super) is_mutating: bool,
    /// The document whose conditions these are, where that is no policy.
    pub(super) document: Option<Origin>,
}

/// What an evaluation error does to a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FailurePolicy {
    #[default]
    Fail,
    Ignore,
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) expression: Expression,
}

#[derive(Clone, Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    /// Trimmed; empty when absent.
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Reason,
}

#[derive(Clone, Debug)]
pub(super) struct AuditAnnotation {
    pub(super) key: String,
    pub(super) expression: Expression,
}

impl Policy {
    /// Compiles a policy that is to be created.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(document: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compile_among(document, &mut PatternSum::default())
    }

    /// Compiles a policy that is to be created, with the patterns of others that count together.
    ///
    /// # Errors
    /// As of [`Self::compile`].
    pub(crate) fn compile_among(
        document: &Value,
        patterns: &mut PatternSum,
    ) -> Result<Self, Vec<FieldError>> {
        Reader::among(patterns, |reader| reader.policy(document))
    }

    /// Compiles a policy that replaces `stored`; expressions of `stored` stay valid whatever they use.
    ///
    /// # Errors
    /// As of [`Self::compile`].
    pub fn compile_update(document: &Value, stored: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::knowing(Stored::of_policy(stored)).reading(|reader| reader.policy(document))
    }

    /// Compiles a policy read from where a server stores it.
    ///
    /// # Errors
    /// As of [`Self::compile`].
    pub fn compile_stored(document: &Value) -> Result<Self, Vec<FieldError>> {
        Reader::knowing(Stored::All).reading(|reader| reader.policy(document))
    }

    /// Every expression, in the order of the document.
    #[must_use]
    pub fn expressions(&self) -> Vec<recording::Expression<'_>> {
        let validations = self.validations.iter().flat_map(|validation| {
            [Some(&validation.expression), validation.message_expression.as_ref()].into_iter().flatten()
        });
        let all = (self.conditions.iter())
            .chain(self.variables.iter().map(|variable| &variable.expression))
            .chain(validations)
            .chain(self.audit_annotations.iter().map(|annotation| &annotation.expression));
        all.map(|expression| recording::Expression {
            id: self.id_of(expression),
            text: &expression.text,
            program: &expression.program,
        })
        .collect()
    }

    pub(super) fn id_of(&self, expression: &Expression) -> ExpressionId {
        let name = self.name.to_string();
        let origin = match &self.document {
            Some(document) => document.clone(),
            None if self.is_mutating => Origin::Mutating { name },
            None => Origin::Policy { name },
        };
        ExpressionId { origin, path: expression.path.clone() }
    }

    /// Returns the number of validations and audit annotations.
    pub fn rule_count(&self) -> usize {
        self.validations.len().saturating_add(self.audit_annotations.len())
    }

    /// Whether the Namespace of a request can make a difference: match conditions do not see it.
    pub fn uses_namespace(&self) -> bool {
        self.beside_conditions().any(|expression| expression.uses_namespace)
    }

    pub(super) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether some expression looks at `request`.
    pub(super) fn uses_request(&self) -> bool {
        self.conditions.iter().chain(self.beside_conditions()).any(|expression| expression.uses_request)
    }

    fn beside_conditions(&self) -> impl Iterator<Item = &Expression> {
        let of_validations = self.validations.iter().flat_map(|validation| {
            std::iter::once(&validation.expression).chain(&validation.message_expression)
        });
        let of_annotations = self.audit_annotations.iter().map(|annotation| &annotation.expression);
        let of_variables = self.variables.iter().map(|variable| &variable.expression);
        of_validations.chain(of_annotations).chain(of_variables)
    }
}

impl FailurePolicy {
    /// Reads the field of that name.
    pub(crate) fn decode(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Self, DecodeError> {
        match fields.optional_string("failurePolicy")?.as_deref() {
            None | Some("Fail") => Ok(Self::Fail),
            Some("Ignore") => Ok(Self::Ignore),
            Some(other) => {
                let path = fields.path_of("failurePolicy");
                errors.push(FieldError::not_supported(path, BadValue::marshalled(other), ["Fail", "Ignore"]));
                Ok(Self::Fail)
            }
        }
    }
}

/// Parses a document field by field. A part that is invalid is left out and reported in `errors`.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) errors: FieldErrors,
    pub(super) compiler: Compiler,
    stored: Stored,
}

impl Reader {
    pub(super) fn knowing(stored: Stored) -> Self {
        Self { stored, ..Self::default() }
    }

    /// Returns the result of `read` on a document, or all errors in the document.
    pub(super) fn reading<T>(
        mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, Vec<FieldError>> {
        match read(&mut self) {
            Ok(read) if self.errors.is_empty() => Ok(read),
            Ok(_) => Err(self.errors.into_vec()),
            Err(error) => Err(vec![configuration::wrong_type(&error)]),
        }
    }

    /// The same, with the patterns of others that count together.
    pub(super) fn among<T>(
        patterns: &mut PatternSum,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, Vec<FieldError>> {
        let mut reader = Self::default();
        reader.compiler.count_with(std::mem::take(patterns));
        reader.reading(|reader| {
            let made = read(reader);
            *patterns = std::mem::take(&mut reader.compiler).into_patterns();
            made
        })
    }

    /// Parses the fields that both kinds of policies have, in the order in which a server reports errors; returns them with the rest of
    /// the specification.
    pub(super) fn common<'d>(
        &mut self,
        document: &Fields<'d>,
        is_mutating: bool,
    ) -> Result<(Policy, Fields<'d>), DecodeError> {
        let name = configuration::name(document, &mut self.errors)?;
        let spec = document.object("spec")?;
        let failure_policy = FailurePolicy::decode(&spec, &mut self.errors)?;
        let param_kind = self.param_kind(&spec)?;
        let constraints = self.constraints(&spec)?;
        if is_mutating {
            mutated_operations(&spec, "matchConstraints", &mut self.errors)?;
        }
        let conditions = self.conditions(&spec)?;
        if is_mutating {
            // For mutations `variables` is declared even if there are none.
            self.compiler.declare_variables();
        }
        let variables = self.variables(&spec)?;
        let policy = Policy {
            name: name.into(),
            failure_policy,
            param_kind,
            constraints,
            conditions,
            variable_names: variables.iter().map(|variable| variable.name.as_str().into()).collect(),
            variables,
            validations: Vec::new(),
            audit_annotations: Vec::new(),
            is_mutating,
            document: None,
        };
        Ok((policy, spec))
    }

    fn policy(&mut self, document: &Value) -> Result<Policy, DecodeError> {
        let document = Fields::of(document, "")?;
        let (common, spec) = self.common(&document, false)?;
        let validations = spec.objects("validations")?;
        let annotations = spec.objects("auditAnnotations")?;
        if validations.is_empty() && annotations.is_empty() {
            for field in ["validations", "auditAnnotations"] {
                let detail = "validations or auditAnnotations must contain at least one item";
                self.errors.push(FieldError::required(spec.path_of(field), detail));
            }
        }
        let validations = self.each(&validations, Self::validation)?;
        let audit_annotations =
            self.audit_annotations(&spec.path_of("auditAnnotations"), &common.name, &annotations)?;
        Ok(Policy { validations, audit_annotations, ..common })
    }

    /// Declares `params` for expressions if there is a param kind.
    fn param_kind(&mut self, spec: &Fields<'_>) -> Result<Option<GroupVersionKind>, DecodeError> {
        let kind = spec
            .optional_object("paramKind")?
            .map(|kind| param_kind::decode(&kind, &mut self.errors))
            .transpose()?;
        self.compiler.declare_params(kind.is_some().then_some(Type::Dyn));
        Ok(kind)
    }

    fn constraints(&mut self, spec: &Fields<'_>) -> Result<MatchResources, DecodeError> {
        let Some(fields) = spec.optional_object("matchConstraints")? else {
            self.errors.push(FieldError::required(spec.path_of("matchConstraints"), ""));
            return Ok(MatchResources::default());
        };
        let constraints = MatchResources::decode(&fields, &mut self.errors)?;
        if constraints.rules.is_empty() {
            self.errors.push(FieldError::required(fields.path_of("resourceRules"), ""));
        }
        Ok(constraints)
    }

    fn variables(&mut self, spec: &Fields<'_>) -> Result<Vec<Variable>, DecodeError> {
        let items = spec.objects("variables")?;
        if !items.is_empty() {
            self.compiler.declare_variables();
        }
        self.each(&items, Self::variable)
    }

    fn variable(&mut self, fields: &Fields<'_>) -> Result<Option<Variable>, DecodeError> {
        let name = fields.string("name")?;
        if name.trim().is_empty() {
            self.errors.push(FieldError::required(fields.path_of("name"), "name is not specified"));
        } else if !is_identifier(&name) {
            let detail = "must be a valid CEL identifier";
            self.errors.push(FieldError::invalid(fields.path_of("name"), name.as_str(), detail));
        }
        let text = fields.string("expression")?;
        let path = fields.path_of("expression");
        if text.trim().is_empty() {
            self.errors.push(FieldError::required(path, "expression is not specified"));
            return Ok(None);
        }
        let expression = self.expression(Role::Variable, &path, &text);
        // A variable that does not compile is still declared, so that expressions using it have no further error.
        self.compiler.declare_variable(&name, expression.as_ref().map(|expression| &expression.output));
        Ok(expression.map(|expression| Variable { name, expression }))
    }

    fn validation(&mut self, fields: &Fields<'_>) -> Result<Option<Validation>, DecodeError> {
        let text = fields.string("expression")?;
        let path = fields.path_of("expression");
        let expression = if text.trim().is_empty() {
            self.errors.push(FieldError::required(path, "expression is not specified"));
            None
        } else {
            self.expression(Role::Validation, &path, &text)
        };
        let message_expression = self.message_expression(fields)?;
        let message = self.message(fields)?;
        let reason = self.reason(fields)?;
        Ok(expression.map(|expression| Validation { expression, message, message_expression, reason }))
    }

    fn message_expression(&mut self, fields: &Fields<'_>) -> Result<Option<Expression>, DecodeError> {
        let text = fields.string("messageExpression")?;
        let path = fields.path_of("messageExpression");
        if text.is_empty() {
            return Ok(None);
        }
        if text.trim().is_empty() {
            self.errors.push(FieldError::invalid(path, text.as_str(), "must be non-empty if specified"));
            return Ok(None);
        }
        Ok(self.expression(Role::Message, &path, &text))
    }

    fn message(&mut self, fields: &Fields<'_>) -> Result<String, DecodeError> {
        let message = fields.string("message")?;
        let trimmed = message.trim();
        let complaint = if !message.is_empty() && trimmed.is_empty() {
            Some("must be non-empty if specified")
        } else if trimmed.contains(['\n', '\r']) {
            Some("must not contain line breaks")
        } else {
            None
        };
        if let Some(complaint) = complaint {
            let path = fields.path_of("message");
            self.errors.push(FieldError::invalid(path, message.as_str(), complaint));
        }
        Ok(trimmed.to_owned())
    }

    fn reason(&mut self, fields: &Fields<'_>) -> Result<Reason, DecodeError> {
        let Some(name) = fields.optional_string("reason")? else { return Ok(Reason::Invalid) };
        match reason_named(&name) {
            Some(reason) if reason != Reason::Unauthorized => Ok(reason),
            _ => {
                let supported = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
                self.errors.push(FieldError::not_supported(
                    fields.path_of("reason"),
                    BadValue::marshalled(&name),
                    supported,
                ));
                Ok(Reason::Invalid)
            }
        }
    }

    pub(super) fn expression(&mut self, role: Role, path: &str, text: &str) -> Option<Expression> {
        self.shown_as(text, role, path, text)
    }

    /// Compiles `text`, with `written` as the text that errors show.
    pub(super) fn shown_as(
        &mut self,
        written: &str,
        role: Role,
        path: &str,
        text: &str,
    ) -> Option<Expression> {
        match self.compiler.compile(role, self.stored.mode(role, written), path, text) {
            Ok(expression) => Some(expression),
            Err(CompileError::Invalid(detail)) => {
                self.errors.push(FieldError::invalid(path, written, detail));
                None
            }
            Err(CompileError::Internal(detail)) => {
                self.errors.push(FieldError::internal(path, detail));
                None
            }
        }
    }

    /// The language of an expression.
    pub(super) fn mode(&self, role: Role, text: &str) -> admit_cel::Mode {
        self.stored.mode(role, text)
    }

    pub(super) fn invalid(&mut self, path: &str, value: &str, complaints: Vec<String>) {
        self.errors
            .extend(complaints.into_iter().map(|complaint| FieldError::invalid(path, value, complaint)));
    }

    fn each<T>(
        &mut self,
        items: &[Fields<'_>],
        read: fn(&mut Self, &Fields<'_>) -> Result<Option<T>, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            out.extend(read(self, item)?);
        }
        Ok(out)
    }
}
