//! Type-checks expressions: determines the type of every expression and the overloads that each call may select.
//!
//! Input: an [`Ast`] and the declarations. Output: a [`CheckedAst`], in which names are fully qualified, calls of namespaced functions
//! (`ip.isCanonical(x)`) have no target any more, and every call lists the rows that it may select.

mod calls;
mod checker;
mod format;
mod literals;
mod names;
mod unchecked;
mod unify;

pub(crate) use names::{Environment, is_made, type_named};
pub(crate) use unchecked::unchecked;

use crate::diagnostic::CompileError;
use crate::library::Overload;
use crate::source::Source;
use crate::syntax::{Ast, ExprId};
use crate::types::Type;

use checker::Checker;

/// What a name or a call resolved to.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A declared or an iteration variable; the expression is an `Ident` with its full name.
    Variable,
    /// The name of a type; its value is the type: `int`, `google.protobuf.Timestamp`.
    Type(Type),
    /// The overloads whose parameters the argument types allow, in declaration order; never empty. With one of them
    /// the call is decided; with several the argument values decide.
    Overloads(Rows),
}

/// One or more rows; nearly always one, which needs no allocation.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    One([&'static Overload; 1]),
    Several(Box<[&'static Overload]>),
}

impl Rows {
    fn of(first: &'static Overload, more: &[&'static Overload]) -> Self {
        if more.is_empty() {
            return Self::One([first]);
        }
        Self::Several(std::iter::once(first).chain(more.iter().copied()).collect())
    }
}

impl std::ops::Deref for Rows {
    type Target = [&'static Overload];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::One(row) => row,
            Self::Several(rows) => rows,
        }
    }
}

/// An expression that type-checks.
#[derive(Clone, Debug)]
pub(crate) struct CheckedAst {
    pub(crate) ast: Ast,
    /// INVARIANT: as long as the expressions of `ast`; free of type variables.
    pub(crate) types: Vec<Type>,
    /// INVARIANT: as long as the expressions of `ast`; none for literals, aggregates and comprehensions.
    pub(crate) references: Vec<Option<Reference>>,
    is_checked: bool,
}

impl CheckedAst {
    /// Whether the expression was checked; otherwise there are no types, and names and functions may be unknown.
    #[must_use]
    pub(crate) const fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// The expression, with full names.
    #[must_use]
    pub(crate) const fn ast(&self) -> &Ast {
        &self.ast
    }

    /// The type of the whole expression.
    #[must_use]
    pub(crate) fn output_type(&self) -> &Type {
        self.type_of(self.ast.root)
    }

    /// The type of one expression; `dyn` for an id that is not of this tree.
    #[must_use]
    pub(crate) fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id.0 as usize).unwrap_or(&Type::Dyn)
    }

    /// What a name or call resolved to.
    #[must_use]
    pub(crate) fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.0 as usize).and_then(Option::as_ref)
    }
}

/// Checks a parsed expression.
///
/// # Errors
///
/// Every mistake that the types show, in cel-go's words.
pub(crate) fn check(
    source: &Source<'_>,
    ast: Ast,
    environment: &Environment<'_>,
) -> Result<CheckedAst, CompileError> {
    let root = ast.root;
    let mut checker = Checker::new(*environment, *source, ast);
    checker.check(root);
    if !checker.findings.is_empty() {
        return Err(checker.findings.into_error());
    }
    let Checker { ast, mut types, references, unifier, .. } = checker;
    for ty in &mut types {
        *ty = unifier.substitute(ty, true);
    }
    let checked = CheckedAst { ast, types, references, is_checked: true };
    let findings = literals::validate(&checked, *source, environment);
    if findings.is_empty() { Ok(checked) } else { Err(findings.into_error()) }
}

/// Returns the types of a parsed expression, as far as known: a part with an error has the error type.
pub(crate) fn infer(source: &Source<'_>, ast: Ast, environment: &Environment<'_>) -> CheckedAst {
    let root = ast.root;
    let mut checker = Checker::new(*environment, *source, ast);
    checker.check(root);
    let Checker { ast, mut types, references, unifier, .. } = checker;
    for ty in &mut types {
        *ty = unifier.substitute(ty, true);
    }
    CheckedAst { ast, types, references, is_checked: false }
}
