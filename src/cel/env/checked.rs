//! Describes a checked expression: its type, the overloads that it may call, its estimated cost.

use std::sync::Arc;

use crate::check::{CheckedAst, Reference};
use crate::cost::Bounds;
use crate::library::{Overload, Version};
use crate::types::{DeclType, Type};

/// An expression that type-checks. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_cel::syntax::Expr;
/// use admit_cel::{DeclKind, DeclType, Env, Mode, SizeHints, Type, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("self", Type::String);
/// let checked = env.compile("self.contains('a')")?;
/// assert_eq!(checked.output_type(), &Type::Bool);
/// assert!(matches!(checked.ast().expr(checked.ast().root()), Expr::Call { .. }));
/// assert!(checked.uses_variable("self") && !checked.uses_variable("oldSelf"));
/// assert_eq!(checked.overloads().map(|row| row.id).collect::<Vec<_>>(), ["contains_string"]);
///
/// let mut text = DeclType::unbounded(DeclKind::Scalar(Type::String));
/// text.max_elements = Some(100);
/// let hints = SizeHints { root: Some(Arc::new(text)) };
/// assert!(checked.estimate(&hints).max < checked.estimate(&SizeHints::default()).max);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checked {
    pub(super) inner: Arc<CheckedInner>,
}

#[derive(Debug)]
pub(super) struct CheckedInner {
    pub(super) ast: CheckedAst,
    pub(super) release: Version,
}

impl Checked {
    /// The type of the expression.
    #[must_use]
    pub fn output_type(&self) -> &Type {
        self.inner.ast.output_type()
    }

    /// The expression as a tree: names are full names, and calls of namespaced functions have no target.
    #[must_use]
    pub fn ast(&self) -> &crate::syntax::Ast {
        self.inner.ast.ast()
    }

    /// The overloads that its calls may reach, in no particular order; a row comes once for each call.
    pub fn overloads(&self) -> impl Iterator<Item = &'static Overload> {
        let references = self.inner.ast.references.iter().flatten();
        references
            .flat_map(|reference| match reference {
                Reference::Overloads(rows) => &**rows,
                Reference::Variable | Reference::Type(_) => &[],
            })
            .copied()
    }

    /// Whether the expression names a variable (an iteration variable of the same name is another one).
    #[must_use]
    pub fn uses_variable(&self, name: &str) -> bool {
        crate::plan::uses_variable(&self.inner.ast, name)
    }

    /// The static cost estimate.
    #[must_use]
    pub fn estimate(&self, hints: &SizeHints) -> Bounds {
        crate::estimate::estimate(&self.inner.ast, hints.root.as_deref(), self.inner.release)
    }
}

/// What the caller knows of sizes beyond the declared types of variables.
#[derive(Clone, Debug, Default)]
pub struct SizeHints {
    /// The declared type of the document in which every variable is a field: in a rule of a custom resource, `self` and `oldSelf`.
    /// Without it the sizes of variables are unknown.
    pub root: Option<Arc<DeclType>>,
}
