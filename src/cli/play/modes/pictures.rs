//! Draws which states may follow one another, as `admit states` does.

use admit_policy::LoadOptions;
use serde::Serialize;

use super::super::asked::Asked;
use super::super::request::Texts;
use super::super::work;
use super::documents::{both, of_panes};
use crate::cli::render::states as drawing;
use crate::cli::states::{Drawn, Inputs};

/// One picture.
#[derive(Debug, Serialize)]
pub(in crate::cli::play) struct Picture {
    title: String,
    svg: String,
    /// The same as text.
    text: String,
}

/// Draws each field that rules of `definitions` compare. Empty if what was typed has mistakes, which the answer reports.
pub(super) fn of(texts: &Texts, definitions: &[&str]) -> Vec<Picture> {
    drawn(texts, definitions).unwrap_or_default()
}

fn drawn(texts: &Texts, definitions: &[&str]) -> Option<Vec<Picture>> {
    let documents = of_panes(texts, definitions).ok()?;
    let (objects, asked) = both(of_panes(texts, &["new", "old"]), Asked::read(texts.get("request"))).ok()?;
    let given = objects.into_iter().map(|document| document.value).collect();
    let users = [asked.options.user.username];
    let inputs = Inputs::of(documents, given, &users, LoadOptions::default()).ok()?;
    let pictures = inputs.compared(&work::is_nearly_over).ok()?;
    let picture = |picture: admit_analysis::states::Picture| {
        let title = format!("{} {}: {}", picture.kind.version, picture.kind.kind, picture.subject);
        let drawn = Drawn { pictures: vec![picture], differences: Vec::new() };
        Picture { title, svg: drawing::svg(&drawn), text: drawing::text(&drawn, false) }
    };
    Some(pictures.into_iter().map(picture).collect())
}
