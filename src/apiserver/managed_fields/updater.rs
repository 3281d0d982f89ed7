//! Computes field ownership after a change: the core of server-side apply, without names, times or last-applied
//! annotations.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::Value;

use super::ApplyError;
use super::conflict::Conflicts;
use super::managers::{Manager, Managers, Owned};
use super::path::FieldSet;
use super::typed::{Comparison, Duplicates, Problems, Typing, same};

/// The versions of an object. A manager owns fields in the version of its last write.
pub trait Versions: Debug {
    /// Returns the types of fields in a version; None if the version is not served.
    fn typing(&self, api_version: &str) -> Option<Typing<'_>>;

    /// Whether managers of this version, which is not served, are dropped. Otherwise the object cannot be converted to their
    /// version, and its fields are no longer tracked at all.
    fn forgets(&self, api_version: &str) -> bool;

    /// Whether fields that are reset in one version are reset in all others too.
    fn resets_alike(&self) -> bool {
        true
    }

    /// Converts the object to another served version.
    fn convert<'v>(&self, object: &'v Value, api_version: &str) -> Cow<'v, Value>;

    /// Returns an object of the kind without any fields.
    fn empty(&self, api_version: &str) -> Value;
}

/// Context of a change: the version that it is made in, and how fields count.
#[derive(Clone, Copy)]
pub(super) struct Updater<'u> {
    pub(super) versions: &'u dyn Versions,
    pub(super) api_version: &'u str,
    pub(super) typing: Typing<'u>,
    /// Fields that this endpoint cannot change (such as the status through the main resource), and that managers do not get
    /// from it.
    pub(super) ignored: &'u FieldSet,
    /// Whether `ignored` applies to all versions, and not only to that of the change.
    pub(super) ignores_in_all: bool,
    /// Fields that count as changed although their values are equal.
    pub(super) rewritten: &'u FieldSet,
}

/// A merged object, and its managers.
pub(super) struct Merged {
    /// None when the configuration changes nothing.
    pub(super) object: Option<Value>,
    pub(super) managers: Managers,
}

/// Why ownership cannot be computed in the version of one of the managers.
#[derive(Debug, thiserror::Error)]
pub(super) enum Untracked {
    #[error("request to convert CR to an invalid group/version: {0}")]
    NoVersion(String),
    #[error("{0}")]
    Unfit(Problems),
    #[error("failed to convert new object: {0}")]
    NewUnfit(Problems),
    #[error("failed to prune fields: failed to convert merged object to last applied version: {0}")]
    MergedUnfit(Problems),
}

impl From<Untracked> for ApplyError {
    fn from(why: Untracked) -> Self {
        Self::Untyped(why.to_string())
    }
}

