//! The same state by another operation: an object that is not let in is changed into what it would have been.
//!
//! It reaches the same where the stored object has what is denied in its own place. Rules about changes deny a change, and not
//! what it leads to: of those nothing is said.

use admit_policy::Operation;

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::scene::{Neighbour, Scene};

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let path = &scene.offence.path;
    let ask = match scene.base.operation {
        Operation::Create => {
            scene.base.update(scene.offence.mended.clone(), scene.object.clone(), &scene.base.subresource)
        }
        Operation::Update if !scene.rules.reads_old() && scene.base.subresource.is_empty() => {
            Ask { operation: Operation::Create, old_object: None, ..scene.base.clone() }
        }
        Operation::Update | Operation::Delete | Operation::Connect => return,
    };
    if scene.is_admitted(&ask, path) {
        let (denied, admitted) = (scene.base.operation.as_str(), ask.operation.as_str());
        let what = format!("what {denied} is denied for at {path} is admitted by {admitted}");
        out.push(Neighbour { family: Family::Operations, path: admitted.to_owned(), what, ask });
    }
}
