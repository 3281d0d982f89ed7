//! Infers types in an unfinished expression: those of its parts, even if other parts have errors.

use crate::check::{self, CheckedAst, Reference};
use crate::diagnostic::CompileError;
use crate::library::Overload;
use crate::source::Source;
use crate::syntax::{self, Ast, ExprId};
use crate::types::Type;

use super::Env;

/// The parts of an expression with their types, as far as they have any.
///
/// ```
/// use admit_cel::{Env, Mode, Type, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("x", Type::String);
/// let inferred = env.infer("x.size() > y")?;
/// let at = |offset| inferred.ast().at(offset).expect("all of the text is an expression");
/// assert_eq!(inferred.type_of(at(0)), Some(&Type::String));
/// assert_eq!(inferred.type_of(at(11)), None, "nobody declared it");
/// assert_eq!(inferred.overloads(at(5))[0].id, "string_size");
/// assert!(env.infer("x.").is_err());
/// # Ok::<(), admit_cel::CompileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inferred {
    ast: CheckedAst,
}

impl Inferred {
    /// The expression as a tree.
    #[must_use]
    pub fn ast(&self) -> &Ast {
        self.ast.ast()
    }

    /// Returns the type of a part; None if it has an error, and for parts that macros removed.
    #[must_use]
    pub fn type_of(&self, id: ExprId) -> Option<&Type> {
        Some(self.ast.type_of(id)).filter(|ty| **ty != Type::Error)
    }

    /// The overloads that a call may reach; none for everything else.
    #[must_use]
    pub fn overloads(&self, id: ExprId) -> &[&'static Overload] {
        match self.ast.reference(id) {
            Some(Reference::Overloads(rows)) => rows,
            Some(Reference::Variable | Reference::Type(_)) | None => &[],
        }
    }
}

impl Env {
    /// The types of the parts of an expression that need not check. [`Inferred`] has an example.
    ///
    /// # Errors
    ///
    /// When it does not parse.
    pub fn infer(&self, text: &str) -> Result<Inferred, CompileError> {
        let source = Source::new(text);
        let ast = syntax::parse(&source, &self.inner.syntax)?;
        Ok(Inferred { ast: check::infer(&source, ast, &self.environment()) })
    }
}
