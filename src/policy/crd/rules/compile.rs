//! Compiles one validation rule, with the API server's messages where it does not compile.

use std::sync::Arc;

use admit_cel::{Checked, DeclType, Env, Mode, PatternSum, Program, SizeHints, Type, Version};

use super::decl::MAX_REQUEST_SIZE;
use crate::crd::field_path::{self, Subscripts};
use crate::deadline::checkpoint;
use crate::schema::{Rule, Schema};

/// The release whose rules are followed.
pub(crate) const RELEASE: Version = Version(1, 36);

/// The environments of the rules of one node.
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
    pub program: Option<Result<Compiled, String>>,
    pub message: Option<Result<Compiled, String>>,
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

    fn env(&self, rule: &Rule, mode: Mode) -> Env {
        let old = match rule.optional_old_self {
            Some(true) => Type::Optional(Arc::new(self.ty.clone())),
            Some(false) | None => self.ty.clone(),
        };
        Env::kubernetes(RELEASE, mode)
            .with_declared_scalars()
            .with_variables([("self", self.ty.clone()), ("oldSelf", old)])
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
                compiled.program = Some(Err(match problem {
                    Problem::Compile(text) => format!("compilation failed: {text}"),
                    Problem::OutputType => "cel expression must evaluate to a bool".to_owned(),
                }));
                return compiled;
            }
        };
        compiled.uses_old_self = checked.uses_variable("oldSelf");
        let program = self.plan(&env, &checked, patterns);
        let failed = program.is_err();
        compiled.program = Some(program.map_err(|text| format!("program instantiation failed: {text}")));
        if failed {
            return compiled;
        }
        if !rule.message_expression.is_empty() {
            let env = self.env(rule, modes.message);
            let message = self.message(&env, &rule.message_expression, patterns);
            // The path of a rule without a message is not looked for.
            let failed = message.is_err();
            compiled.message = Some(message);
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

    fn plan(&self, env: &Env, checked: &Checked, patterns: &mut PatternSum) -> Result<Compiled, String> {
        let program = env.program_among(checked, patterns).map_err(|error| {
            let text = error.to_string();
            text.strip_prefix("program instantiation failed: ").unwrap_or(&text).to_owned()
        })?;
        Ok(Compiled { program, max_cost: checked.estimate(&self.sizes).max })
    }

    fn message(&self, env: &Env, text: &str, patterns: &mut PatternSum) -> Result<Compiled, String> {
        let checked = check(env, text, &Type::String).map_err(|problem| match problem {
            Problem::Compile(text) => format!("messageExpression compilation failed: {text}"),
            Problem::OutputType => "messageExpression must evaluate to a string".to_owned(),
        })?;
        self.plan(env, &checked, patterns)
            .map_err(|text| format!("messageExpression instantiation failed: {text}"))
    }
}

enum Problem {
    Compile(String),
    OutputType,
}

fn check(env: &Env, text: &str, expected: &Type) -> Result<Checked, Problem> {
    let checked = env.compile(text).map_err(|error| Problem::Compile(error.to_string()))?;
    if checked.output_type() == expected { Ok(checked) } else { Err(Problem::OutputType) }
}