impl Updater<'_> {
    /// Removes the fields that `new` changes from the sets of their managers. Returns the remaining managers, and the fields
    /// that were removed.
    ///
    /// # Errors
    /// An object does not fit the schema of a manager's version.
    pub(super) fn update(
        &self,
        live: &Value,
        new: &Value,
        managers: Managers,
    ) -> Result<(Managers, FieldSet), Untracked> {
        let managers = self.reconciled(live, managers)?;
        let mut losses = self.losses(live, new, &managers, None)?;
        let managers = losses.taken_from(managers);
        Ok((managers, losses.changes.remove(self.api_version).unwrap_or_default().changed))
    }

    /// Returns the fields that a manager owns by applying `config`.
    pub(super) fn configured(&self, config: &Value) -> FieldSet {
        self.typing.owned(config).recursive_difference(self.ignored)
    }

    /// Implements server-side apply: merges `config` into `live` for `applier`, who owns `set` by it.
    ///
    /// # Errors
    /// The conflicts with other managers, unless `force` is set, and objects that do not fit the schema of a manager's version.
    pub(super) fn apply(
        &self,
        live: &Value,
        (config, set): (&Value, FieldSet),
        managers: Managers,
        applier: &Manager,
        force: bool,
    ) -> Result<Merged, ApplyError> {
        let mut managers = self.reconciled(live, managers)?;
        let merged = self.typing.merge(live, config);
        let last = managers.remove(applier);
        let time = last.as_ref().and_then(|last| last.time.clone());
        let keeps_all = |last: &Owned| last.api_version == self.api_version && last.set.is_within(&set);
        let dropping = last.filter(|last| !keeps_all(last));
        managers.insert(applier.clone(), Owned { set, api_version: self.api_version.to_owned(), time });
        let new = match dropping {
            Some(last) => self.pruned(merged, &managers, last)?,
            None => merged,
        };
        let mut losses = self.losses(live, &new, &managers, Some(applier))?;
        if !force && losses.are_disputed() {
            let disputed = std::mem::take(&mut losses.disputed);
            if let Some(conflicts) = Conflicts::of(disputed.into_iter()) {
                return Err(ApplyError::Conflicts(conflicts));
            }
        }
        let managers = losses.taken_from(managers);
        // No manager owns the order of items, but a different order is a change.
        let changed = !same(live, &new);
        Ok(Merged { object: changed.then_some(new), managers })
    }

    /// Drops managers of versions that no longer exist, and adapts the sets of the others to the current schema.
    fn reconciled(&self, live: &Value, managers: Managers) -> Result<Managers, Untracked> {
        // Each version is checked once, however many managers there are.
        let mut fitting = BTreeSet::from([self.api_version.to_owned()]);
        let mut reconciled = Managers::new();
        for (manager, owned) in managers {
            let version = &owned.api_version;
            let Some(typing) = self.versions.typing(version) else {
                if self.versions.forgets(version) {
                    continue;
                }
                return Err(Untracked::NoVersion(version.clone()));
            };
            if !fitting.contains(version) {
                unfit(typing, &self.versions.convert(live, version))
                    .map_or(Ok(()), Err)
                    .map_err(Untracked::Unfit)?;
                fitting.insert(version.clone());
            }
            let set = typing.reconciled(owned.set);
            reconciled.insert(manager, Owned { set, ..owned });
        }
        Ok(reconciled)
    }

    /// Returns the fields that each manager except `except` loses by the change.
    fn losses(
        &self,
        live: &Value,
        new: &Value,
        managers: &Managers,
        except: Option<&Manager>,
    ) -> Result<Losses, Untracked> {
        let own = self.change(self.api_version, self.typing.compare(live, new));
        // Each version is compared once, however many managers there are.
        let mut changes = BTreeMap::from([(self.api_version.to_owned(), own)]);
        let mut disputed = BTreeMap::new();
        for (manager, owned) in managers.iter().filter(|(manager, _)| Some(*manager) != except) {
            let version = &owned.api_version;
            let change = match changes.entry(version.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    unknown.insert(self.change(version, self.compare_in(version, live, new)?))
                }
            };
            disputed.insert(manager.clone(), owned.set.intersection(&change.changed));
        }
        Ok(Losses { changes, disputed })
    }

    fn compare_in(&self, api_version: &str, live: &Value, new: &Value) -> Result<Comparison, Untracked> {
        let Some(typing) = self.versions.typing(api_version) else { return Ok(Comparison::default()) };
        let live = self.versions.convert(live, api_version);
        let new = self.versions.convert(new, api_version);
        match unfit(typing, &new) {
            Some(problems) => Err(Untracked::NewUnfit(problems)),
            None => Ok(typing.compare(&live, &new)),
        }
    }

    fn change(&self, api_version: &str, comparison: Comparison) -> Change {
        let modified = comparison.modified.union(self.rewritten.clone());
        let comparison = Comparison { modified, ..comparison };
        Change::of(match self.ignores_in_all || api_version == self.api_version {
            true => comparison.excluding(self.ignored),
            false => comparison,
        })
    }

    /// Removes from `merged` the fields that the applier's last configuration owned and no manager owns now.
    fn pruned(&self, merged: Value, managers: &Managers, last: Owned) -> Result<Value, Untracked> {
        let Some(typing) = self.versions.typing(&last.api_version) else { return Ok(merged) };
        let first = last.api_version.as_str();
        let merged = self.converted(merged, first);
        if let Some(problems) = unfit(typing, &merged).filter(|_| first != self.api_version) {
            return Err(Untracked::MergedUnfit(problems));
        }
        let dropped = typing.with_passed_fields(last.set);
        let left = self.with_owned((&merged, first), Left::Without(Cow::Borrowed(&dropped)), managers);
        // Fields that had no owner before stay.
        let kept = typing.with_passed_fields(left.owned(self, &merged, first));
        drop(left);
        let gone = typing.with_passed_fields(typing.owned(&merged)).intersection(&dropped).difference(&kept);
        drop((dropped, kept));
        Ok(self.converted(typing.without(merged, &gone), self.api_version))
    }

    /// Adds back the fields that managers own, version by version, to what is `left` of `merged`; `first` is its version.
    fn with_owned<'s>(&self, merged: (&Value, &str), mut left: Left<'s>, managers: &Managers) -> Left<'s> {
        let (merged, first) = merged;
        let mut by_version: BTreeMap<&str, Vec<&FieldSet>> = BTreeMap::new();
        for owned in managers.values() {
            by_version.entry(&owned.api_version).or_default().push(&owned.set);
        }
        // The version of the object first: the conversion to others may need fields that were pruned.
        let mut versions: Vec<(&str, Vec<&FieldSet>)> = by_version.into_iter().collect();
        versions.sort_by_key(|(version, _)| *version != first);
        for (version, owned) in versions {
            let Some(typing) = self.versions.typing(version) else { continue };
            let still = typing.with_passed_fields(left.owned(self, merged, version));
            let owned = owned.into_iter().map(|set| typing.with_passed_fields(set.clone()));
            let kept = FieldSet::of_all(std::iter::once(still).chain(owned));
            // The old value is dropped before its replacement is built, so that both are not in memory at once.
            drop(left);
            let seen = self.versions.convert(merged, version);
            let gone = typing.with_passed_fields(typing.owned(&seen)).difference(&kept);
            drop(kept);
            left = match seen {
                _ if version == first => Left::Without(Cow::Owned(gone)),
                seen => Left::Made(typing.without(seen.into_owned(), &gone)),
            };
        }
        left
    }

    fn converted(&self, object: Value, api_version: &str) -> Value {
        let other = match self.versions.convert(&object, api_version) {
            Cow::Owned(other) => Some(other),
            Cow::Borrowed(_) => None,
        };
        other.unwrap_or(object)
    }
}

