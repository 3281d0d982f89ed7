//! Compiles an expression over an object once, to evaluate it on many.

use admit_cel::syntax::Ast;
use admit_cel::{Bindings, Env, Evaluation, Mode, Node, Program, Type, Value as Cel};
use admit_policy::release;
use bumpalo::Bump;
use serde_json::Value;

use super::picture::PictureError;
use crate::reads::{self, Names, Reads};

/// An expression over `self`, which `object` also names.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    program: Program,
    /// The syntax tree with macros not expanded.
    pub(super) written: Ast,
    /// What it reads.
    pub(super) reads: Reads,
    /// The constants that may be its result.
    pub(super) outcomes: Vec<Value>,
}

/// Returns the CEL environment for expressions over the objects whose states are drawn.
///
/// ```
/// let env = admit_analysis::states::state_env(&admit_cel::Type::Dyn);
/// assert!(env.compile("self.status.phase").is_ok() && env.compile("oldSelf.status.phase").is_err());
/// ```
#[must_use]
pub fn state_env(object: &Type) -> Env {
    let names = ["self", "object"].map(|name| (name, object.clone()));
    Env::of_release(release::followed(), Mode::New).with_variables(names)
}

impl Expression {
    /// # Errors
    /// If the text is not a valid expression.
    pub(super) fn compile(text: &str) -> Result<Self, PictureError> {
        let wrong = |message: String| PictureError::NotAnExpression { expression: text.to_owned(), message };
        let env = state_env(&Type::Dyn);
        let checked = env.compile(text).map_err(|error| wrong(error.to_string()))?;
        let program = env.program(&checked).map_err(|error| wrong(error.to_string()))?;
        let unread = || wrong("it cannot be read".to_owned());
        let expanded = reads::parsed(text).ok_or_else(unread)?;
        let written = reads::as_written(text).ok_or_else(unread)?;
        let (reads, outcomes) = reads::with_outcomes(&expanded, &Names::default());
        Ok(Self { text: text.to_owned(), program, written, reads, outcomes })
    }

    /// Evaluates it; `None` if that is an error.
    pub(super) fn of(&self, object: &Value) -> Option<Value> {
        let arena = Bump::new();
        let mut bindings = Bindings::new(&self.program);
        for name in ["self", "object"] {
            bindings.set(name, Cel::untyped(Node::from_json(object)));
        }
        let value = self.program.eval(&bindings, &mut Evaluation::new(&arena)).ok()?;
        value.to_json(&arena).ok()
    }

    pub(super) fn holds(&self, object: &Value) -> bool {
        self.of(object) == Some(Value::Bool(true))
    }
}
