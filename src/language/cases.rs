//! Shows test cases of suites in the editor, with what the last run of each evaluated, beside their lines.

use std::collections::BTreeMap;
use std::ops::Range;

use admit_analysis::states::state_env;
use admit_apimachinery::bounded::shorten;
use admit_apimachinery::pointer;
use admit_apimachinery::yaml::Written;
use admit_cel::Type;
use admit_policy::manifest::{Document, LoadError};
use admit_policy::suite::Suite;
use admit_policy::suite::crd::CrdSuite;
use admit_policy::{ExpressionId, Origin, Recorded, RecordedOutcome};
use serde_json::Value;

use crate::file::{File, Good, is_kind};

/// The maximum number of values shown per line.
const MAX_VALUES: usize = 4;
/// The maximum length of a line's values, in bytes.
const MAX_SHOWN: usize = 160;

/// Returns the names of the cases of all suites of a file, each with its byte range.
pub(crate) fn cases(good: &Good) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    for document in &good.documents {
        let lists: &[&[&str]] = if Suite::is(&document.value) {
            &[&["cases"], &["states"]]
        } else if CrdSuite::is(&document.value) {
            &[&["tests", "onCreate"], &["tests", "onUpdate"]]
        } else {
            continue;
        };
        let Some(root) = good.root_of(document) else { continue };
        for list in lists.iter().filter_map(|steps| good.layout.find(root, steps)) {
            for case in good.layout.children(list) {
                let name = good.layout.find(case, &["name"]).and_then(|id| good.layout.spot(id));
                if let Some((spot, style)) = name.and_then(|spot| Some((spot, spot.style?))) {
                    let written = Written::of(good.text.as_str(), spot.value.clone(), style);
                    found.push((written.text().to_owned(), spot.value.clone()));
                }
            }
        }
    }
    found
}

/// Returns the errors of a suite: of its structure, or else of its expressions.
pub(crate) fn mistakes(document: &Document) -> Vec<LoadError> {
    let error = if Suite::is(&document.value) {
        Suite::decode(&document.value).err()
    } else if CrdSuite::is(&document.value) {
        CrdSuite::decode(&document.value).err()
    } else {
        return Vec::new();
    };
    let mistake = |field: &str, message: String| LoadError {
        position: document.position(field),
        field: field.to_owned(),
        ..document.mistake(message)
    };
    if let Some(error) = error {
        return vec![mistake(error.path(), error.to_string())];
    }
    let states = document.value.get("states").and_then(Value::as_array).into_iter().flatten().enumerate();
    let expressions = states.flat_map(|(number, case)| {
        let text = move |key: &str| Some((format!("states[{number}].{key}"), case.get(key)?.as_str()?));
        ["state", "where"].into_iter().filter_map(text)
    });
    let env = state_env(&Type::Dyn);
    expressions.filter_map(|(at, text)| Some(mistake(&at, env.compile(text).err()?.to_string()))).collect()
}

/// Returns the values of expressions in the last run: the byte offset of each line's end, and the values to show there.
pub(crate) fn values(file: &File, last: &[(ExpressionId, Recorded)]) -> Vec<(usize, String)> {
    let Some(good) = file.good.as_ref().filter(|_| file.is_good()) else { return Vec::new() };
    let mut found = Vec::new();
    for (id, recorded) in last {
        let Some(document) = good.documents.iter().find(|document| is_origin(document, &id.origin)) else {
            continue;
        };
        found.extend(of_expression(good, document, id, recorded).unwrap_or_default());
    }
    found
}

fn is_origin(document: &Document, origin: &Origin) -> bool {
    let name = pointer::text(&document.value, "/metadata/name");
    is_kind(document, origin.kind()) && name == origin.name()
}

/// Returns `None` if the expression has changed since.
fn of_expression(
    good: &Good,
    document: &Document,
    id: &ExpressionId,
    recorded: &Recorded,
) -> Option<Vec<(usize, String)>> {
    let trace = recorded.traces.first()?;
    let key = good.text.offset_of(document.position(&id.path));
    let spot = good.layout.spot(good.layout.at(key)?)?;
    let written = Written::of(good.text.as_str(), spot.value.clone(), spot.style?);
    let base = written.text().len().saturating_sub(written.text().trim_start().len());
    if written.text().trim() != recorded.text.trim() {
        return None;
    }
    let base = if recorded.text == written.text() { 0 } else { base };
    let mut lines: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for part in
        trace.parts.iter().filter(|part| part.rounds.is_empty() && !is_on_the_way(part, &recorded.text))
    {
        let text = part.span.of(&recorded.text).split_whitespace().collect::<Vec<_>>().join(" ");
        let value = match &part.outcome {
            Ok(value) => value.clone(),
            Err(error) => format!("error: {error}"),
        };
        let end = written.place(base.saturating_add(part.span.end as usize));
        let line = good.text.position(end).line;
        let shown = format!("{text} = {value}");
        let values = lines.entry(line).or_default();
        // A literal shows nothing new, and a part may occur several times.
        if text != value && !values.contains(&shown) {
            values.push(shown);
        }
    }
    let shown = lines.into_iter().filter(|(_, values)| !values.is_empty()).map(|(line, mut values)| {
        // Later values depend on earlier ones: `a` and `a < b`.
        let first = values.len().saturating_sub(MAX_VALUES);
        let mut text = values.split_off(first).join(", ");
        shorten(&mut text, MAX_SHOWN);
        (good.text.end_of(line), text)
    });
    Some(shown.collect())
}

/// Reports whether a part is an object or list of which only a member is used: that member is shown instead.
fn is_on_the_way(part: &RecordedOutcome, text: &str) -> bool {
    let is_large = part.outcome.as_ref().is_ok_and(|value| value.starts_with(['{', '[']));
    let behind = text.get(part.span.end as usize..).unwrap_or_default();
    is_large && behind.starts_with(['.', '['])
}
