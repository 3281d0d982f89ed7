//! Formats expressions with one part of their tree replaced.
//!
//! The replacement is made in the tree before macro expansion, where a macro is still a call, because the resulting text is parsed
//! again.

use std::borrow::Cow;

use super::ast::{Ast, Expr, ExprId, Literal, MacroCall};

/// A change of one part of an expression. [`Ast::rewritten`] has an example.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewrite {
    /// Another function, operator or macro in place of the one that the part calls.
    Function(ExprId, Box<str>),
    /// A constant in place of the part.
    Literal(ExprId, Literal),
    /// A part in place of the expression that it is in.
    Part {
        /// What is replaced.
        of: ExprId,
        /// What takes its place.
        by: ExprId,
    },
    /// The opposite of the part.
    Not(ExprId),
}

/// The result of a rewrite.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rewritten {
    /// The whole expression.
    pub whole: String,
    /// The part that was changed.
    pub part: String,
}

impl Ast {
    /// Returns an expression as written: for a macro, the call; else the same as [`Ast::expr`]. [`Ast::rewritten`] has an example.
    #[must_use]
    pub fn written(&self, id: ExprId) -> Cow<'_, Expr> {
        match self.macro_calls.get(&id) {
            Some(MacroCall { function, target, args }) => {
                Cow::Owned(Expr::Call { function: function.clone(), target: *target, args: args.clone() })
            }
            None => Cow::Borrowed(self.expr(id)),
        }
    }

    /// Formats the expression with one part replaced. The caller must compile it: it may be invalid now.
    ///
    /// ```
    /// use admit_cel::Source;
    /// use admit_cel::syntax::{self, Expr, Options, Rewrite, macros};
    ///
    /// let options = Options { macros: macros::STANDARD.iter().collect(), ..Options::default() };
    /// let ast = syntax::parse(&Source::new("a.all(x, x > 1) && b"), &options)?;
    /// let Expr::Call { args, .. } = &*ast.written(ast.root()) else { panic!() };
    /// assert!(matches!(&*ast.written(args[0]), Expr::Call { function, .. } if &**function == "all"));
    ///
    /// let changed = |rewrite: Rewrite| ast.rewritten(&rewrite).whole;
    /// assert_eq!(changed(Rewrite::Function(ast.root(), "_||_".into())), "a.all(x, x > 1) || b");
    /// assert_eq!(changed(Rewrite::Function(args[0], "exists".into())), "a.exists(x, x > 1) && b");
    /// assert_eq!(changed(Rewrite::Part { of: ast.root(), by: args[1] }), "b");
    /// assert_eq!(changed(Rewrite::Not(args[1])), "a.all(x, x > 1) && !b");
    /// # Ok::<(), admit_cel::CompileError>(())
    /// ```
    #[must_use]
    pub fn rewritten(&self, rewrite: &Rewrite) -> Rewritten {
        // INVARIANT: this copy is only printed: the expansions of macros in it are those of before.
        let mut copy = self.clone();
        let id = match rewrite {
            Rewrite::Function(id, function) => {
                copy.call_instead(*id, function);
                *id
            }
            Rewrite::Literal(id, literal) => {
                copy.put(*id, Expr::Literal(literal.clone()), None);
                *id
            }
            Rewrite::Part { of, by } => {
                copy.put(*of, self.expr(*by).clone(), self.macro_calls.get(by).cloned());
                *of
            }
            Rewrite::Not(id) => {
                copy.negate(*id);
                *id
            }
        };
        Rewritten { whole: copy.to_string(), part: copy.text_of(id) }
    }

    fn put(&mut self, id: ExprId, expr: Expr, call: Option<MacroCall>) {
        if let Some(place) = self.exprs.get_mut(id.0 as usize) {
            *place = expr;
        }
        match call {
            Some(call) => self.macro_calls.insert(id, call),
            None => self.macro_calls.remove(&id),
        };
    }

    fn call_instead(&mut self, id: ExprId, other: &str) {
        if let Some(call) = self.macro_calls.get_mut(&id) {
            call.function = other.into();
        } else if let Some(Expr::Call { function, .. }) = self.exprs.get_mut(id.0 as usize) {
            *function = other.into();
        }
    }

    fn negate(&mut self, id: ExprId) {
        let Ok(last) = u32::try_from(self.exprs.len()) else { return };
        let (moved, call) = (ExprId(last), self.macro_calls.remove(&id));
        self.exprs.push(self.expr(id).clone());
        self.spans.push(self.span(id));
        self.anchors.push(self.anchor(id));
        if let Some(call) = call {
            self.macro_calls.insert(moved, call);
        }
        self.put(id, Expr::Call { function: "!_".into(), target: None, args: [moved].into() }, None);
    }
}
