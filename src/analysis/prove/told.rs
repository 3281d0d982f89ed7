//! The words by which it is known which rule an error is about.

use admit_policy::schema::Rule;

/// How servers name a rule that is broken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Told {
    /// Its message, or else its text.
    pub(super) words: String,
    /// Whether it may say anything else.
    pub(super) is_computed: bool,
}

impl Told {
    pub(super) fn of(rule: &Rule) -> Self {
        let words = if rule.message.is_empty() { &rule.rule } else { &rule.message };
        let is_computed = !rule.message_expression.is_empty();
        Self { words: words.trim().to_owned(), is_computed }
    }
}
