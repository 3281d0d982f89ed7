//! Family `siblings`: moves the value to another field of the same type: another list of containers, another probe, a later list item.
//!
//! The effect is the same where the whole value is in the other field, with the denied part, and its own place is clean. For a missing
//! required field, only places that could have the field count: ephemeral containers have no resources, so they need no limits.

use serde_json::Value;

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::path::{Path, Step};
use super::super::scene::{Answer, Neighbour, Scene};
use super::super::types::Kind;
use crate::reads::EACH;

/// The maximum number of places to try per request.
const MOST_TRIED: usize = 120;

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let Some(kind) = scene.types.kind(&scene.base.kind()) else { return };
    let path = &scene.offence.path;
    let places = kind.places();
    let mut tried = 0_usize;
    for length in (1..=path.0.len()).rev() {
        let own = path.prefix(length);
        let pattern = own.pattern();
        let (Some(shape), Some(value)) = (kind.shape_at(&pattern), own.get(scene.object)) else { continue };
        // Metadata identifies the object, and a type with a single field says too little about its meaning.
        if pattern.first().is_some_and(|first| first == "metadata") || kind.fields(shape).len() < 2 {
            continue;
        }
        for place in places.iter().filter(|place| kind.is_alike(shape, place.shape)) {
            if tried >= MOST_TRIED || (scene.over)() {
                return;
            }
            let is_own = place.pattern == pattern;
            if is_own && !matches!(own.0.last(), Some(Step::At(_))) {
                continue;
            }
            let Some(target) = target(&own, &place.pattern, &scene.offence.mended) else { continue };
            tried = tried.saturating_add(1);
            let moved = Moved { kind, own: &own, target, value, shape: place.shape, length };
            out.extend(moved.neighbour(scene));
        }
    }
}

/// A value that is moved to another place.
struct Moved<'m> {
    kind: Kind<'m>,
    own: &'m Path,
    target: Path,
    value: &'m Value,
    shape: usize,
    length: usize,
}

impl Moved<'_> {
    fn neighbour(&self, scene: &Scene<'_>) -> Option<Neighbour> {
        let at = self.target.join(&scene.offence.path.rest(self.length));
        let object = self.placed(scene, self.value, &at)?;
        for ask in asks(scene, self.kind, &object) {
            match scene.answer(&ask, &at) {
                Answer::Impossible => continue,
                Answer::Denied => return None,
                Answer::Admitted => {}
            }
            if scene.offence.value.is_none() && !self.could_comply(scene, &ask, &at) {
                return None;
            }
            let path = if ask.subresource.is_empty() {
                self.target.to_string()
            } else {
                format!("{} through {}", self.target, ask.subresource)
            };
            let what = match &scene.offence.value {
                Some(value) => format!("{value} at {at} is admitted, and at {} denied", scene.offence.path),
                None => format!("nothing at {at} is admitted, and at {} denied", scene.offence.path),
            };
            return Some(Neighbour { family: Family::Siblings, path, what, ask, first: None });
        }
        None
    }

    /// Returns the object with the offence removed from its place and the value in the other one.
    fn placed(&self, scene: &Scene<'_>, value: &Value, at: &Path) -> Option<Value> {
        let mut object = scene.offence.mended.clone();
        let mut value = value.clone();
        if matches!(self.target.0.last(), Some(Step::At(_))) {
            self.rename(&mut value, at);
        }
        self.target.set(&mut object, value).then_some(object)
    }

    /// Names identify list items, so a moved item gets its own.
    fn rename(&self, value: &mut Value, at: &Path) {
        let keys = self.kind.at(&self.target.pattern()).and_then(|(_, field)| field).map(|field| &field.keys);
        for key in keys.into_iter().flatten() {
            let own = self.target.child(Step::Name(key.clone()));
            let is_known = self.kind.fields(self.shape).iter().any(|field| field.name == *key);
            if !is_known || own == *at {
                continue;
            }
            match value.get_mut(key) {
                Some(Value::String(text)) => text.push_str("-x"),
                Some(number @ Value::Number(_)) => {
                    *number = number.as_i64().map_or(1, |number| number.saturating_add(1)).into();
                }
                _ => {}
            }
        }
    }

    /// Reports whether the missing field could be set there: otherwise nobody could require it.
    fn could_comply(&self, scene: &Scene<'_>, ask: &Ask, at: &Path) -> bool {
        let Some(value) = self.own.get(&scene.offence.mended) else { return false };
        let Some(object) = self.placed(scene, value, at) else { return false };
        let judged = scene.judge.ask(&ask.with(object));
        judged.refused.is_none() && judged.object.is_some_and(|object| at.get(&object).is_some())
    }
}

/// Builds the requests that may store the object: by the same operation, else through subresources that write parts of it.
fn asks(scene: &Scene<'_>, kind: Kind<'_>, object: &Value) -> Vec<Ask> {
    let mut asks = vec![scene.base.with(object.clone())];
    let parts = kind.served.subresources.iter().filter(|name| !matches!(name.as_str(), "status" | "scale"));
    asks.extend(parts.map(|name| scene.base.update(scene.offence.mended.clone(), object.clone(), name)));
    asks
}

/// Returns the target of a move: appended to the last list of the pattern, in the same items of outer lists.
fn target(own: &Path, pattern: &[String], object: &Value) -> Option<Path> {
    let (mut here, mut is_same) = (Path::default(), true);
    for (index, name) in pattern.iter().enumerate() {
        let step = if name == EACH {
            let list = here.get(object).and_then(Value::as_array);
            let is_last = index.saturating_add(1) == pattern.len();
            match (own.0.get(index), is_last) {
                (_, true) => Step::At(list.map_or(0, Vec::len)),
                (Some(Step::At(at)), false) if is_same => Step::At(*at),
                _ => Step::At(list.filter(|list| !list.is_empty()).map(|_| 0)?),
            }
        } else {
            is_same &= own.0.get(index) == Some(&Step::Name(name.clone()));
            Step::Name(name.clone())
        };
        here = here.child(step);
    }
    // Map keys are unknown here.
    (!here
        .get(object)
        .is_some_and(|there| there.is_object() && pattern.last().is_some_and(|last| last == EACH)))
    .then_some(here)
}
