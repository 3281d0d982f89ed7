//! Identifies the rule of an error by the words of the message.

use admit_policy::schema::Rule;

/// How a server reports a violated rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Told {
    /// The rule's message, or else its expression.
    pub(super) words: String,
    /// Whether the message is computed (`messageExpression`) and so may be anything.
    pub(super) is_computed: bool,
}

impl Told {
    pub(super) fn of(rule: &Rule) -> Self {
        let words = if rule.message.is_empty() { &rule.rule } else { &rule.message };
        let is_computed = !rule.message_expression.is_empty();
        Self { words: words.trim().to_owned(), is_computed }
    }
}
