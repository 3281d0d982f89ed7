//! Evaluates a case with the `cel` crate.

use std::fmt;
use std::sync::Arc;

use cel::{Context, Env, Program, Value};

use crate::cases::Case;

/// A parsed case. The crate has no checker and no planner.
pub struct Peer {
    program: Program,
    /// Created once: a context for each evaluation would cost twenty times as much as most evaluations.
    environment: Arc<Env>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Peer {
    /// Parses a case.
    ///
    /// # Panics
    ///
    /// When the crate does not know the syntax.
    #[must_use]
    #[expect(clippy::unwrap_used, reason = "a case that the peer cannot parse is a mistake of this package")]
    pub fn compile(case: &Case) -> Self {
        let environment = Arc::new(Env::stdlib());
        Self { program: environment.compile(case.text).unwrap(), environment }
    }

    /// Returns a context that holds the documents, converted from `serde_json` values.
    ///
    /// # Panics
    ///
    /// When a document cannot be converted.
    #[expect(
        clippy::unwrap_used,
        reason = "a document that the peer cannot hold is a mistake of this package"
    )]
    pub fn bind(&self, case: &Case) -> Context<'static, 'static> {
        let mut context = Context::with_env(Arc::clone(&self.environment));
        for (name, json) in &case.documents {
            context.add_variable(*name, json).unwrap();
        }
        context
    }

    /// Evaluates; returns whether the result is true.
    #[must_use]
    pub fn eval(&self, context: &Context<'_, '_>) -> bool {
        matches!(self.program.execute(context), Ok(Value::Bool(true)))
    }

    /// Converts `serde_json` values, evaluates and returns the result.
    #[must_use]
    pub fn run(&self, case: &Case) -> bool {
        self.eval(&self.bind(case))
    }
}
