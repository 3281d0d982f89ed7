//! Compiles the expressions of an API server's own configuration: their variables, and their result types.
//!
//! Read from pkg/authentication/cel and pkg/authorization/cel of k8s.io/apiserver 1.36.

use std::sync::{Arc, LazyLock};

use admit_apimachinery::field_error::FieldError;
use admit_cel::syntax::{Ast, Expr};
use admit_cel::{
    Bindings, DeclField, DeclKind, DeclType, Env, EvalError, Evaluation, ListType, Mode, Program, Type, Value,
};
use bumpalo::Bump;

use crate::release;
use crate::report::options::EvalOptions;
use crate::report::recording::{self, ExpressionId, Origin, Subject};

/// What an expression is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// `claims`: the claims of a token, by name.
    Claims,
    /// `user`: who a token is of.
    User,
    /// `request`: the spec of a SubjectAccessReview.
    Request,
}

/// The required result type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Yields {
    /// Claims may have any type, so the result type is known only at evaluation.
    Anything,
    Truth,
}

static USER: LazyLock<Type> = LazyLock::new(|| user().cel_type());
static REQUEST: LazyLock<Type> = LazyLock::new(|| request().cel_type());

/// An expression of a configuration.
#[derive(Debug)]
pub(super) struct Compiled {
    about: About,
    text: String,
    /// The path in the document.
    path: String,
    program: Program,
    /// Whether the result is directly a string list that a Go function returned.
    is_native_list: bool,
}

impl About {
    const fn variable(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::User => "user",
            Self::Request => "request",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Claims | Self::User => super::AUTHENTICATION,
            Self::Request => super::AUTHORIZATION,
        }
    }

    /// What an expression may name.
    pub(super) fn env(self) -> Env {
        let ty = match self {
            Self::Claims => Type::Map(Arc::new(Type::String), Arc::new(Type::Any)),
            Self::User => USER.clone(),
            Self::Request => REQUEST.clone(),
        };
        // A configuration is taken as if it had been stored before: a server that is updated starts with the one it has.
        Env::of_release(release::followed(), Mode::Stored).with_variable(self.variable(), ty)
    }

    /// Compiles the expression; or adds what is wrong with it at `path`.
    pub(super) fn compile(
        self,
        yields: Yields,
        text: &str,
        path: &str,
    ) -> Result<(Compiled, Ast), Box<FieldError>> {
        let env = self.env();
        let invalid = |why: String| Box::new(FieldError::invalid(path, text, why));
        let checked = env.compile(text).map_err(|error| invalid(format!("compilation failed: {error}")))?;
        let found = checked.output_type();
        if yields == Yields::Truth && *found != Type::Bool {
            return Err(invalid(match self {
                Self::Request => format!("must evaluate to bool but got {}", found.with_full_names()),
                Self::Claims | Self::User => "must evaluate to bool".to_owned(),
            }));
        }
        let program = env
            .program(&checked)
            .map_err(|error| FieldError::internal(path, format!("program instantiation failed: {error}")))?;
        let ast = checked.ast().clone();
        let compiled = Compiled {
            about: self,
            text: text.to_owned(),
            path: path.to_owned(),
            program,
            is_native_list: is_native_list(&ast),
        };
        Ok((compiled, ast))
    }
}

impl Compiled {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) const fn is_native_list(&self) -> bool {
        self.is_native_list
    }

    /// The value where the variable has `value`.
    pub(super) fn eval<'a>(
        &'a self,
        value: Value<'a>,
        arena: &'a Bump,
        options: EvalOptions<'a>,
    ) -> Result<Value<'a>, EvalError> {
        let mut bindings = Bindings::new(&self.program);
        bindings.set(self.about.variable(), value);
        let mut evaluation = Evaluation::new(arena);
        if let Some(deadline) = options.deadline {
            if deadline.has_passed() {
                return Err(EvalError::Interrupted);
            }
            evaluation = evaluation.deadline(deadline.as_fn());
        }
        let result = match options.recording {
            None => self.program.eval(&bindings, &mut evaluation),
            Some(recording) => {
                let subject = Subject { id: &|| self.id(), text: &self.text, at: &String::new };
                recording.eval(&subject, &self.program, &bindings, &mut evaluation)
            }
        };
        if let Some(spent) = options.spent {
            spent.set(spent.get().saturating_add(evaluation.cost()));
        }
        result
    }

    pub(super) fn id(&self) -> ExpressionId {
        let origin = Origin::Configuration { kind: self.about.kind().to_owned(), name: String::new() };
        ExpressionId { origin, path: self.path.clone() }
    }

    pub(super) fn listed(&self) -> recording::Expression<'_> {
        recording::Expression { id: self.id(), text: &self.text, program: &self.program }
    }
}

/// Functions whose string lists cel-go keeps as Go values, which the mapping of claims does not accept as lists.
const NATIVE_LISTS: [&str; 2] = ["split", "findAll"];

/// Whether the whole expression is a call of one of [`NATIVE_LISTS`]. Any further operation converts the list.
fn is_native_list(ast: &Ast) -> bool {
    matches!(ast.expr(ast.root()), Expr::Call { function, target: Some(_), .. } if NATIVE_LISTS.contains(&&**function))
}

fn texts() -> DeclType {
    DeclType::unbounded(DeclKind::List { items: Arc::new(text()), list_type: ListType::Atomic })
}

fn text() -> DeclType {
    DeclType::unbounded(DeclKind::Scalar(Type::String))
}

/// An object of fields that may be absent, in the order of their names.
fn object<const N: usize>(name: &str, fields: [(&str, DeclType); N]) -> Arc<DeclType> {
    let mut fields = fields.map(|(name, decl)| DeclField {
        name: name.into(),
        cel_name: name.into(),
        decl: Arc::new(decl),
        required: false,
    });
    fields.sort_by(|one, other| one.name.cmp(&other.name));
    Arc::new(DeclType::unbounded(DeclKind::Object { name: name.into(), fields: fields.to_vec().into() }))
}

fn extra() -> DeclType {
    DeclType::unbounded(DeclKind::Map { key: Arc::new(text()), value: Arc::new(texts()) })
}

fn user() -> Arc<DeclType> {
    let fields = [("username", text()), ("uid", text()), ("groups", texts()), ("extra", extra())];
    object("kubernetes.UserInfo", fields)
}

fn request() -> Arc<DeclType> {
    let own = |object: Arc<DeclType>| Arc::unwrap_or_clone(object);
    let requirement = object(
        "kubernetes.SelectorRequirement",
        [("key", text()), ("operator", text()), ("values", texts())],
    );
    let selector = |name: &str| {
        let requirements = DeclType::unbounded(DeclKind::List {
            items: Arc::clone(&requirement),
            list_type: ListType::Atomic,
        });
        own(object(name, [("rawSelector", text()), ("requirements", requirements)]))
    };
    let resource = object(
        "kubernetes.ResourceAttributes",
        [
            ("namespace", text()),
            ("verb", text()),
            ("group", text()),
            ("version", text()),
            ("resource", text()),
            ("subresource", text()),
            ("name", text()),
            ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
        ],
    );
    let path = object("kubernetes.NonResourceAttributes", [("path", text()), ("verb", text())]);
    object(
        "kubernetes.SubjectAccessReviewSpec",
        [
            ("resourceAttributes", own(resource)),
            ("nonResourceAttributes", own(path)),
            ("user", text()),
            ("groups", texts()),
            ("extra", extra()),
            ("uid", text()),
        ],
    )
}
