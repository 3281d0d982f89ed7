//! What the page is told: everything that it shows, so that its script only draws.

use admit_policy::manifest::{Document, LoadError, Position};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// The answer to one question. What there is nothing of is left out.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    /// What is wrong with the texts; nothing was decided then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mistakes: Vec<Mistake>,
    /// What the server says of the object, field by field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Mistake>,
    /// The `Status` that a client gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub(super) audit_annotations: IndexMap<String, String>,
    /// What each rule of policies said, or each webhook's conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changed: Option<Changed>,
    /// The value of a single expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) expressions: Vec<Shown>,
    /// What the expressions of each document cost together, beside what they may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) budgets: Vec<Budget>,
    /// How many expressions and branches were reached, as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) coverage: String,
    /// What else is to be known: who was not asked, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

/// The outcome as a word, and as a sentence.
#[derive(Debug, Default, Serialize)]
pub(super) struct Verdict {
    pub(super) outcome: String,
    pub(super) text: String,
}

/// A sentence about a place in a pane.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Mistake {
    pub(super) message: String,
    /// In Kubernetes' notation; empty for the text as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) place: Option<Place>,
}

/// A place in a pane; lines and columns count from 1.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    pub(super) field: String,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The object as policies changed it.
#[derive(Debug, Serialize)]
pub(super) struct Changed {
    pub(super) object: String,
    pub(super) difference: Vec<String>,
}

/// One expression, with what it did.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    /// Whose expression it is: `policy a`, `version v1`.
    pub(super) of: String,
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<Place>,
    /// Its text in parts, its cost, and what did not happen in it.
    #[serde(flatten)]
    pub(super) coverage: Value,
    /// The evaluations with the value of every part.
    pub(super) traces: Vec<Value>,
}

/// What expressions cost together, as a bar.
#[derive(Debug, Serialize)]
pub(super) struct Budget {
    /// Of what: `policy a: validations and messages`.
    pub(super) of: String,
    pub(super) cost: u64,
    pub(super) limit: u64,
    /// The share of the limit on a logarithmic scale.
    pub(super) percent: f64,
    /// It ran out: what came after was not evaluated.
    pub(super) exceeded: bool,
}

impl Answer {
    /// An outcome and its sentence.
    pub(super) fn of(outcome: &str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict { outcome: outcome.to_owned(), text: text.into() }, ..Self::default() }
    }

    /// Nothing is decided by texts that have mistakes.
    pub(super) fn mistaken(mistakes: Vec<Mistake>) -> Self {
        let text = match mistakes.len() {
            1 => "nothing is decided: there is a mistake".to_owned(),
            many => format!("nothing is decided: there are {many} mistakes"),
        };
        Self { mistakes, ..Self::of("mistake", text) }
    }
}

impl Mistake {
    /// At the beginning of a pane.
    pub(super) fn of_pane(pane: &str, message: impl Into<String>) -> Self {
        let place = Place { field: pane.to_owned(), line: 1, column: 1 };
        Self { message: message.into(), path: String::new(), place: Some(place) }
    }

    /// At a field of a document that a pane holds.
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
    /// Where `path` stands in a document, whose file is its pane.
    pub(super) fn of(document: &Document, path: &str) -> Self {
        Self { field: document.file.to_string(), ..Self::at(document.position(path)) }
    }

    fn at(position: Position) -> Self {
        Self { field: String::new(), line: position.line.max(1), column: position.column.max(1) }
    }
}
