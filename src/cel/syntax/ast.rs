//! Represents the syntax tree: nodes in one arena, referenced by ids, with a span each.

use std::collections::HashMap;

use crate::source::Span;

/// Index of an expression in its [`Ast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// A constant as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// `1`, `0x1`, `-1`.
    Int(i64),
    /// `1u`.
    Uint(u64),
    /// `1.0`, `1e3`.
    Double(f64),
    /// A string, with escapes resolved.
    String(Box<str>),
    /// The bytes, their escapes resolved.
    Bytes(Box<[u8]>),
}

/// An expression. Operators are calls of the functions that cel-go names (`_+_`, `_&&_`, `_?_:_`, `_[_]`, `_?._`, …).
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A possibly absolute name: `a` or `.a`.
    Ident(Box<str>),
    /// `operand.field`.
    Select {
        /// What the field is of.
        operand: ExprId,
        /// The name of the field.
        field: Box<str>,
        /// True for the expansion of `has(operand.field)`.
        test_only: bool,
    },
    /// A call of a function or an operator.
    Call {
        /// The name, with its namespace once resolved.
        function: Box<str>,
        /// The receiver of a member call.
        target: Option<ExprId>,
        /// The arguments.
        args: Box<[ExprId]>,
    },
    /// `[a, b]`.
    List {
        /// The elements, in order.
        elements: Box<[ExprId]>,
        /// Indices of elements written `[?e]`, ascending.
        optional: Box<[u32]>,
    },
    /// `{key: value}`.
    Map(Box<[Entry]>),
    /// `Name{field: value}`; the key of an entry is a string literal.
    Struct {
        /// The type's name.
        name: Box<str>,
        /// The fields that are set.
        entries: Box<[Entry]>,
    },
    /// A fold over a list or map.
    Comprehension(Box<Comprehension>),
}

/// A `key: value` of a map or message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: ExprId,
    /// The value.
    pub value: ExprId,
    /// Written `?key: value`.
    pub optional: bool,
}

/// The fold that every macro over a range expands to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// What is folded over.
    pub range: ExprId,
    /// The variable of each round: the element or the key.
    pub iter_var: Box<str>,
    /// Set by the two-variable macros: index or key first, value second.
    pub iter_var2: Option<Box<str>>,
    /// The accumulator variable.
    pub accu_var: Box<str>,
    /// The accumulator before the first round.
    pub accu_init: ExprId,
    /// Whether to iterate further.
    pub condition: ExprId,
    /// The accumulator after a round.
    pub step: ExprId,
    /// The result of the fold.
    pub result: ExprId,
}

/// A call that a macro replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MacroCall {
    pub(crate) function: Box<str>,
    pub(crate) target: Option<ExprId>,
    pub(crate) args: Box<[ExprId]>,
}

/// A parsed expression. Built by the parser only, so every id in it is valid, and an expression's id is greater than
/// those of its parts.
///
/// ```
/// use admit_cel::Source;
/// use admit_cel::syntax::{self, Expr, Options};
///
/// let source = Source::new("a + f(b)");
/// let ast = syntax::parse(&source, &Options::default())?;
/// assert_eq!((ast.len(), ast.is_empty()), (4, false));
/// let Expr::Call { function, args, .. } = ast.expr(ast.root()) else { panic!() };
/// assert_eq!((&**function, ast.anchor(ast.root())), ("_+_", 2));
/// assert_eq!(ast.span(args[1]).of(source.text()), "f(b)");
/// assert_eq!(ast.at(6).map(|id| ast.span(id).of(source.text())), Some("b"));
/// assert_eq!(ast.ids().last(), Some(ast.root()));
/// # Ok::<(), admit_cel::CompileError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ast {
    pub(crate) exprs: Vec<Expr>,
    /// The span of each expression; those created by a macro have the span of its call.
    ///
    /// INVARIANT: as long as `exprs`.
    pub(crate) spans: Vec<Span>,
    /// The offset that messages about an expression name: the operator, the dot of a selection, the parenthesis of a
    /// call, the bracket or brace of an aggregate, else the start.
    ///
    /// INVARIANT: as long as `exprs`.
    pub(crate) anchors: Vec<u32>,
    /// The macro call as written, for each expansion in the tree.
    pub(crate) macro_calls: HashMap<ExprId, MacroCall>,
    pub(crate) root: ExprId,
}

impl Ast {
    /// The whole expression.
    #[must_use]
    pub const fn root(&self) -> ExprId {
        self.root
    }

    /// Returns the number of expressions; ids count from 0.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Always false: there is a root.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// Returns all expressions, operands first; also those that macros removed from the tree.
    pub fn ids(&self) -> impl Iterator<Item = ExprId> + use<> {
        (0..u32::try_from(self.exprs.len()).unwrap_or(u32::MAX)).map(ExprId)
    }

    /// Returns the smallest expression whose text contains the byte at `offset`, or ends right before it; of several with that text the
    /// outermost.
    #[must_use]
    pub fn at(&self, offset: u32) -> Option<ExprId> {
        let holds = |id: &ExprId| {
            let span = self.span(*id);
            span.start <= offset && offset <= span.end
        };
        let size = |id: &ExprId| {
            let span = self.span(*id);
            (span.end.saturating_sub(span.start), std::cmp::Reverse(*id))
        };
        self.ids().filter(holds).min_by_key(size)
    }

    /// Returns an expression; `null` for an id that is not of this tree.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        const ABSENT: Expr = Expr::Literal(Literal::Null);
        self.exprs.get(id.0 as usize).unwrap_or(&ABSENT)
    }

    /// Returns the span of an expression.
    #[must_use]
    pub fn span(&self, id: ExprId) -> Span {
        self.spans.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// The offset that messages about the expression name.
    #[must_use]
    pub fn anchor(&self, id: ExprId) -> u32 {
        self.anchors.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Visits the direct operands of an expression, in the order of the text where there is one.
    pub(crate) fn for_each_part(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        match self.expr(id) {
            Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => visit(*operand),
            Expr::Call { target, args, .. } => target.iter().chain(args).for_each(|part| visit(*part)),
            Expr::List { elements, .. } => elements.iter().for_each(|part| visit(*part)),
            Expr::Map(entries) | Expr::Struct { entries, .. } => {
                entries.iter().flat_map(|entry| [entry.key, entry.value]).for_each(visit);
            }
            Expr::Comprehension(fold) => {
                [fold.range, fold.accu_init, fold.condition, fold.step, fold.result]
                    .into_iter()
                    .for_each(visit);
            }
        }
    }
}
