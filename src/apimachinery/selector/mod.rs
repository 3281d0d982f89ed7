//! Parses label and field selectors, in documents and as text, with Kubernetes' error messages, and matches them against labels.

mod field;
mod parse;

use std::collections::HashSet;

use serde_json::Value;

pub use field::{FieldSelectorError, FieldTerm, field_terms};
pub use parse::SelectorError;

/// From this length on, lists are searched with a hash set, since listing many objects searches them often.
const LONG: usize = 16;

/// A label selector: conditions that must all hold. An empty one selects everything.
///
/// ```
/// use admit_apimachinery::selector::LabelSelector;
/// use serde_json::json;
///
/// let selector = LabelSelector::parse("app in (till, shop), !old")?;
/// assert!(selector.matches_labels_of(Some(&json!({"metadata": {"labels": {"app": "till"}}}))));
/// assert!(!selector.matches_labels_of(None));
/// # Ok::<(), admit_apimachinery::selector::SelectorError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// A condition on one label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// How its value is compared.
    pub operator: SelectorOperator,
    /// The values: none for `Exists` and `DoesNotExist`, one for comparisons.
    pub values: Vec<String>,
    /// The values of a long list; empty otherwise.
    lookup: HashSet<String>,
}

/// How the value of a label is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SelectorOperator {
    /// The value is in the list.
    In,
    /// The value is not in the list, or the label is missing.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The value is a greater integer; only in the text form.
    GreaterThan,
    /// The value is a smaller integer; only in the text form.
    LessThan,
}

impl LabelSelector {
    /// Creates a selector from requirements.
    #[must_use]
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// Parses a text such as `app in (a, b), !old`, and sorts the requirements by key.
    ///
    /// # Errors
    /// When the text is not a label selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(Self::new)
    }

    /// Reads a selector that was validated when it was stored; unknown parts are ignored.
    #[must_use]
    pub fn read(selector: &Value) -> Self {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.map(|(key, value)| {
            let value = value.as_str().unwrap_or_default().to_owned();
            Requirement::new(key.clone(), SelectorOperator::In, vec![value])
        });
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        let expressions = expressions.filter_map(|expression| {
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let operator = SelectorOperator::from_name(&text(expression, "operator"))?;
            Some(Requirement::new(text(expression, "key"), operator, values))
        });
        Self::new(labels.chain(expressions).collect())
    }

    /// Returns the keys of the labels that matter.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|requirement| requirement.key.as_str())
    }

    /// Returns the requirements, all of which must hold.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter()
    }

    /// Whether everything is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels are selected; `label` returns the value of a key.
    pub fn selects<'v>(&self, label: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(label(&requirement.key)))
    }

    /// Whether the `metadata.labels` of `object` are selected; without an object there are no labels.
    #[must_use]
    pub fn matches_labels_of(&self, object: Option<&Value>) -> bool {
        let labels = object.and_then(|object| object.get("metadata")?.get("labels"));
        self.selects(|key| labels?.get(key)?.as_str())
    }
}

impl Requirement {
    /// Creates a requirement; the number of `values` must fit the operator.
    #[must_use]
    pub fn new(key: String, operator: SelectorOperator, values: Vec<String>) -> Self {
        let lookup = if values.len() < LONG { HashSet::new() } else { values.iter().cloned().collect() };
        Self { key, operator, values, lookup }
    }

    /// Whether the requirement holds for the value of the label; None if it is missing.
    #[must_use]
    pub fn holds(&self, value: Option<&str>) -> bool {
        match self.operator {
            SelectorOperator::In => value.is_some_and(|value| self.lists(value)),
            // A missing label is in no list.
            SelectorOperator::NotIn => !value.is_some_and(|value| self.lists(value)),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
            SelectorOperator::GreaterThan => self.compared(value).is_some_and(|(value, bound)| value > bound),
            SelectorOperator::LessThan => self.compared(value).is_some_and(|(value, bound)| value < bound),
        }
    }

    fn lists(&self, value: &str) -> bool {
        match self.lookup.is_empty() {
            true => self.values.iter().any(|listed| listed == value),
            false => self.lookup.contains(value),
        }
    }

    /// Returns the value and the bound, if both are integers.
    fn compared(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl SelectorOperator {
    /// Returns the operator with this name in documents.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_documents_select_alike() {
        let listed: Vec<String> = (0..LONG).map(|number| number.to_string()).collect();
        let long = format!("a in ({})", listed.join(","));
        let document = |operator: &str, values: &[String]| {
            LabelSelector::read(&serde_json::json!({
                "matchExpressions": [{"key": "a", "operator": operator, "values": values}]
            }))
        };
        let one = ["1".to_owned()];
        for (text, document) in [
            ("a=1", document("In", &one)),
            ("a!=1", document("NotIn", &one)),
            ("a", document("Exists", &[])),
            ("!a", document("DoesNotExist", &[])),
            (&long, document("In", &listed)),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            for value in [None, Some("1"), Some("15"), Some("16"), Some("")] {
                assert_eq!(selector.selects(|_| value), document.selects(|_| value), "{text} {value:?}");
            }
        }
        let repeated = LabelSelector::parse("a in (2,1,2)").unwrap();
        assert_eq!(repeated.requirements().next().unwrap().values, ["1", "2"], "each once, in order");
        let between = LabelSelector::parse("a>1,a<3").unwrap();
        let selected =
            [None, Some("1"), Some("2"), Some("3"), Some("two")].map(|value| between.selects(|_| value));
        assert_eq!(selected, [false, false, true, false, false]);
    }
}
