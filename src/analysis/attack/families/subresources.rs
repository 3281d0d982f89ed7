//! Family `subresources`: makes the same change through a subresource, where the server lets it write the field.
//!
//! The effect is the same where the stored object has the denied value in its own place after the write; or where the Scale of the
//! object equals that of the denied one.

use admit_policy::{Builtins, GroupVersionKind};
use serde_json::Value;

use super::super::finding::Family;
use super::super::judge::Judge;
use super::super::scene::{Answer, Neighbour, Scene, of};

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    let kind = scene.base.kind();
    let Some(served) = scene.types.kind(&kind).map(|kind| kind.served) else { return };
    for name in served.subresources.iter().filter(|name| **name != scene.base.subresource) {
        let neighbour = if name == "scale" { scaled(scene) } else { written(scene, name) };
        out.extend(neighbour);
    }
}

fn written(scene: &Scene<'_>, name: &str) -> Option<Neighbour> {
    let path = &scene.offence.path;
    let ask = scene.base.update(scene.before(), scene.object.clone(), name);
    let judged = scene.judge.ask(&ask);
    let object = judged.object.as_ref().filter(|object| scene.offence.is_at(object, path))?;
    // A write that changes nothing has no effect.
    if judged.old_object.as_ref().is_none_or(|old| scene.offence.is_at(old, path))
        || of(&judged) != Answer::Admitted
    {
        return None;
    }
    let what = format!("what is denied at {path} is admitted through {name}");
    let ask = ask.with(object.clone());
    Some(Neighbour { family: Family::Subresources, path: name.to_owned(), what, ask, first: None })
}

fn scaled(scene: &Scene<'_>) -> Option<Neighbour> {
    let (new, old) = (scale(scene.judge, scene.object)?, scale(scene.judge, &scene.before())?);
    if new.get("spec") == old.get("spec") {
        return None;
    }
    let ask = scene.base.update(old, new.clone(), "scale");
    if of(&scene.judge.ask(&ask)) != Answer::Admitted {
        return None;
    }
    let replicas = new.pointer("/spec/replicas").cloned().unwrap_or_default();
    let what =
        format!("{replicas} replicas are denied at {}, and admitted through scale", scene.offence.path);
    Some(Neighbour { family: Family::Subresources, path: "scale".to_owned(), what, ask, first: None })
}

fn scale(judge: &Judge<'_>, object: &Value) -> Option<Value> {
    let documents = judge.documents();
    let kind = GroupVersionKind::of(object);
    let paths =
        documents.crd_of(&kind).and_then(|crd| crd.definition().version(&kind.version)?.scale.as_ref());
    documents.builtins().and_then(|builtins: &dyn Builtins| builtins.scale(object, paths))
}
