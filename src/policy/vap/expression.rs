//! The CEL of policies: which variables an expression may use, and what it must evaluate to.

use admit_cel::{Env, Mode, Program, Slot, Type, Version};

use super::types;

/// The Kubernetes release whose language policies are written in.
const VERSION: Version = Version(1, 36);

/// What an expression may use beside `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uses {
    pub(super) params: bool,
    pub(super) authorizer: bool,
}

/// What an expression must evaluate to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Returns {
    Any,
    Bool,
    String,
    StringOrNull,
}

/// An expression that is refused.
#[derive(Debug)]
pub(super) enum CompileError {
    /// It does not parse, check, or evaluate to the right type.
    Invalid(String),
    /// It cannot be made a program.
    Internal(String),
}

/// A compiled expression with its text.
#[derive(Debug)]
pub(super) struct Expression {
    /// Where it stands in the policy.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) program: Program,
    pub(super) output: Type,
    /// Whether it names the Namespace of the request.
    pub(super) uses_namespace: bool,
    /// What the program's slots stand for.
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
#[derive(Debug)]
pub(super) struct Compiler {
    /// What every expression may use.
    base: Env,
    params: Type,
    /// The variables declared so far, if expressions may use any.
    variables: Option<Vec<(String, Type)>>,
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new(Mode::New, Type::Dyn, Type::Dyn)
    }
}

impl Compiler {
    /// For expressions of a stored policy, on objects and params of these types.
    pub(super) fn typed(object: Type, params: Type) -> Self {
        Self::new(Mode::Stored, object, params)
    }

    fn new(mode: Mode, object: Type, params: Type) -> Self {
        let base = Env::kubernetes(VERSION, mode).with_variables([
            ("object", object.clone()),
            ("oldObject", object),
            ("namespaceObject", types::namespace()),
            ("request", types::request()),
        ]);
        Self { base, params, variables: None }
    }

    /// From here on expressions may use `variables`.
    pub(super) fn declare_variables(&mut self) {
        self.variables.get_or_insert_default();
    }

    /// Declares a variable; of any type where its expression did not compile.
    pub(super) fn declare_variable(&mut self, name: &str, ty: Option<&Type>) {
        let ty = ty.cloned().unwrap_or(Type::Dyn);
        self.variables.get_or_insert_default().push((name.to_owned(), ty));
    }

    pub(super) fn compile(
        &self,
        path: &str,
        text: &str,
        returns: Returns,
        uses: Uses,
    ) -> Result<Expression, CompileError> {
        let env = self.env(uses);
        let checked = env
            .compile(text)
            .map_err(|error| CompileError::Invalid(format!("compilation failed: {error}")))?;
        returns.check(checked.output_type())?;
        let program = env.program(&checked).map_err(|error| CompileError::Internal(error.to_string()))?;
        let names = env.variables().map(Name::from_text).collect();
        let uses_namespace = checked.uses_variable("namespaceObject");
        let (path, text, output) = (path.to_owned(), text.to_owned(), checked.output_type().clone());
        Ok(Expression { path, text, program, output, uses_namespace, names })
    }

    /// The type of an expression, or what is wrong with it.
    pub(super) fn check(&self, text: &str, uses: Uses) -> Result<Type, String> {
        let checked = self.env(uses).compile(text).map_err(|error| format!("compilation failed: {error}"))?;
        Ok(checked.output_type().clone())
    }

    fn env(&self, uses: Uses) -> Env {
        let mut env = self.base.clone();
        if let Some(variables) = &self.variables {
            env = env.with_variable("variables", types::variables(variables));
        }
        if uses.params {
            env = env.with_variable("params", self.params.clone());
        }
        if uses.authorizer {
            env = env.with_variables([
                ("authorizer", Type::Opaque("kubernetes.authorization.Authorizer".into())),
                ("authorizer.requestResource", Type::Opaque("kubernetes.authorization.ResourceCheck".into())),
            ]);
        }
        env
    }
}

impl Expression {
    /// What `slot` of the program stands for.
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

impl Returns {
    fn check(self, output: &Type) -> Result<(), CompileError> {
        let (allowed, expected): (&[Type], &str) = match self {
            Self::Any => return Ok(()),
            Self::Bool => (&[Type::Bool], "bool"),
            Self::String => (&[Type::String], "string"),
            Self::StringOrNull => (&[Type::String, Type::Null], "one of [string null_type]"),
        };
        if allowed.contains(output) {
            return Ok(());
        }
        Err(CompileError::Invalid(format!("must evaluate to {expected} but got {output}")))
    }
}
