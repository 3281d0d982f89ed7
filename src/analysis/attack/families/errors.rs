//! Family `errors`: makes an expression fail, which the policy ignores because its failurePolicy is Ignore.
//!
//! The effect is the same where the denied value is unchanged, and an expression fails because of something else in the object.

use admit_policy::FailurePolicy;
use serde_json::{Value, json};

use super::super::finding::Family;
use super::super::path::{Path, expand};
use super::super::scene::{Neighbour, Scene};

/// The maximum number of changes to try.
const MOST_TRIED: usize = 120;

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    if scene.judge.policy.failure_policy != FailurePolicy::Ignore {
        return;
    }
    let reads = [&scene.rules.validations, &scene.rules.conditions];
    let patterns: std::collections::BTreeSet<&Vec<String>> =
        reads.iter().flat_map(|reads| reads.paths()).collect();
    let mut tried = 0_usize;
    for pattern in patterns {
        let mut places = expand(pattern, scene.object);
        // Their parents may be removed, too.
        let around: Vec<Path> = places
            .iter()
            .filter_map(|path| path.0.len().checked_sub(1).map(|length| path.prefix(length)))
            .collect();
        places.extend(around);
        for path in places {
            let own = &scene.offence.path;
            if path.0.is_empty() || path.starts_with(own) || own.starts_with(&path) {
                continue;
            }
            for change in changes(scene.object, &path) {
                tried = tried.saturating_add(1);
                if tried > MOST_TRIED || (scene.over)() {
                    return;
                }
                if let Some(found) = erring(scene, &path, change) {
                    out.push(found);
                    return;
                }
            }
        }
    }
    out.extend(emptied(scene));
}

/// Returns the object without optional fields, if the offence is a missing field.
fn emptied(scene: &Scene<'_>) -> Option<Neighbour> {
    let own = &scene.offence.path;
    let length = own.0.len().checked_sub(1).filter(|length| scene.offence.value.is_none() && *length > 0)?;
    let around = own.prefix(length);
    let mut object = scene.object.clone();
    around.remove(&mut object).then_some(())?;
    erring_with(scene, &around, object)
}

fn changes(object: &Value, path: &Path) -> Vec<Option<Value>> {
    match path.get(object) {
        Some(Value::String(_)) => vec![None, Some(json!("")), Some(json!("x"))],
        Some(_) => vec![None],
        None => vec![Some(json!("x")), Some(json!({}))],
    }
}

fn erring(scene: &Scene<'_>, path: &Path, change: Option<Value>) -> Option<Neighbour> {
    let mut object = scene.object.clone();
    let done = match change {
        Some(value) => path.set(&mut object, value),
        None => path.remove(&mut object),
    };
    done.then_some(())?;
    erring_with(scene, path, object)
}

fn erring_with(scene: &Scene<'_>, path: &Path, object: Value) -> Option<Neighbour> {
    let ask = scene.base.with(object);
    let judged = scene.judge.ask(&ask);
    let message = judged.erred.as_ref().filter(|_| judged.admitted && judged.refused.is_none())?;
    let is_kept =
        judged.object.as_ref().is_some_and(|object| scene.offence.is_at(object, &scene.offence.path));
    let what = format!("the policy fails, which is ignored: {message}");
    is_kept.then(|| Neighbour { family: Family::Errors, path: path.to_string(), what, ask, first: None })
}
