//! Family `labels`: sets a label or annotation that exempts the object from an objectSelector, a match condition, or a rule.
//!
//! The effect is the same where the denied value is unchanged and is not itself a label or annotation.

use serde_json::{Value, json};

use super::super::finding::Family;
use super::super::path::Path;
use super::super::scene::{Neighbour, Scene};

/// The maximum number of labels to try per request.
const MOST_TRIED: usize = 60;

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    if scene.is_of_marks() {
        return;
    }
    for selector in scene.selectors {
        for requirement in &selector.objects {
            let path = Path::of_names(["metadata", "labels", requirement.key.as_str()]);
            let value = requirement.missed().map(Value::from);
            out.extend(marked(scene, &path, value, &format!("{}.objectSelector", selector.resources)));
        }
    }
    let mut tried = 0_usize;
    for mark in scene.rules.marks() {
        let path = Path::of_names(mark.iter().map(String::as_str));
        let constants = scene.rules.compared_anywhere(&mark).into_iter().filter(Value::is_string);
        let literals = scene.rules.literals.iter().filter(|value| value.is_string()).cloned();
        let others = ["true", "x"].map(|text| json!(text));
        for value in std::iter::once(None).chain(constants.chain(others).chain(literals).map(Some)) {
            tried = tried.saturating_add(1);
            if tried > MOST_TRIED || (scene.over)() {
                return;
            }
            let found = marked(scene, &path, value, "a rule or condition of the policy");
            if let Some(found) = found {
                out.push(found);
                break;
            }
        }
    }
}

/// Returns the request with a label or annotation set or removed.
fn marked(scene: &Scene<'_>, path: &Path, value: Option<Value>, seen_by: &str) -> Option<Neighbour> {
    let mut object = scene.object.clone();
    let what = match &value {
        Some(value) => {
            path.set(&mut object, value.clone()).then_some(())?;
            format!("{path}: {value} is set by the requester, and takes it out of sight of {seen_by}")
        }
        None => {
            path.remove(&mut object).then_some(())?;
            format!("{path} is left out by the requester, which takes it out of sight of {seen_by}")
        }
    };
    if object == *scene.object {
        return None;
    }
    let mut ask = scene.base.with(object);
    // The selector also matches the old object, so the label changes there, too.
    if let (Some(old), Some(value)) = (&mut ask.old_object, value) {
        path.set(old, value);
    }
    scene.is_admitted(&ask, &scene.offence.path).then(|| Neighbour {
        family: Family::Labels,
        path: path.to_string(),
        what,
        ask,
        first: None,
    })
}
