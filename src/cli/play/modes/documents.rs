//! Parses the contents of the panes, and reports every mistake with its position.

use admit_apimachinery::field_error::FieldError;
use admit_policy::manifest::Document;
use admit_policy::{Expression, ExpressionId, Recorded};
use indexmap::IndexMap;
use serde_json::Value;

use super::super::answer::{Mistake, Place, Shown};
use super::super::request::Texts;
use super::super::shown;
use crate::cli::load;

/// Parses all documents of `panes`, each with its pane as its file.
pub(super) fn of_panes(texts: &Texts, panes: &[&str]) -> Result<Vec<Document>, Vec<Mistake>> {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for pane in panes {
        match load::parse(pane, texts.get(pane)) {
            Ok(found) => documents.extend(found),
            Err(found) => mistakes.extend(found.into_iter().map(Mistake::from)),
        }
    }
    if mistakes.is_empty() { Ok(documents) } else { Err(mistakes) }
}

/// Parses the document of a pane, which may be empty but holds at most one.
pub(super) fn one(texts: &Texts, pane: &str) -> Result<Option<Document>, Vec<Mistake>> {
    let mut documents = of_panes(texts, &[pane])?.into_iter();
    let (first, second) = (documents.next(), documents.next());
    match second {
        Some(second) => Err(vec![Mistake::of_field(&second, "", "one object is expected here")]),
        None => Ok(first),
    }
}

/// Compiles the document of a pane.
pub(super) fn compiled<T>(
    document: Option<Document>,
    pane: &str,
    compile: fn(&Value) -> Result<T, Vec<FieldError>>,
) -> Result<(Document, T), Vec<Mistake>> {
    let Some(document) = document else {
        return Err(vec![Mistake::of_pane(pane, "write a configuration, or choose an example")]);
    };
    match compile(&document.value) {
        Ok(compiled) => Ok((document, compiled)),
        Err(errors) => Err(errors.iter().map(|error| document.error(error).into()).collect()),
    }
}

/// Returns the expressions of one document, with what was recorded of their evaluation.
pub(super) fn of_document<'e>(
    document: &Document,
    expressions: impl IntoIterator<Item = Expression<'e>>,
    recorded: &IndexMap<ExpressionId, Recorded>,
) -> (Vec<Shown>, String) {
    shown::all(expressions, recorded, |id| (String::new(), Some(Place::of(document, &id.path))))
}

/// Combines two results: both values, or the mistakes of both.
pub(super) fn both<A, B>(
    left: Result<A, Vec<Mistake>>,
    right: Result<B, Vec<Mistake>>,
) -> Result<(A, B), Vec<Mistake>> {
    match (left, right) {
        (Ok(left), Ok(right)) => Ok((left, right)),
        (Err(mut left), Err(right)) => {
            left.extend(right);
            Err(left)
        }
        (Err(mistakes), Ok(_)) | (Ok(_), Err(mistakes)) => Err(mistakes),
    }
}
