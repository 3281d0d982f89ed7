//! Who owns what after a change: the core of server-side apply, without names, times or last-applied annotations.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;

use serde_json::Value;

use super::conflict::Conflicts;
use super::managers::{Manager, Managers, Owned};
use super::path::FieldSet;
use super::typed::{Comparison, Typing, same};

/// The versions in which an object can be seen; managers own fields in the version that they wrote in.
pub trait Versions: Debug {
    /// How objects are typed in a version; None where it is not served.
    fn typing(&self, api_version: &str) -> Option<Typing<'_>>;

    /// Whether managers of this version, which is not served, are only forgotten. Otherwise an object that names one
    /// cannot be converted to it, and nobody is tracked any longer.
    fn forgets(&self, api_version: &str) -> bool;

    /// The object in another version, which is served.
    fn convert(&self, object: &Value, api_version: &str) -> Value;

    /// An object of the kind that says nothing yet.
    fn empty(&self, api_version: &str) -> Value;
}

/// A change in one version of an object.
#[derive(Clone, Copy)]
pub(super) struct Updater<'u> {
    pub(super) versions: &'u dyn Versions,
    pub(super) api_version: &'u str,
    pub(super) typing: Typing<'u>,
    /// What this way of writing cannot change, and therefore not own either.
    pub(super) ignored: &'u FieldSet,
}

/// A merged object, and who owns what in it.
pub(super) struct Merged {
    /// None when the configuration changes nothing.
    pub(super) object: Option<Value>,
    pub(super) managers: Managers,
}

