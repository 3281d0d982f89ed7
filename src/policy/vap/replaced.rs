//! Replaces one expression of a compiled policy, and compiles only that one.

use admit_cel::{Mode, PatternSum, Type};

use super::expression::{Compiler, Expression, Role};
use super::policy::Policy;

/// An expression of a policy, by role and index.
#[derive(Clone, Copy)]
struct Place {
    role: Role,
    at: usize,
}

impl Policy {
    /// Returns the policy with `text` as the expression at `path`, as if the whole document had been compiled.
    ///
    /// None if there is no such expression, or if the result depends on more than it: the text does not compile, has surrounding white
    /// space, has patterns, which are counted together with the others', or changes the type of a variable, which other expressions
    /// use.
    pub(crate) fn with_expression(&self, path: &str, text: &str) -> Option<Self> {
        let place = self.place(path)?;
        if text.is_empty() || text.trim() != text || self.is_mutating {
            return None;
        }
        let mut compiler = self.compiler_at(place);
        let made = compiler.compile(place.role, Mode::New, path, text).ok()?;
        let patterns: PatternSum = compiler.into_patterns();
        if patterns.count() > 0 {
            return None;
        }
        let mut policy = self.clone();
        let known = policy.expression_mut(place)?;
        if place.role == Role::Variable && known.output != made.output {
            return None;
        }
        *known = made;
        Some(policy)
    }

    fn place(&self, path: &str) -> Option<Place> {
        let of = |role: Role, at: Option<usize>| Some(Place { role, at: at? });
        let is_it = |expression: &Expression| expression.path == path;
        let conditions = self.conditions.iter().position(is_it);
        let variables = self.variables.iter().position(|variable| is_it(&variable.expression));
        let validations = self.validations.iter().position(|validation| is_it(&validation.expression));
        let says = |message: &Option<Expression>| message.as_ref().is_some_and(is_it);
        let messages = self.validations.iter().position(|validation| says(&validation.message_expression));
        let annotations = self.audit_annotations.iter().position(|annotation| is_it(&annotation.expression));
        of(Role::Condition, conditions)
            .or_else(|| of(Role::Variable, variables))
            .or_else(|| of(Role::Validation, validations))
            .or_else(|| of(Role::Message, messages))
            .or_else(|| of(Role::Annotation, annotations))
    }

    fn expression_mut(&mut self, place: Place) -> Option<&mut Expression> {
        let Place { role, at } = place;
        match role {
            Role::Condition => self.conditions.get_mut(at),
            Role::Variable => self.variables.get_mut(at).map(|variable| &mut variable.expression),
            Role::Validation => self.validations.get_mut(at).map(|validation| &mut validation.expression),
            Role::Message => {
                self.validations.get_mut(at).and_then(|validation| validation.message_expression.as_mut())
            }
            Role::Annotation => {
                self.audit_annotations.get_mut(at).map(|annotation| &mut annotation.expression)
            }
        }
    }

    /// Returns a compiler with the declarations for expressions at that place.
    fn compiler_at(&self, place: Place) -> Compiler {
        let mut compiler = Compiler::default();
        compiler.declare_params(self.param_kind.is_some().then_some(Type::Dyn));
        let declared = match place.role {
            Role::Condition => return compiler,
            Role::Variable => place.at,
            Role::Validation | Role::Message | Role::Annotation => self.variables.len(),
        };
        if !self.variables.is_empty() {
            compiler.declare_variables();
        }
        for variable in self.variables.iter().take(declared) {
            compiler.declare_variable(&variable.name, Some(&variable.expression.output));
        }
        compiler
    }
}
