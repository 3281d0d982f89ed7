//! Family `workloads`: puts the same part into an object of another kind, as the pod template of a Deployment into a StatefulSet.
//!
//! The effect is the same where both kinds have a part of the same type that contains the denied value. Objects that a controller
//! creates from a template are judged too: if those are denied, nothing is evaded.

use admit_policy::{GroupVersionResource, ServedKind, init};
use serde_json::Value;

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::path::{Path, Step};
use super::super::scene::{Answer, Neighbour, Scene};
use super::super::types::{Kind, Place};
use crate::reads::EACH;

/// A type with at least this many fields says enough about its meaning.
const MANY: usize = 6;

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let own_kind = scene.base.kind();
    let Some(own) = scene.types.kind(&own_kind) else { return };
    let parts = parts(scene, own);
    let Some(innermost) = parts.last() else { return };
    let mut others: Vec<(Kind<'_>, Vec<Place>)> =
        scene.types.builtin().map(|kind| (kind, kind.places())).collect();
    let depth = |places: &[Place]| {
        let same = places.iter().filter(|place| place.shape == innermost.shape);
        same.map(|place| place.pattern.len()).min()
    };
    others.retain(|(_, places)| depth(places).is_some());
    let Some(instance) = others.iter().min_by_key(|(_, places)| depth(places)).map(|(kind, _)| kind.served)
    else {
        return;
    };
    // If all created objects are denied, their creator does not matter.
    let of_instance = if instance.kind == own_kind {
        Answer::Denied
    } else {
        others
            .iter()
            .find(|(kind, _)| kind.served.kind == instance.kind)
            .and_then(|(kind, places)| made(scene, &parts, kind.served, places))
            .map_or(Answer::Impossible, |(ask, at)| scene.answer(&ask, &at))
    };
    if of_instance != Answer::Admitted {
        return;
    }
    for (kind, places) in &others {
        if kind.served.kind == own_kind || (scene.over)() {
            continue;
        }
        let Some((ask, at)) = made(scene, &parts, kind.served, places) else { continue };
        if scene.answer(&ask, &at) == Answer::Admitted {
            let name = &kind.served.kind.kind;
            let what = format!("what is denied at {} is admitted in a {name}, at {at}", scene.offence.path);
            out.push(Neighbour { family: Family::Workloads, path: name.clone(), what, ask, first: None });
        }
    }
}

/// A part of the denied object that contains the offence.
struct Part<'p> {
    value: &'p Value,
    shape: usize,
    length: usize,
}

/// Lists the parts, the outermost first.
fn parts<'s>(scene: &'s Scene<'_>, own: Kind<'_>) -> Vec<Part<'s>> {
    let path = &scene.offence.path;
    let all = (1..path.0.len()).filter_map(|length| {
        let prefix = path.prefix(length);
        let pattern = prefix.pattern();
        let is_part = pattern.first().is_some_and(|first| first != "metadata")
            && !pattern.iter().any(|name| name == EACH);
        let shape = own.shape_at(&pattern).filter(|_| is_part)?;
        let is_many = own.fields(shape).len() >= MANY;
        // Template metadata is like that of every object.
        let is_metadata = pattern.last().is_some_and(|last| last == "metadata");
        let value =
            prefix.get(scene.object).filter(|_| (is_many || is_template(own, shape)) && !is_metadata)?;
        Some(Part { value, shape, length })
    });
    // An offence outside of such parts cannot exist in other kinds.
    all.collect()
}

/// Reports whether a part is a template: it has `metadata` and `spec`.
fn is_template(own: Kind<'_>, shape: usize) -> bool {
    let has = |name: &str| own.fields(shape).iter().any(|field| field.name == name);
    has("metadata") && has("spec")
}

/// Builds an object of another kind that contains the outermost part possible.
fn made(scene: &Scene<'_>, parts: &[Part<'_>], served: &ServedKind, places: &[Place]) -> Option<(Ask, Path)> {
    parts.iter().find_map(|part| {
        let same = places
            .iter()
            .filter(|place| place.shape == part.shape && !place.pattern.iter().any(|name| name == EACH));
        let place = same.min_by_key(|place| place.pattern.len())?;
        let target = Path(place.pattern.iter().map(|name| Step::Name(name.clone())).collect());
        let at = target.join(&scene.offence.path.rest(part.length));
        let least = init::least(&served.kind, served.namespaced);
        let resource =
            GroupVersionResource::new(&*served.kind.group, &*served.kind.version, served.plural.as_str());
        for own_wins in [true, false] {
            let mut object = least.clone();
            let mut value = target.get(&least).cloned().unwrap_or(Value::Null);
            overlay(&mut value, part.value, own_wins, 0);
            if !target.set(&mut object, value) || !scene.offence.is_at(&object, &at) {
                continue;
            }
            let mut ask = Ask::creation(object, resource.clone());
            ask.user = scene.base.user.clone();
            ask.existing = scene.base.existing.clone();
            ask.authorizer = scene.base.authorizer.clone();
            if scene.is_possible(&ask) {
                return Some((ask, at));
            }
        }
        None
    })
}

/// Merges one map into another; `over_wins` decides between two scalars.
fn overlay(under: &mut Value, over: &Value, over_wins: bool, depth: usize) {
    const DEEPEST: usize = 3;
    match (under, over) {
        (Value::Object(under), Value::Object(over)) if depth < DEEPEST => {
            for (name, value) in over {
                match under.get_mut(name) {
                    Some(there) => overlay(there, value, over_wins, depth.saturating_add(1)),
                    None => {
                        under.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (under, over) if over_wins || over.is_array() || over.is_object() || under.is_null() => {
            under.clone_from(over);
        }
        _ => {}
    }
}
