//! Family `operations`: reaches the same state by another operation: updates an existing object instead of creating it, or splits a
//! denied update into two.
//!
//! The effect is the same where the stored object has the denied value in its own place; after two updates it equals the object of the
//! denied one. Deleting and recreating an object has other effects than an update and is not tried.

use std::collections::BTreeSet;

use admit_policy::Operation;

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::path::{Path, expand};
use super::super::scene::{Answer, Neighbour, Scene, of};

/// The maximum number of first updates to try.
const MOST_STEPS: usize = 24;

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let path = &scene.offence.path;
    let ask = match scene.base.operation {
        Operation::Create => {
            scene.base.update(scene.offence.mended.clone(), scene.object.clone(), &scene.base.subresource)
        }
        Operation::Update if scene.rules.reads_old() => {
            out.extend(in_two_steps(scene));
            return;
        }
        Operation::Update if scene.base.subresource.is_empty() => {
            Ask { operation: Operation::Create, old_object: None, ..scene.base.clone() }
        }
        Operation::Update | Operation::Delete | Operation::Connect => return,
    };
    if scene.is_admitted(&ask, path) {
        let (denied, admitted) = (scene.base.operation.as_str(), ask.operation.as_str());
        let what = format!("what {denied} is denied for at {path} is admitted by {admitted}");
        out.push(Neighbour { family: Family::Operations, path: admitted.to_owned(), what, ask, first: None });
    }
}

/// Splits a denied update: the first one removes what the rules compare with.
fn in_two_steps(scene: &Scene<'_>) -> Option<Neighbour> {
    let old = scene.base.old_object.as_ref()?;
    let places: BTreeSet<Path> =
        scene.rules.read_of_old().iter().flat_map(|pattern| expand(pattern, old)).collect();
    let there = places.into_iter().filter(|path| !path.0.is_empty() && path.get(old).is_some());
    for path in there.take(MOST_STEPS) {
        if (scene.over)() {
            return None;
        }
        let mut between = old.clone();
        path.remove(&mut between);
        let first = scene.base.update(old.clone(), between, &scene.base.subresource);
        let judged = scene.judge.ask(&first);
        let Some(between) = judged.object.as_ref().filter(|_| of(&judged) == Answer::Admitted) else {
            continue;
        };
        // A field that the server defaults again was not removed.
        if path.get(between).is_some_and(|there| !there.is_null()) {
            continue;
        }
        let ask = scene.base.update(between.clone(), scene.object.clone(), &scene.base.subresource);
        if scene.is_admitted(&ask, &scene.offence.path) {
            let what = format!(
                "the change at {} is denied, and admitted once {path} was taken away",
                scene.offence.path
            );
            let name = format!("UPDATE without {path}");
            return Some(Neighbour { family: Family::Operations, path: name, what, ask, first: Some(first) });
        }
    }
    None
}