impl Updater<'_> {
    /// Takes what `new` changes from whoever owned it; answers what was taken beside the managers that are left.
    pub(super) fn update(&self, live: &Value, new: &Value, managers: Managers) -> (Managers, FieldSet) {
        let managers = self.reconciled(managers);
        let (losses, comparison) = self.losses(live, new, &managers, None);
        let taken = comparison.modified.union(&comparison.added);
        (lessened(managers, &losses), taken)
    }

    /// Merges `config` into `live` for `applier`.
    ///
    /// # Errors
    /// The conflicts, unless `force` settles them.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: Managers,
        applier: &Manager,
        force: bool,
    ) -> Result<Merged, Conflicts> {
        let mut managers = self.reconciled(managers);
        let merged = self.typing.merge(live, config);
        let last = managers.get(applier).cloned();
        let set = self.typing.owned(config).recursive_difference(self.ignored);
        let time = last.as_ref().and_then(|last| last.time.clone());
        managers.insert(applier.clone(), Owned { set, api_version: self.api_version.to_owned(), time });
        let new = match last {
            Some(last) if !last.set.is_empty() => self.pruned(&merged, &managers, &last),
            _ => merged,
        };
        let (losses, _) = self.losses(live, &new, &managers, Some(applier));
        let disputed = losses.iter().map(|(manager, loss)| (manager.clone(), loss.disputed.clone()));
        if let Some(conflicts) = (!force).then(|| Conflicts::of(disputed)).flatten() {
            return Err(conflicts);
        }
        let managers = lessened(managers, &losses);
        // The order of items is nobody's, but a change all the same.
        let changed = !same(live, &new);
        Ok(Merged { object: changed.then_some(new), managers })
    }

    /// The managers of versions that are served, with sets that fit today's schema.
    fn reconciled(&self, managers: Managers) -> Managers {
        managers
            .into_iter()
            .filter_map(|(manager, owned)| {
                let typing = self.versions.typing(&owned.api_version)?;
                let set = typing.reconciled(owned.set);
                Some((manager, Owned { set, ..owned }))
            })
            .collect()
    }

    /// What the change takes from each manager but `except`, and the change itself in this version.
    fn losses(
        &self,
        live: &Value,
        new: &Value,
        managers: &Managers,
        except: Option<&Manager>,
    ) -> (BTreeMap<Manager, Loss>, Comparison) {
        let own = self.typing.compare(live, new).excluding(self.ignored);
        // Once for each version, however many managers there are.
        let mut by_version = BTreeMap::from([(self.api_version, Rc::new(Change::of(&own)))]);
        let mut losses = BTreeMap::new();
        for (manager, owned) in managers.iter().filter(|(manager, _)| Some(*manager) != except) {
            let change = by_version
                .entry(&owned.api_version)
                .or_insert_with(|| Rc::new(Change::of(&self.compare_in(&owned.api_version, live, new))));
            let disputed = owned.set.intersection(&change.changed);
            losses.insert(manager.clone(), Loss { disputed, change: Rc::clone(change) });
        }
        (losses, own)
    }

    fn compare_in(&self, api_version: &str, live: &Value, new: &Value) -> Comparison {
        let Some(typing) = self.versions.typing(api_version) else { return Comparison::default() };
        let live = self.versions.convert(live, api_version);
        let new = self.versions.convert(new, api_version);
        typing.compare(&live, &new).excluding(self.ignored)
    }

    /// `merged` without what the applier owned by its last configuration and nobody owns now.
    fn pruned(&self, merged: &Value, managers: &Managers, last: &Owned) -> Value {
        let Some(typing) = self.versions.typing(&last.api_version) else { return merged.clone() };
        let merged = self.versions.convert(merged, &last.api_version);
        let dropped = typing.with_passed_fields(&last.set);
        let pruned = typing.without(&merged, &dropped);
        let pruned = self.with_owned(&merged, pruned, managers, &last.api_version);
        // What nobody owned before either stays.
        let kept = typing.with_passed_fields(&typing.owned(&pruned));
        let all = typing.with_passed_fields(&typing.owned(&merged));
        let result = typing.without(&merged, &all.difference(&kept).intersection(&dropped));
        self.versions.convert(&result, self.api_version)
    }

    /// `pruned` with what managers own in `merged`. Both are in version `first`, and so is the result.
    fn with_owned(&self, merged: &Value, pruned: Value, managers: &Managers, first: &str) -> Value {
        let mut by_version: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owned in managers.values() {
            by_version.entry(&owned.api_version).or_default().absorb(&owned.set);
        }
        // The version of the object first: others may need fields that were pruned to be converted to.
        let mut versions: Vec<&str> = by_version.keys().copied().collect();
        versions.sort_by_key(|version| *version != first);
        let mut pruned = pruned;
        for version in versions {
            let (Some(typing), Some(owned)) = (self.versions.typing(version), by_version.get(version)) else {
                continue;
            };
            let merged = self.versions.convert(merged, version);
            let left = self.versions.convert(&pruned, version);
            let all = typing.with_passed_fields(&typing.owned(&merged));
            let left = typing.with_passed_fields(&typing.owned(&left));
            let kept = left.union(&typing.with_passed_fields(owned));
            pruned = typing.without(&merged, &all.difference(&kept));
        }
        self.versions.convert(&pruned, first)
    }
}

/// What a change takes from a manager.
struct Loss {
    /// Owned fields that get another value.
    disputed: FieldSet,
    /// In the manager's version.
    change: Rc<Change>,
}

/// A change in one version of an object.
struct Change {
    /// Fields that get another value, or come.
    changed: FieldSet,
    /// Fields that are gone, owned or not.
    removed: FieldSet,
}

impl Change {
    fn of(comparison: &Comparison) -> Self {
        Self { changed: comparison.modified.union(&comparison.added), removed: comparison.removed.clone() }
    }
}

/// The managers without their losses; who is left with nothing goes.
fn lessened(managers: Managers, losses: &BTreeMap<Manager, Loss>) -> Managers {
    managers
        .into_iter()
        .map(|(manager, owned)| match losses.get(&manager) {
            Some(loss) => {
                let set = owned.set.difference(&loss.disputed).difference(&loss.change.removed);
                (manager, Owned { set, ..owned })
            }
            None => (manager, owned),
        })
        .filter(|(_, owned)| !owned.set.is_empty())
        .collect()
}
