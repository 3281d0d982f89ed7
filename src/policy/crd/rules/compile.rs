//! Compiles one validation rule, and reports errors with the API server's messages.

use std::sync::{Arc, OnceLock};

use admit_cel::{Checked, DeclType, Env, Mode, PatternSum, Program, SizeHints, Type};

use super::decl::MAX_REQUEST_SIZE;
use super::memory::{self, Key, Known, SelfType};
use super::problem::{ExpressionProblem, RuleError};
use crate::crd::field_path::{self, Subscripts};
use crate::deadline::checkpoint;
use crate::release;
use crate::schema::{Rule, Schema};

/// The environments of the rules of one node.
///
/// [The module](super) has an example.
#[derive(Clone, Debug)]
pub struct RuleEnv {
    ty: Type,
    sizes: SizeHints,
    max_cardinality: u64,
    decl: Arc<DeclType>,
    /// What the type is remembered by.
    known_by: OnceLock<SelfType>,
}

/// Whether a rule and its message expression are new, or were stored before.
#[derive(Clone, Copy, Debug)]
pub struct Modes {
    pub rule: Mode,
    pub message: Mode,
}

impl Modes {
    pub const NEW: Self = Self { rule: Mode::New, message: Mode::New };
    pub const STORED: Self = Self { rule: Mode::Stored, message: Mode::Stored };
}

/// A rule and the result of its compilation.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    /// Empty rules are neither a program nor an error.
    pub program: Option<Result<Compiled, RuleError>>,
    pub message: Option<Result<Compiled, RuleError>>,
    /// Whether the expression names `oldSelf`.
    pub uses_old_self: bool,
    /// `fieldPath` as error messages print it; None where it is empty or invalid.
    pub field_path: Option<String>,
}

/// A program with its greatest static cost.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub program: Program,
    pub max_cost: u64,
}

impl RuleEnv {
    /// Creates the environment for rules of a node of this type.
    #[must_use]
    pub fn new(decl: &Arc<DeclType>) -> Self {
        let each = decl.min_serialized_size.saturating_add(1);
        let request = u64::try_from(MAX_REQUEST_SIZE).unwrap_or(u64::MAX);
        let sizes = SizeHints { root: Some(Arc::clone(decl)) };
        let max_cardinality = request.checked_div(each).unwrap_or(0);
        let (decl, known_by) = (Arc::clone(decl), OnceLock::new());
        Self { ty: decl.cel_type(), sizes, max_cardinality, decl, known_by }
    }

    /// Returns how often data of this type can occur in one request, unless something else limits it.
    #[must_use]
    pub const fn max_cardinality(&self) -> u64 {
        self.max_cardinality
    }

    /// What a rule of a node may name, and its message expression.
    #[must_use]
    pub fn env(&self, rule: &Rule, mode: Mode) -> Env {
        // A server that does not know the field drops it.
        let old = match rule.optional_old_self.filter(|_| release::ratchets()) {
            Some(true) => Type::Optional(Arc::new(self.ty.clone())),
            Some(false) | None => self.ty.clone(),
        };
        Env::of_release(release::followed(), mode)
            .with_declared_scalars()
            .with_variables([("self", self.ty.clone()), ("oldSelf", old)])
    }

    /// Checks a stored rule of a node, without compiling it to a program.
    ///
    /// # Errors
    /// The error that the API server reports for it.
    pub fn checked(&self, rule: &Rule) -> Result<Checked, RuleError> {
        check(&self.env(rule, Mode::Stored), &rule.rule, &Type::Bool).map_err(RuleError::Rule)
    }

    /// Compiles a rule of a node.
    #[must_use]
    pub fn compile(&self, rule: &Rule, schema: &Schema, modes: Modes) -> CompiledRule {
        self.compile_among(rule, schema, modes, &mut PatternSum::default())
    }

    /// Like [`Self::compile`], with the regular expressions of the whole CRD, which share one memory limit.
    #[must_use]
    pub fn compile_among(
        &self,
        rule: &Rule,
        schema: &Schema,
        modes: Modes,
        patterns: &mut PatternSum,
    ) -> CompiledRule {
        let mut compiled =
            CompiledRule { program: None, message: None, uses_old_self: false, field_path: None };
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        checkpoint();
        let found = self.expression(rule, &rule.rule, modes.rule, false, patterns);
        compiled.uses_old_self = found.uses_old_self;
        let failed = found.made.is_err();
        compiled.program = Some(made(found).map_err(RuleError::Rule));
        if failed {
            return compiled;
        }
        if !rule.message_expression.is_empty() {
            let found = self.expression(rule, &rule.message_expression, modes.message, true, patterns);
            // The path of a rule without a message is not looked for.
            let failed = found.made.is_err();
            compiled.message = Some(made(found).map_err(RuleError::Message));
            if failed {
                return compiled;
            }
        }
        if !rule.field_path.is_empty() {
            let resolved = field_path::resolve(&rule.field_path, schema, Subscripts::Allowed);
            compiled.field_path = resolved.ok().map(|resolved| resolved.text);
        }
        compiled
    }

    /// Compiles the expression of a rule, or of its message.
    fn expression(
        &self,
        rule: &Rule,
        text: &str,
        mode: Mode,
        is_message: bool,
        patterns: &mut PatternSum,
    ) -> Known {
        let key = || Key {
            of: self.known_by.get_or_init(|| SelfType::of(&self.decl)).clone(),
            text: text.into(),
            is_message,
            is_stored: matches!(mode, Mode::Stored),
            optional_old_self: rule.optional_old_self,
            release: release::followed(),
        };
        memory::expression(key, patterns, |patterns| {
            let env = self.env(rule, mode);
            let expected = if is_message { Type::String } else { Type::Bool };
            let checked = match check(&env, text, &expected) {
                Ok(checked) => checked,
                Err(problem) => {
                    return Known { uses_old_self: false, made: Err(problem), patterns: Vec::new() };
                }
            };
            let program = env.program_among(&checked, patterns).map_err(ExpressionProblem::Program);
            let made = program.map(|program| (program, checked.estimate(&self.sizes).max));
            Known { uses_old_self: checked.uses_variable("oldSelf"), made, patterns: Vec::new() }
        })
    }
}

fn made(found: Known) -> Result<Compiled, ExpressionProblem> {
    found.made.map(|(program, max_cost)| Compiled { program, max_cost })
}

fn check(env: &Env, text: &str, expected: &Type) -> Result<Checked, ExpressionProblem> {
    let checked = env.compile(text).map_err(ExpressionProblem::Compile)?;
    if checked.output_type() == expected { Ok(checked) } else { Err(ExpressionProblem::OutputType) }
}
