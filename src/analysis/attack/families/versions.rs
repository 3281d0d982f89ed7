//! Family `versions`: sends the same object in another version or group that serves its resource.
//!
//! The effect is the same where the object, converted back, has the denied value in its own place.

use admit_policy::{GroupVersionResource, Host as _, Operation};

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::scene::{Answer, Neighbour, Scene, of};

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let own = scene.base.kind();
    let host = scene.judge.documents();
    for served in scene.types.of_plural(&scene.base.resource.resource) {
        let is_other = served.kind.kind == own.kind && served.kind != own && !(scene.over)();
        if !is_other || scene.base.operation == Operation::Connect {
            continue;
        }
        let Ok(object) = host.convert(scene.object, &served.kind) else { continue };
        let old = match scene.base.old_object.as_ref().map(|old| host.convert(old, &served.kind)) {
            Some(Ok(old)) => Some(old),
            Some(Err(_)) => continue,
            None => None,
        };
        let resource =
            GroupVersionResource::new(&*served.kind.group, &*served.kind.version, served.plural.as_str());
        let ask = Ask { object: Some(object), old_object: old, resource, ..scene.base.clone() };
        let judged = scene.judge.ask(&ask);
        let back = judged.object.as_ref().and_then(|object| host.convert(object, &own).ok());
        let is_kept = back.is_some_and(|object| scene.offence.is_at(&object, &scene.offence.path));
        if is_kept && of(&judged) == Answer::Admitted {
            let version = served.kind.api_version();
            let what = format!("what is denied in {} is admitted in {version}", own.api_version());
            out.push(Neighbour { family: Family::Versions, path: version, what, ask, first: None });
        }
    }
}
