//! Label selectors: `matchLabels` and `matchExpressions`, all of which must hold.

use admit_cel::Node;
use serde_json::Value;

/// A compiled LabelSelector. The empty one selects everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One condition on the value of one label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Requirement {
    pub key: String,
    pub operator: SelectorOperator,
    /// Empty for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// The labels that are looked at.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|requirement| requirement.key.as_str())
    }

    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter()
    }

    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// Reads a selector that was found valid when it was stored; what says nothing known is left out.
    #[must_use]
    pub fn read(selector: &Value) -> Self {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.map(|(key, value)| Requirement {
            key: key.clone(),
            operator: SelectorOperator::In,
            values: vec![value.as_str().unwrap_or_default().to_owned()],
        });
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        let expressions = expressions.filter_map(|expression| {
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            Some(Requirement {
                key: text(expression, "key"),
                operator: SelectorOperator::from_name(&text(expression, "operator"))?,
                values: values.filter_map(Value::as_str).map(str::to_owned).collect(),
            })
        });
        Self::new(labels.chain(expressions).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the `metadata.labels` of `object` satisfy every requirement.
    pub fn matches_labels_of(&self, object: Option<&Value>) -> bool {
        self.selects(object.map_or(Node::Null, Node::from_json))
    }

    /// The same of a document as expressions see it; null is an object without labels.
    pub(crate) fn selects(&self, object: Node<'_>) -> bool {
        let labels = labels(object);
        self.requirements.iter().all(|requirement| requirement.holds(labels(&requirement.key)))
    }
}

/// What the labels of an object say of a key.
pub(super) fn labels<'a>(object: Node<'a>) -> impl Fn(&str) -> Option<&'a str> {
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    move |key| match labels?.get(key)? {
        Node::String(value) => Some(value),
        _ => None,
    }
}

impl Requirement {
    pub(super) fn holds(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|listed| listed == value));
        match self.operator {
            SelectorOperator::In => listed(),
            // A label that is absent is in no list.
            SelectorOperator::NotIn => !listed(),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

impl SelectorOperator {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }
}
