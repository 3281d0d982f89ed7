//! Describes why a rule or its message expression does not compile, in the API server's words.

use admit_cel::{CompileError, ProgramError};

/// Why a rule or its message expression has no program, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Of the rule itself.
    #[error("{}", .0.told("", "cel expression must evaluate to a bool"))]
    Rule(ExpressionProblem),
    /// Of its message expression.
    #[error("{}", .0.told("messageExpression ", "messageExpression must evaluate to a string"))]
    Message(ExpressionProblem),
}

/// Why an expression of a rule has no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionProblem {
    /// It is no expression.
    Compile(CompileError),
    /// Its values are of another type than is asked for.
    OutputType,
    /// It is one that cannot be run.
    Program(ProgramError),
}

impl ExpressionProblem {
    /// `what` stands before the text, `type_rule` is the text of a wrong type.
    fn told(&self, what: &str, type_rule: &str) -> String {
        match self {
            Self::Compile(error) => format!("{what}compilation failed: {error}"),
            Self::OutputType => type_rule.to_owned(),
            // The text of a rule's program begins so already.
            Self::Program(error) => {
                let text = error.to_string();
                let cause = text.strip_prefix("program instantiation failed: ").unwrap_or(&text);
                let program = if what.is_empty() { "program " } else { what };
                format!("{program}instantiation failed: {cause}")
            }
        }
    }
}
