//! Compiles the CEL expressions of policies: the variables that each may use, and the type that it must evaluate to.

use std::sync::LazyLock;

use admit_cel::{Checked, Env, Extra, Mode, PatternSum, Program, Slot, Type};

use super::types;
use crate::deadline::checkpoint;
use crate::release::{self, FOLLOWED};

/// The role of an expression, which determines its result type and whether it may use the authorizer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    Condition,
    Variable,
    Validation,
    Message,
    Annotation,
}

/// What an expression of a mutation makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Patch {
    /// The fields that are set, as an object has them.
    Object,
    /// A list of the operations of a JSON patch.
    Operations,
}

/// Why an expression is rejected.
#[derive(Debug)]
pub(super) enum CompileError {
    /// It does not parse, check, or evaluate to the right type.
    Invalid(String),
    /// It cannot be compiled to a program.
    Internal(String),
}

/// A compiled expression with its text.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    /// Its path in the policy.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) program: Program,
    pub(super) output: Type,
    /// Whether it names the Namespace of the request.
    pub(super) uses_namespace: bool,
    /// Whether it names the request.
    pub(super) uses_request: bool,
    /// The names of the program's slots.
    names: Box<[Option<Name>]>,
}

/// The variables of policies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Object,
    OldObject,
    Request,
    Namespace,
    Params,
    Variables,
    Authorizer,
    RequestResource,
}

/// Compiles the expressions of one policy; variables are declared as they are met.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    /// The type of params, if expressions may use any.
    params: Option<Type>,
    /// The variables declared so far, if expressions may use any.
    variables: Option<types::Variables>,
    /// The patterns of all expressions so far.
    patterns: PatternSum,
}

/// What every expression may use: of those that are being written, and of those that are stored.
static BASES: LazyLock<[Env; 2]> = LazyLock::new(|| release::following(FOLLOWED, bases));

fn bases() -> [Env; 2] {
    [Mode::New, Mode::Stored].map(|mode| base(mode, &Type::Dyn))
}

fn base(mode: Mode, object: &Type) -> Env {
    let env = Env::of_release(release::followed(), mode);
    let env = if release::counts_libraries_in_policies() { env } else { env.without_library_costs() };
    env.with_declared_scalars().with_variables([
        ("object", object.clone()),
        ("oldObject", object.clone()),
        ("namespaceObject", types::namespace()),
        ("request", types::request()),
    ])
}

impl Compiler {
    /// The patterns of the expressions count with these.
    pub(super) fn count_with(&mut self, patterns: PatternSum) {
        self.patterns = patterns;
    }

    /// Returns the patterns of the expressions, and those that they are counted with.
    pub(super) fn into_patterns(self) -> PatternSum {
        self.patterns
    }

    /// Declares `params` for the following expressions, if it has a type.
    pub(super) fn declare_params(&mut self, ty: Option<Type>) {
        self.params = ty;
    }

    /// Declares `variables` for the following expressions.
    pub(super) fn declare_variables(&mut self) {
        self.variables.get_or_insert_default();
    }

    /// Declares a variable; of any type where its expression did not compile.
    pub(super) fn declare_variable(&mut self, name: &str, ty: Option<&Type>) {
        let ty = ty.cloned().unwrap_or(Type::Dyn);
        self.variables.get_or_insert_default().declare(name, &ty);
    }

    pub(super) fn compile(
        &mut self,
        role: Role,
        mode: Mode,
        path: &str,
        text: &str,
    ) -> Result<Expression, CompileError> {
        checkpoint();
        let env = self.env(role, mode);
        let checked = env
            .compile(text)
            .map_err(|error| CompileError::Invalid(format!("compilation failed: {error}")))?;
        role.check(checked.output_type())?;
        self.programmed(&env, &checked, path, text)
    }

    /// The type of a stored expression on objects of the type `object`.
    ///
    /// Upstream declares `authorizer` and nothing below it here, so that `authorizer.requestResource` is a mistake.
    pub(super) fn check(&self, object: &Type, text: &str) -> Result<Type, admit_cel::CompileError> {
        let env = self.declare(base(Mode::Stored, object)).with_variable("authorizer", authorizer());
        let checked = env.compile(text)?;
        Ok(checked.output_type().clone())
    }

