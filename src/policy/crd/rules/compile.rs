//! Compiles one validation rule, with the API server's messages where it does not compile.

use std::sync::Arc;

use admit_cel::{
    Checked, CompileError, DeclType, Env, Mode, PatternSum, Program, ProgramError, SizeHints, Type,
};

use super::decl::MAX_REQUEST_SIZE;
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
    /// `fieldPath` as error messages print it; none where it is empty or leads nowhere.
    pub field_path: Option<String>,
}

/// A program with its greatest static cost.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub program: Program,
    pub max_cost: u64,
}

/// Why a rule or its message expression has no program, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Of the rule itself.
    #[error("{}", .0.told("", "cel expression must evaluate to a bool"))]
    Rule(ExpressionProblem),
    /// Of its message expression.
    #[error("{}", .0.told("messageExpression ", "messageExpression must evaluate to a string"))]
    Message(ExpressionProblem),
}

/// Why an expression of a rule has no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionProblem {
    /// It is no expression.
    Compile(CompileError),
    /// Its values are of another type than is asked for.
    OutputType,
    /// It is one that cannot be run.
    Program(ProgramError),
}

impl ExpressionProblem {
    /// `what` stands before the text, `type_rule` is the text of a wrong type.
    fn told(&self, what: &str, type_rule: &str) -> String {
        match self {
            Self::Compile(error) => format!("{what}compilation failed: {error}"),
            Self::OutputType => type_rule.to_owned(),
            // The text of a rule's program begins so already.
            Self::Program(error) => {
                let text = error.to_string();
                let cause = text.strip_prefix("program instantiation failed: ").unwrap_or(&text);
                let program = if what.is_empty() { "program " } else { what };
                format!("{program}instantiation failed: {cause}")
            }
        }
    }
}

impl RuleEnv {
    /// For a node of this type.
    #[must_use]
    pub fn new(decl: &Arc<DeclType>) -> Self {
        let each = decl.min_serialized_size.saturating_add(1);
        let request = u64::try_from(MAX_REQUEST_SIZE).unwrap_or(u64::MAX);
        let sizes = SizeHints { root: Some(Arc::clone(decl)) };
        Self { ty: decl.cel_type(), sizes, max_cardinality: request.checked_div(each).unwrap_or(0) }
    }

    /// How often data of this type can occur in one request, where nothing else bounds it.
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

    /// Checks a rule of a node, as one that is stored, without making a program of it.
    ///
    /// # Errors
    /// What the API server says of it.
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
        let env = self.env(rule, modes.rule);
        let checked = match check(&env, &rule.rule, &Type::Bool) {
            Ok(checked) => checked,
            Err(problem) => {
                compiled.program = Some(Err(RuleError::Rule(problem)));
                return compiled;
            }
        };
        compiled.uses_old_self = checked.uses_variable("oldSelf");
        let program = self.plan(&env, &checked, patterns);
        let failed = program.is_err();
        compiled.program = Some(program.map_err(RuleError::Rule));
        if failed {
            return compiled;
        }
        if !rule.message_expression.is_empty() {
            let env = self.env(rule, modes.message);
            let message = self.message(&env, &rule.message_expression, patterns);
            // The path of a rule without a message is not looked for.
            let failed = message.is_err();
            compiled.message = Some(message.map_err(RuleError::Message));
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

    fn plan(
        &self,
        env: &Env,
        checked: &Checked,
        patterns: &mut PatternSum,
    ) -> Result<Compiled, ExpressionProblem> {
        let program = env.program_among(checked, patterns).map_err(ExpressionProblem::Program)?;
        Ok(Compiled { program, max_cost: checked.estimate(&self.sizes).max })
    }

    fn message(
        &self,
        env: &Env,
        text: &str,
        patterns: &mut PatternSum,
    ) -> Result<Compiled, ExpressionProblem> {
        self.plan(env, &check(env, text, &Type::String)?, patterns)
    }
}

fn check(env: &Env, text: &str, expected: &Type) -> Result<Checked, ExpressionProblem> {
    let checked = env.compile(text).map_err(ExpressionProblem::Compile)?;
    if checked.output_type() == expected { Ok(checked) } else { Err(ExpressionProblem::OutputType) }
}
