//! Translates field managers between an object and its Scale, both of which have the number of replicas.

use serde_json::Value;

use super::managers::{self, EntryError, Manager, Managers, Operation, Owned};
use super::path::{Element, FieldSet};

/// The version that a Scale is in.
pub(crate) const API_VERSION: &str = "autoscaling/v1";

/// The path of the number of replicas in an object, which its Scale shows as `spec.replicas`.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    path: Vec<Element>,
}

impl Replicas {
    /// `path` is dotted, with a leading dot.
    #[must_use]
    pub(crate) fn at(path: &str) -> Self {
        let names = path.trim_start_matches('.').split('.');
        Self { path: names.map(|name| Element::Field(name.to_owned())).collect() }
    }

    /// The managers of the object's Scale.
    ///
    /// # Errors
    /// The object's entries cannot be read.
    pub(crate) fn of_scale(&self, object: &Value) -> Result<Managers, EntryError> {
        let owners = managers::decode(object)?.into_iter().filter(|(_, owned)| owned.set.has(&self.path));
        Ok(owners
            .map(|(manager, owned)| {
                let shown = Owned { set: scale_set(), api_version: API_VERSION.to_owned(), time: owned.time };
                (versioned(&manager, API_VERSION), shown)
            })
            .collect())
    }

    /// The managers of the object when its Scale has those of `scale`; `api_version` is the object's.
    ///
    /// # Errors
    /// The entries of either cannot be read.
    pub(crate) fn of_object(
        &self,
        object: &Value,
        scale: &Value,
        api_version: &str,
    ) -> Result<Managers, EntryError> {
        let replicas: FieldSet = [self.path.clone()].into_iter().collect();
        let mut all = Managers::new();
        for (manager, owned) in managers::decode(object)? {
            let set = owned.set.difference(&replicas);
            if !set.is_empty() {
                all.insert(manager, Owned { set, ..owned });
            }
        }
        for manager in managers::decode(scale)?.into_keys() {
            let own = versioned(&manager, api_version);
            let entry = all.entry(own).or_insert_with(|| Owned {
                set: FieldSet::default(),
                api_version: api_version.to_owned(),
                time: None,
            });
            entry.set = std::mem::take(&mut entry.set).union(replicas.clone());
        }
        Ok(all)
    }
}

fn scale_set() -> FieldSet {
    [["spec", "replicas"].map(|name| Element::Field(name.to_owned()))].into_iter().collect()
}

/// The same manager of an object in another version, which is part of an updater's identity.
fn versioned(manager: &Manager, api_version: &str) -> Manager {
    let api_version = match manager.operation {
        Operation::Apply => String::new(),
        Operation::Update => api_version.to_owned(),
    };
    Manager { api_version, ..manager.clone() }
}
