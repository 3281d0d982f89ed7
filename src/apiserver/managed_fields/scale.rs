//! Converts field managers between an object and its Scale, both of which have the number of replicas.

use std::collections::BTreeMap;

use serde_json::Value;

use super::managers::{self, EntryError, Managers, Owned};
use super::path::{Element, FieldSet};

/// The version of a Scale.
pub(crate) const API_VERSION: &str = "autoscaling/v1";

/// For each version of a kind, the path of the number of replicas in an object, which its Scale shows as `spec.replicas`.
/// None for a version without a scale.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replicas {
    paths: BTreeMap<String, Option<Vec<Element>>>,
}

impl<'p> FromIterator<(String, Option<&'p str>)> for Replicas {
    /// Paths are dotted, with a leading dot.
    fn from_iter<I: IntoIterator<Item = (String, Option<&'p str>)>>(versions: I) -> Self {
        let elements = |path: &str| {
            let names = path.trim_start_matches('.').split('.');
            names.map(|name| Element::Field(name.to_owned())).collect()
        };
        Self { paths: versions.into_iter().map(|(version, path)| (version, path.map(elements))).collect() }
    }
}

impl Replicas {
    /// Returns the path of the number of replicas if the manager owns it.
    fn owned_at(&self, owned: &Owned) -> Option<&Vec<Element>> {
        self.paths.get(&owned.api_version)?.as_ref().filter(|path| owned.set.has(path))
    }

    /// Returns the managers of the object's Scale.
    ///
    /// # Errors
    /// The object's entries cannot be read.
    pub(crate) fn of_scale(&self, object: &Value) -> Result<Managers, EntryError> {
        let owners =
            managers::decode(object)?.into_iter().filter(|(_, owned)| self.owned_at(owned).is_some());
        Ok(owners
            .map(|(manager, owned)| {
                let set = [SHOWN.map(|name| Element::Field(name.to_owned()))].into_iter().collect();
                (manager, Owned { set, api_version: API_VERSION.to_owned(), time: owned.time })
            })
            .collect())
    }

    /// Returns the managers of the object after a write of its Scale with the managers of `scale`; `api_version` is the object's.
    /// Managers of unknown versions are dropped. A manager that updated the object and owns the number then has two entries, of
    /// which that of the number no longer counts, as upstream, where entries of other versions belong to other managers.
    ///
    /// # Errors
    /// The entries of either cannot be read.
    pub(crate) fn of_object(
        &self,
        object: &Value,
        scale: &Value,
        api_version: &str,
    ) -> Result<Managers, EntryError> {
        let mut shown = managers::decode(scale)?;
        let mut all = Managers::new();
        for (manager, mut owned) in managers::decode(object)? {
            if !self.paths.contains_key(&owned.api_version) {
                continue;
            }
            if let Some(path) = self.owned_at(&owned)
                && shown.remove(&manager).is_none()
            {
                owned.set = owned.set.difference(&[path.clone()].into_iter().collect());
            }
            if !owned.set.is_empty() {
                all.insert(manager, owned);
            }
        }
        let path = self.paths.get(api_version).and_then(Option::as_ref);
        let number: FieldSet = path.cloned().into_iter().collect();
        for (manager, owned) in shown {
            if owned.set.has(&SHOWN.map(|name| Element::Field(name.to_owned()))) {
                let time = all.get(&manager).and_then(|known| known.time.clone());
                let owned = Owned { set: number.clone(), api_version: api_version.to_owned(), time };
                all.insert(manager, owned);
            }
        }
        Ok(all)
    }
}

/// Path of the number in a Scale.
const SHOWN: [&str; 2] = ["spec", "replicas"];
