//! Produces the message of a failed rule: the result of its `messageExpression`, its `message`, or the rule itself.

use admit_cel::{EvalError, Value};

use crate::schema::Rule;

/// Bytes that the result of a message expression may have.
const MAX_RESULT: usize = 5 * 1024;

/// Returns how runtime errors name the rule: by its message, else by its expression.
pub(super) fn rule_text(rule: &Rule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

/// The rule's own message, or one that shows the rule.
pub(super) fn static_message(rule: &Rule) -> String {
    if rule.message.is_empty() {
        format!("failed rule: {}", rule.rule.trim())
    } else {
        rule.message.trim().to_owned()
    }
}

/// Returns the string that a message expression gave, if it can be shown: not empty, not too long, on one line.
pub(super) fn result_text(result: &Result<Value<'_>, EvalError>) -> Option<String> {
    let Ok(Value::String(text)) = result else { return None };
    let text = text.trim();
    let shown = !text.is_empty() && text.len() <= MAX_RESULT && !text.contains('\n');
    shown.then(|| text.to_owned())
}
