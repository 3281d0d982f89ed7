//! Describes why a rule or its message expression does not compile, in the API server's words.

use admit_cel::{CompileError, ProgramError};

/// Why a rule or its message expression does not compile, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The rule itself is wrong.
    #[error("{}", .0.told("", "cel expression must evaluate to a bool"))]
    Rule(ExpressionProblem),
    /// Its message expression is wrong.
    #[error("{}", .0.told("messageExpression ", "messageExpression must evaluate to a string"))]
    Message(ExpressionProblem),
}

/// Why an expression of a rule does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionProblem {
    /// It is no expression.
    Compile(CompileError),
    /// Its result has the wrong type.
    OutputType,
    /// It is one that cannot be run.
    Program(ProgramError),
}

impl ExpressionProblem {
    /// Formats the error; `what` is its prefix, `type_rule` the text for a wrong result type.
    fn told(&self, what: &str, type_rule: &str) -> String {
        match self {
            Self::Compile(error) => format!("{what}compilation failed: {error}"),
            Self::OutputType => type_rule.to_owned(),
            // The message of a rule's program already begins this way.
            Self::Program(error) => {
                let text = error.to_string();
                let cause = text.strip_prefix("program instantiation failed: ").unwrap_or(&text);
                let program = if what.is_empty() { "program " } else { what };
                format!("{program}instantiation failed: {cause}")
            }
        }
    }
}