/// Validates a converted object, in which unlike in a stored one duplicate items are errors too.
fn unfit(typing: Typing<'_>, converted: &Value) -> Option<Problems> {
    Some(typing.problems(converted, Duplicates::Refused)).filter(|problems| !problems.is_empty())
}

/// A merged object after pruning. While it is in its own version only the removed fields are kept, to save a copy.
enum Left<'s> {
    /// The merged object without these fields.
    Without(Cow<'s, FieldSet>),
    Made(Value),
}

impl Left<'_> {
    /// Returns the fields that a manager would own by sending it in `version`.
    fn owned(&self, updater: &Updater<'_>, merged: &Value, version: &str) -> FieldSet {
        let versions = updater.versions;
        let Some(typing) = versions.typing(version) else { return FieldSet::default() };
        let own = merged.get("apiVersion").and_then(Value::as_str);
        match self {
            Self::Without(gone) if own == Some(version) => typing.owned_without(merged, gone),
            Self::Without(gone) => {
                let before = own.and_then(|own| versions.typing(own)).unwrap_or(updater.typing);
                typing.owned(&versions.convert(&before.without(merged.clone(), gone), version))
            }
            Self::Made(left) => typing.owned(&versions.convert(left, version)),
        }
    }
}

/// The fields that managers lose by a change.
struct Losses {
    /// The change, in each version that managers wrote in.
    changes: BTreeMap<String, Change>,
    /// By manager, the owned fields whose values change.
    disputed: BTreeMap<Manager, FieldSet>,
}

/// A change in one version of an object.
#[derive(Default)]
struct Change {
    /// Fields that are changed or added.
    changed: FieldSet,
    /// Fields that are removed, owned or not.
    removed: FieldSet,
}

impl Change {
    fn of(comparison: Comparison) -> Self {
        Self { changed: comparison.modified.union(comparison.added), removed: comparison.removed }
    }
}

impl Losses {
    fn are_disputed(&self) -> bool {
        self.disputed.values().any(|set| !set.is_empty())
    }

    /// Removes the losses from the managers' sets, and drops managers that own nothing.
    fn taken_from(&mut self, managers: Managers) -> Managers {
        let mut left = Managers::new();
        for (manager, owned) in managers {
            let disputed = self.disputed.remove(&manager);
            let change = disputed.as_ref().and_then(|_| self.changes.get(&owned.api_version));
            let set = match (disputed, change) {
                (Some(disputed), Some(change)) => owned.set.difference(&disputed).difference(&change.removed),
                _ => owned.set,
            };
            if !set.is_empty() {
                left.insert(manager, Owned { set, ..owned });
            }
        }
        left
    }
}