    /// Returns the environment for an unfinished expression, on objects of the type `object`; `asks` says whether it may use the
    /// authorizer.
    pub(super) fn written(&self, object: &Type, asks: bool) -> Env {
        let env = self.declare(base(Mode::New, object));
        if !asks {
            return env;
        }
        env.with_variables([
            ("authorizer", authorizer()),
            ("authorizer.requestResource", Type::Opaque("kubernetes.authorization.ResourceCheck".into())),
        ])
    }

    /// Compiles an expression that makes a patch.
    pub(super) fn compile_patch(
        &mut self,
        patch: Patch,
        mode: Mode,
        path: &str,
        text: &str,
    ) -> Result<Expression, CompileError> {
        checkpoint();
        let env = self.env(Role::Validation, mode).with_library(Extra::JsonPatch).with_patch_types();
        let checked = env
            .compile(text)
            .map_err(|error| CompileError::Invalid(format!("compilation failed: {error}")))?;
        let named = |name: &str| Type::Opaque(name.into());
        let (expected, wanted) = match patch {
            Patch::Object => ("Object", named("Object")),
            Patch::Operations => ("list(JSONPatch)", Type::List(named("JSONPatch").into())),
        };
        let found = checked.output_type();
        if *found != wanted {
            let found = found.with_full_names();
            return Err(CompileError::Invalid(format!("must evaluate to {expected} but got {found}")));
        }
        self.programmed(&env, &checked, path, text)
    }

    fn programmed(
        &mut self,
        env: &Env,
        checked: &Checked,
        path: &str,
        text: &str,
    ) -> Result<Expression, CompileError> {
        let program = env.program_among(checked, &mut self.patterns);
        let program = program.map_err(|error| CompileError::Internal(error.to_string()))?;
        let names = env.variables().map(Name::from_text).collect();
        let uses_namespace = checked.uses_variable("namespaceObject");
        let uses_request = checked.uses_variable("request");
        let (path, text, output) = (path.to_owned(), text.to_owned(), checked.output_type().clone());
        Ok(Expression { path, text, program, output, uses_namespace, uses_request, names })
    }

    fn env(&self, role: Role, mode: Mode) -> Env {
        let [written, stored] = if release::followed() == FOLLOWED { BASES.clone() } else { bases() };
        let base = match mode {
            Mode::New => written,
            Mode::Stored => stored,
        };
        let env = self.declare(base);
        if role == Role::Message {
            return env;
        }
        env.with_variables([
            ("authorizer", authorizer()),
            ("authorizer.requestResource", Type::Opaque("kubernetes.authorization.ResourceCheck".into())),
        ])
    }

    /// `env` with variables and params, as far as there are any.
    fn declare(&self, mut env: Env) -> Env {
        if let Some(variables) = &self.variables {
            env = env.with_variable("variables", variables.all());
        }
        if let Some(params) = &self.params {
            env = env.with_variable("params", params.clone());
        }
        env
    }
}

fn authorizer() -> Type {
    Type::Opaque("kubernetes.authorization.Authorizer".into())
}

impl Expression {
    /// Returns the expression with the text as in the policy, which failures quote: it was compiled without surrounding white space.
    pub(super) fn written_as(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
    }

    /// Returns the name that `slot` of the program stands for.
    pub(super) fn name_of(&self, slot: Slot) -> Option<Name> {
        self.names.get(usize::from(slot.0)).copied().flatten()
    }
}

impl Name {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "object" => Some(Self::Object),
            "oldObject" => Some(Self::OldObject),
            "request" => Some(Self::Request),
            "namespaceObject" => Some(Self::Namespace),
            "params" => Some(Self::Params),
            "variables" => Some(Self::Variables),
            "authorizer" => Some(Self::Authorizer),
            "authorizer.requestResource" => Some(Self::RequestResource),
            _ => None,
        }
    }
}

impl Role {
    fn check(self, output: &Type) -> Result<(), CompileError> {
        let (allowed, expected): (&[Type], &str) = match self {
            Self::Variable => return Ok(()),
            Self::Condition | Self::Validation => (&[Type::Bool], "bool"),
            Self::Message => (&[Type::String], "string"),
            Self::Annotation => (&[Type::String, Type::Null], "one of [string null_type]"),
        };
        if allowed.contains(output) {
            return Ok(());
        }
        let found = output.with_full_names();
        Err(CompileError::Invalid(format!("must evaluate to {expected} but got {found}")))
    }
}
