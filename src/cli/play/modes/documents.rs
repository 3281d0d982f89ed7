//! What the panes hold, parsed, with every mistake at its place.

use admit_policy::manifest::Document;

use super::super::answer::Mistake;
use super::super::request::Texts;
use crate::cli::load;

/// The documents of all of `panes`, each with its pane as its file.
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

/// The one document of a pane, if it has any.
pub(super) fn one(texts: &Texts, pane: &str) -> Result<Option<Document>, Vec<Mistake>> {
    let mut documents = of_panes(texts, &[pane])?.into_iter();
    let (first, second) = (documents.next(), documents.next());
    match second {
        Some(second) => Err(vec![Mistake::of_field(&second, "", "one object is expected here")]),
        None => Ok(first),
    }
}

/// What several steps found, or all mistakes of all of them.
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
