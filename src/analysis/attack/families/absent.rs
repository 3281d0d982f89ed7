//! Family `absent`: omits a field, leaves it empty or null, or writes it out, with the same effect.
//!
//! The field's type says that the effect is the same: an omitted non-pointer field is empty; an empty list, map or object means the
//! same as none; and for some fields the default is known.

use admit_policy::FieldType;
use serde_json::{Value, json};

use super::super::finding::Family;
use super::super::path::{Path, Step};
use super::super::scene::{Answer, Neighbour, Scene, of};
use super::super::types::Kind;

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let path = &scene.offence.path;
    let Some(kind) = scene.types.kind(&scene.base.kind()) else { return };
    match &scene.offence.value {
        Some(value) => {
            let same = kind.at(&path.pattern()).and_then(|(_, field)| field?.absent.as_ref());
            let is_default = same == Some(value);
            // An empty list item still counts as an item.
            let is_item = matches!(path.0.last(), Some(Step::At(_)));
            let is_empty = !is_item && is_nothing(value);
            if is_default || is_empty {
                out.extend(without(
                    scene,
                    path,
                    &format!("{value} is denied there, and leaving it out has the same effect"),
                ));
            }
            if let Some((length, over)) = outer_of_default(scene, kind) {
                let around = path.prefix(length);
                let what = format!("{over} is denied there, and leaving {around} out has the same effect");
                out.extend(without(scene, &around, &what));
            }
        }
        None => {
            for (put, what) in nothings(scene, kind) {
                let mut object = scene.object.clone();
                if !path.set(&mut object, put.clone()) {
                    continue;
                }
                let ask = scene.base.with(object);
                if of(&scene.judge.ask(&ask)) == Answer::Admitted {
                    let what = format!("leaving it out is denied, and {put} {what}");
                    out.push(Neighbour {
                        family: Family::Absent,
                        path: path.to_string(),
                        what,
                        ask,
                        first: None,
                    });
                    break;
                }
            }
            out.extend(shallow(scene, kind));
        }
    }
}

fn without(scene: &Scene<'_>, path: &Path, what: &str) -> Option<Neighbour> {
    let mut object = scene.object.clone();
    if !path.remove(&mut object) {
        return None;
    }
    let ask = scene.base.with(object);
    let judged = scene.judge.ask(&ask);
    // A field that the server defaults again is not absent.
    let is_gone = judged.object.as_ref().is_some_and(|object| path.get(object).is_none());
    (is_gone && of(&judged) == Answer::Admitted).then(|| Neighbour {
        family: Family::Absent,
        path: path.to_string(),
        what: what.to_owned(),
        ask,
        first: None,
    })
}

/// If the denied value equals the default, its parent may be omitted when it contains nothing else.
fn outer_of_default(scene: &Scene<'_>, kind: Kind<'_>) -> Option<(usize, Value)> {
    let path = &scene.offence.path;
    let same = kind.at(&path.pattern()).and_then(|(_, field)| field?.absent.as_ref())?;
    let value = scene.offence.value.as_ref().filter(|value| *value == same)?;
    let length = path.0.len().checked_sub(1)?;
    let around = path.prefix(length);
    let alone = around.get(scene.object)?.as_object().is_some_and(|map| map.len() == 1);
    (alone && matches!(around.0.last(), Some(Step::Name(_)))).then(|| (length, value.clone()))
}

/// Lists values to write for a missing field that have no effect.
fn nothings(scene: &Scene<'_>, kind: Kind<'_>) -> Vec<(Value, &'static str)> {
    const EMPTY: &str = "says no more";
    let Some((of, field)) = kind.at(&scene.offence.path.pattern()) else { return Vec::new() };
    let mut values = match of {
        FieldType::List(_) => vec![(json!([]), EMPTY)],
        FieldType::Map(_) | FieldType::Shape(_) => vec![(json!({}), EMPTY)],
        FieldType::Text | FieldType::OneOf(_) => vec![(json!(""), EMPTY)],
        FieldType::Int
        | FieldType::Int32
        | FieldType::Float
        | FieldType::Bool
        | FieldType::Quantity
        | FieldType::IntOrText
        | FieldType::Time
        | FieldType::Bytes
        | FieldType::Other => Vec::new(),
    };
    values.push((Value::Null, EMPTY));
    if let Some(same) = field.and_then(|field| field.absent.clone()) {
        values.push((same, "has the same effect"));
    }
    values
}

/// Adds an empty parent object around the missing field.
fn shallow(scene: &Scene<'_>, kind: Kind<'_>) -> Option<Neighbour> {
    let path = &scene.offence.path;
    let length = (1..path.0.len()).find(|length| path.prefix(*length).get(scene.object).is_none())?;
    for length in length..path.0.len() {
        let around = path.prefix(length);
        if !matches!(kind.at(&around.pattern()), Some((FieldType::Shape(_) | FieldType::Map(_), _))) {
            continue;
        }
        let mut object = scene.object.clone();
        if !around.set(&mut object, json!({})) {
            continue;
        }
        let ask = scene.base.with(object);
        if of(&scene.judge.ask(&ask)) == Answer::Admitted {
            let what = format!("leaving {around} out is denied, and {{}} says no more");
            return Some(Neighbour {
                family: Family::Absent,
                path: around.to_string(),
                what,
                ask,
                first: None,
            });
        }
    }
    None
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
