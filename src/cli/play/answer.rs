//! Defines the JSON answer that the page draws. It holds everything that is shown, so that the page's script computes nothing.

use admit_policy::manifest::{Document, LoadError, Position};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// The answer to one question. Empty fields are left out of the JSON.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    /// Mistakes in what was typed; nothing was evaluated then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mistakes: Vec<Mistake>,
    /// What the API server reports about the object, field by field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Mistake>,
    /// The `Status` object that a client receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub(super) audit_annotations: IndexMap<String, String>,
    /// The outcome of each rule of the policies, or of each webhook's match conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changed: Option<Changed>,
    /// The value of a single expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) expressions: Vec<Shown>,
    /// The cost of each document's expressions, together with its limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) budgets: Vec<Budget>,
    /// How many expressions and branches were reached, as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) coverage: String,
    /// Further remarks, such as which policies were not evaluated, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

/// The outcome as a word, and as a sentence for people.
#[derive(Debug, Default, Serialize)]
pub(super) struct Verdict {
    pub(super) outcome: String,
    pub(super) text: String,
}

/// A message about a position in a pane.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Mistake {
    pub(super) message: String,
    /// A field path in Kubernetes' notation; empty for the document as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) place: Option<Place>,
}

/// A position in a pane; lines and columns count from 1.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    pub(super) field: String,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The object after policies changed it, with the difference line by line.
#[derive(Debug, Serialize)]
pub(super) struct Changed {
    pub(super) object: String,
    pub(super) difference: Vec<String>,
}

/// One expression with its evaluations.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    /// The owner of the expression: `policy a`, `version v1`.
    pub(super) of: String,
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<Place>,
    /// Its text in parts, its cost, and which branches were not reached.
    #[serde(flatten)]
    pub(super) coverage: Value,
    /// Its evaluations, each with the value of every part.
    pub(super) traces: Vec<Value>,
}

/// The cost of several expressions that share a limit, drawn as a bar.
#[derive(Debug, Serialize)]
pub(super) struct Budget {
    /// What has this cost: `policy a: validations and messages`.
    pub(super) of: String,
    pub(super) cost: u64,
    pub(super) limit: u64,
    /// The share of the limit in percent, on a logarithmic scale.
    pub(super) percent: f64,
    /// Whether the budget was exceeded, so that later expressions were not evaluated.
    pub(super) exceeded: bool,
}

impl Answer {
    /// Creates an answer that has only an outcome and its sentence.
    pub(super) fn of(outcome: &str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict { outcome: outcome.to_owned(), text: text.into() }, ..Self::default() }
    }

    /// Creates an answer that lists mistakes and decides nothing.
    pub(super) fn mistaken(mistakes: Vec<Mistake>) -> Self {
        let text = match mistakes.len() {
            1 => "nothing is decided: there is a mistake".to_owned(),
            many => format!("nothing is decided: there are {many} mistakes"),
        };
        Self { mistakes, ..Self::of("mistake", text) }
    }
}

impl Mistake {
    /// Creates a mistake at the beginning of a pane.
    pub(super) fn of_pane(pane: &str, message: impl Into<String>) -> Self {
        let place = Place { field: pane.to_owned(), line: 1, column: 1 };
        Self { message: message.into(), path: String::new(), place: Some(place) }
    }

    /// Creates a mistake at a field of a pane's document.
    pub(super) fn of_field(document: &Document, path: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), path: path.to_owned(), place: Some(Place::of(document, path)) }
    }
}

impl From<LoadError> for Mistake {
    fn from(LoadError { file, position, field, message }: LoadError) -> Self {
        let place = Place { field: file.to_string(), ..Place::at(position) };
        Self { message, path: field, place: Some(place) }
    }
}

impl Place {
    /// Returns the position of `path` in a document whose file is its pane.
    pub(super) fn of(document: &Document, path: &str) -> Self {
        Self { field: document.file.to_string(), ..Self::at(document.position(path)) }
    }

    fn at(position: Position) -> Self {
        Self { field: String::new(), line: position.line.max(1), column: position.column.max(1) }
    }
}
