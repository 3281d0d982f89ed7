//! Keeps `managedFields` short: drops paths that every object has, and merges the entries of the oldest updaters.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::managers::{Manager, Managers, Operation, Owned};
use super::path::{Element, FieldSet};

/// Beyond this number of updaters the oldest are merged.
const MAX_UPDATERS: usize = 10;
/// The manager that replaces the merged ones.
const ANCIENT: &str = "ancient-changes";

/// Fields of `metadata` that the server sets or that name the object.
const COMMON: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Paths that every object has.
static OF_ALL: LazyLock<FieldSet> = LazyLock::new(|| {
    let field = |name: &str| Element::Field(name.to_owned());
    let of_all = ["apiVersion", "kind", "metadata"].map(|name| vec![field(name)]);
    of_all.into_iter().chain(COMMON.map(|name| vec![field("metadata"), field(name)])).collect()
});

/// Removes the paths that every object has.
#[must_use]
pub(super) fn without_common(set: FieldSet) -> FieldSet {
    set.difference(&OF_ALL)
}

/// Removes the paths that every object has from the entry of `writer`, and the entry if it is empty then.
#[must_use]
pub(super) fn stripped(mut managers: Managers, writer: &Manager) -> Managers {
    if let Some(owned) = managers.remove(writer) {
        let set = without_common(owned.set);
        if !set.is_empty() {
            managers.insert(writer.clone(), Owned { set, ..owned });
        }
    }
    managers
}

/// Merges the oldest updaters of each version into one entry when there are too many.
#[must_use]
pub(super) fn capped(mut managers: Managers) -> Managers {
    let mut updaters: Vec<(Option<String>, Manager)> = managers
        .iter()
        .filter(|(manager, _)| manager.operation == Operation::Update)
        .map(|(manager, owned)| (owned.time.clone(), manager.clone()))
        .collect();
    updaters.sort();
    let mut left = updaters.len();
    let mut first: BTreeMap<String, Manager> = BTreeMap::new();
    let mut joined: BTreeMap<Manager, Vec<FieldSet>> = BTreeMap::new();
    for (time, manager) in updaters {
        if left <= MAX_UPDATERS {
            break;
        }
        let version = manager.api_version.clone();
        let Some(oldest) = first.get(&version) else {
            first.insert(version, manager);
            continue;
        };
        let bucket = Manager::new(ANCIENT, Operation::Update, &version, "");
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(oldest)
        {
            managers.insert(bucket.clone(), owned);
        }
        let Some(owned) = managers.remove(&manager) else { continue };
        match managers.get_mut(&bucket) {
            Some(old) => {
                (old.api_version, old.time) = (owned.api_version, time);
                joined.entry(bucket).or_default().push(owned.set);
            }
            None => drop(managers.insert(bucket, Owned { time, ..owned })),
        }
        left -= 1;
    }
    // All at once: one by one, each of possibly many sets would walk the union of those before.
    for (bucket, sets) in joined {
        if let Some(owned) = managers.get_mut(&bucket) {
            owned.set = FieldSet::of_all(std::iter::once(std::mem::take(&mut owned.set)).chain(sets));
        }
    }
    managers
}
