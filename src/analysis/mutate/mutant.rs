//! A mutant: one small change of a document, and how it is applied.

use admit_cel::Span;
use admit_policy::{ExpressionId, Origin};
use serde_json::Value;

/// The kind of a mutation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Operator {
    /// A comparison operator is replaced: `<=` for `<`, `!=` for `==`.
    Comparison,
    /// `&&` becomes `||`, or `||` becomes `&&`.
    Logic,
    /// A negation is added or removed.
    Negation,
    /// An operand of `&&` or `||`, a branch of `?:`, or a whole rule or mutation is removed.
    Clause,
    /// `has()` becomes `true`.
    Presence,
    /// A number is increased or decreased by one.
    Constant,
    /// `all` becomes `exists`, or `exists` becomes `all`.
    Quantifier,
    /// An operation is no longer matched.
    Operation,
    /// A resource, or a rule about resources, is removed.
    Resource,
    /// A requirement of a selector is removed.
    Selector,
    /// A validation action is removed or weakened.
    Action,
    /// A message expression or an audit annotation is removed.
    Message,
}

impl Operator {
    /// All operators, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Comparison,
        Self::Logic,
        Self::Negation,
        Self::Clause,
        Self::Presence,
        Self::Constant,
        Self::Quantifier,
        Self::Operation,
        Self::Resource,
        Self::Selector,
        Self::Action,
        Self::Message,
    ];

    /// Returns its name, such as `comparison`.
    ///
    /// ```
    /// use admit_analysis::mutate::Operator;
    ///
    /// assert_eq!(Operator::Presence.as_str(), "has");
    /// assert!(Operator::ALL.iter().all(|operator| !operator.as_str().is_empty()));
    /// ```
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comparison => "comparison",
            Self::Logic => "logic",
            Self::Negation => "negation",
            Self::Clause => "clause",
            Self::Presence => "has",
            Self::Constant => "constant",
            Self::Quantifier => "quantifier",
            Self::Operation => "operation",
            Self::Resource => "resource",
            Self::Selector => "selector",
            Self::Action => "action",
            Self::Message => "message",
        }
    }
}

/// What a change can affect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Effect {
    /// Whether requests are denied.
    Verdict,
    /// The texts of answers: messages, audit annotations.
    Said,
    /// The objects that mutations produce.
    Object,
}

/// One small change of a document. [`mutants`](super::mutants) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutant {
    /// What kind of change it is.
    pub operator: Operator,
    /// The field that is changed, such as `spec.validations[0].expression`.
    pub field: String,
    /// The changed part of the expression; None for fields that hold no expression.
    pub span: Option<Span>,
    /// The changed part before the change.
    pub was: String,
    /// The changed part after the change; empty where it is removed.
    pub becomes: String,
    /// JSON pointer of the field.
    pub(super) pointer: String,
    /// The new value of the field; None where it is removed.
    pub(super) value: Option<Value>,
    pub(super) effect: Effect,
}

impl Mutant {
    /// Returns the document with the change applied.
    #[must_use]
    pub fn of(&self, document: &Value) -> Value {
        let mut changed = document.clone();
        match &self.value {
            Some(value) => {
                if let Some(place) = changed.pointer_mut(&self.pointer) {
                    place.clone_from(value);
                }
            }
            None => remove(&mut changed, &self.pointer),
        }
        changed
    }

    /// Returns the expression before the change; None where the field holds no expression.
    #[must_use]
    pub fn expression<'d>(&self, document: &'d Value) -> Option<&'d str> {
        self.span.and_then(|_| document.pointer(&self.pointer)).and_then(Value::as_str)
    }

    /// Returns the expression's identity and new text; None where the change is of another kind.
    pub(super) fn text(&self, document: &Value) -> Option<(ExpressionId, &str)> {
        self.span?;
        let text = self.value.as_ref()?.as_str()?;
        let of = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
        let name = of("/metadata/name")?;
        let origin = match document.get("kind").and_then(Value::as_str)? {
            "ValidatingAdmissionPolicy" => Origin::Policy { name },
            "MutatingAdmissionPolicy" => Origin::Mutating { name },
            "CustomResourceDefinition" => {
                let at = self.pointer.strip_prefix("/spec/versions/")?.split('/').next()?;
                Origin::Definition { name, version: of(&format!("/spec/versions/{at}/name"))? }
            }
            _ => return None,
        };
        Some((ExpressionId { origin, path: self.field.clone() }, text))
    }

    /// Reports whether it can only affect requests that this validating policy decides.
    pub(super) fn is_within_policy(&self) -> bool {
        const LISTS: [&str; 3] = ["/spec/variables/", "/spec/validations/", "/spec/auditAnnotations/"];
        LISTS.iter().any(|list| self.pointer.starts_with(list))
    }

    /// Reports whether an expression is changed, rather than match criteria.
    #[must_use]
    pub const fn is_of_expression(&self) -> bool {
        self.span.is_some()
    }
}

pub(super) fn remove(document: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    match document.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(at) = key.parse().ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        _ => {}
    }
}

/// A place in a document, as a JSON pointer and as a field path.
#[derive(Clone, Debug)]
pub(super) struct Place<'d> {
    pub(super) pointer: String,
    pub(super) field: String,
    pub(super) value: &'d Value,
}

impl<'d> Place<'d> {
    pub(super) const fn root(value: &'d Value) -> Self {
        Self { pointer: String::new(), field: String::new(), value }
    }

    /// Returns a member of this object. Its name must not need brackets in a field path.
    pub(super) fn child(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name)?;
        let dot = if self.field.is_empty() { "" } else { "." };
        Some(Self { pointer: self.deeper(name), field: format!("{}{dot}{name}", self.field), value })
    }

    pub(super) fn descend(&self, names: &[&str]) -> Option<Self> {
        names.iter().try_fold(self.clone(), |place, name| place.child(name))
    }

    /// Returns the items of a list, or the members of a map.
    pub(super) fn parts(&self) -> Vec<Self> {
        let one = |key: &str, value: &'d Value| Self {
            pointer: self.deeper(key),
            field: format!("{}[{key}]", self.field),
            value,
        };
        match self.value {
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, item)| one(&at.to_string(), item)).collect()
            }
            Value::Object(map) => map.iter().map(|(key, value)| one(key, value)).collect(),
            _ => Vec::new(),
        }
    }

    fn deeper(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1"))
    }

    /// Returns the mutant that removes this message.
    pub(super) fn unsaid(&self) -> Mutant {
        Mutant { effect: Effect::Said, ..self.dropped(Operator::Message) }
    }

    /// Returns the mutant that removes this field.
    pub(super) fn dropped(&self, operator: Operator) -> Mutant {
        self.changed(operator, None)
    }

    /// Returns the mutant that sets this field to `value`.
    pub(super) fn replaced(&self, operator: Operator, value: Value) -> Mutant {
        self.changed(operator, Some(value))
    }

    fn changed(&self, operator: Operator, value: Option<Value>) -> Mutant {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        Mutant {
            operator,
            field: self.field.clone(),
            span: None,
            was: shown(self.value),
            becomes: value.as_ref().map(shown).unwrap_or_default(),
            pointer: self.pointer.clone(),
            value,
            effect: Effect::Verdict,
        }
    }
}
