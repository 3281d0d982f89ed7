//! Determines which expressions were already stored before an update. These may use features that new ones may not: every release
//! understands more than it accepts in new objects, so that an older server in the same cluster can read everything that is stored.
//!
//! The counterpart of `preexistingExpressions` in Kubernetes' validation: texts are compared, whatever their place.

use std::collections::HashSet;

use admit_cel::Mode;
use serde_json::Value;

use super::expression::Role;

/// The expressions that are stored already.
#[derive(Clone, Debug, Default)]
pub(crate) enum Stored {
    /// All are being written.
    #[default]
    None,
    /// The whole document was read from where it is stored.
    All,
    /// The expressions of the document that is to be replaced.
    Of(Box<Expressions>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Expressions {
    conditions: HashSet<String>,
    /// Variables are looked up here too.
    validations: HashSet<String>,
    messages: HashSet<String>,
    annotations: HashSet<String>,
}

impl Stored {
    /// Collects the expressions of a policy.
    pub(super) fn of_policy(document: &Value) -> Self {
        let all =
            |list, field| texts(document.pointer("/spec").and_then(|spec| spec.get(list)), field).collect();
        Self::Of(Box::new(Expressions {
            conditions: all("matchConditions", "expression"),
            validations: all("validations", "expression"),
            messages: all("validations", "messageExpression"),
            annotations: all("auditAnnotations", "valueExpression"),
        }))
    }

    /// The match conditions of all webhooks of a configuration.
    pub(crate) fn of_webhooks(configuration: &Value) -> Self {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let conditions =
            webhooks.flat_map(|webhook| texts(webhook.get("matchConditions"), "expression")).collect();
        Self::Of(Box::new(Expressions { conditions, ..Expressions::default() }))
    }

    /// The language of an expression.
    pub(super) fn mode(&self, role: Role, text: &str) -> Mode {
        let is_known = match self {
            Self::None => false,
            Self::All => true,
            Self::Of(expressions) => expressions.of(role).contains(text),
        };
        if is_known { Mode::Stored } else { Mode::New }
    }
}

impl Expressions {
    fn of(&self, role: Role) -> &HashSet<String> {
        match role {
            Role::Condition => &self.conditions,
            Role::Variable | Role::Validation => &self.validations,
            Role::Message => &self.messages,
            Role::Annotation => &self.annotations,
        }
    }
}

fn texts<'v>(list: Option<&'v Value>, field: &'v str) -> impl Iterator<Item = String> + use<'v> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(move |item| item.get(field)?.as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_known_by_their_text_and_what_they_are_for() {
        let stored = Stored::of_policy(&json!({"spec": {
            "matchConditions": [{"name": "a", "expression": "c"}],
            "variables": [{"name": "a", "expression": "variable"}],
            "validations": [{"expression": "v", "messageExpression": "m"}, {"expression": "w"}],
            "auditAnnotations": [{"key": "a", "valueExpression": " a "}],
        }}));
        let all = [Role::Condition, Role::Variable, Role::Validation, Role::Message, Role::Annotation];
        let known = |text| -> Vec<Role> {
            all.into_iter().filter(|role| stored.mode(*role, text) == Mode::Stored).collect()
        };
        assert_eq!(known("c"), [Role::Condition]);
        assert_eq!(known("w"), [Role::Variable, Role::Validation], "upstream looks variables up here");
        assert_eq!(known("variable"), []);
        assert_eq!(known("m"), [Role::Message]);
        assert_eq!(known(" a "), [Role::Annotation]);
        assert_eq!(known("a"), []);
    }
}
