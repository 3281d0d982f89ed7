//! Finds CEL expressions in `message`, where they are shown as text and not evaluated.

use admit_cel::{Env, Mode, Type};

use crate::release;

/// Names that mean something in an expression.
const VARIABLES: [&str; 9] = [
    "object",
    "oldObject",
    "request",
    "params",
    "variables",
    "namespaceObject",
    "authorizer",
    "self",
    "oldSelf",
];

/// Whether a message looks like an unevaluated expression: it parses as one that concatenates strings or calls a function, or it has a
/// variable in brackets, as in templates.
pub(super) fn is_expression(message: &str) -> bool {
    names_variable(message) && (is_template(message) || joins(message) && compiles(message))
}

fn names_variable(message: &str) -> bool {
    let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.into_iter().any(|word| VARIABLES.contains(&word))
}

/// `{{ object.x }}`, `${object.x}`, `{object.x}`.
fn is_template(message: &str) -> bool {
    let inside = message.split('{').skip(1).filter_map(|part| part.split_once('}'));
    let mut inside = inside.map(|(inside, _)| inside.trim());
    inside.any(|inside| inside.contains('.') && names_variable(inside))
}

fn joins(message: &str) -> bool {
    ["+", "(", "?", "'", "\""].iter().any(|sign| message.contains(sign))
}

fn compiles(message: &str) -> bool {
    let env = Env::of_release(release::followed(), Mode::New);
    env.with_variables(VARIABLES.map(|name| (name, Type::Dyn))).compile(message).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_expression;

    #[test]
    fn expressions_are_told_from_sentences() {
        for (message, expected) in [
            ("'too many replicas: ' + string(object.spec.replicas)", true),
            ("object.metadata.name + ' is bad'", true),
            ("name {{ object.metadata.name }} is bad", true),
            ("name ${object.metadata.name} is bad", true),
            ("string(self.size)", true),
            ("object.spec.replicas must be positive", false),
            ("self.size", false),
            ("the object (a widget) is bad", false),
            ("must match {name}", false),
            ("a + b", false),
        ] {
            assert_eq!(is_expression(message), expected, "{message}");
        }
    }
}
