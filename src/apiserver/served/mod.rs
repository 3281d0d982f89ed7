//! Holds a snapshot of everything that is served: the resource table, and the kinds of custom resources.

mod custom;
mod scale;

use std::collections::HashMap;
use std::sync::Arc;

use admit_policy::crd::CompiledCrd;

pub(crate) use self::custom::{CustomKind, CustomVersion, compiled};
pub(crate) use self::scale::ScalePaths;

use crate::resources::{ResourceInfo, ResourceTable, builtin_rows};

#[derive(Debug)]
pub(crate) struct Served {
    pub table: Arc<ResourceTable>,
    /// The custom kinds by group and plural.
    custom: HashMap<(String, String), Arc<CustomKind>>,
}

impl Served {
    pub(crate) fn builtin() -> Self {
        Self { table: Arc::new(ResourceTable::new(builtin_rows(), 0)), custom: HashMap::new() }
    }

    pub(crate) fn with_custom(kinds: Vec<Arc<CustomKind>>, generation: u64) -> Self {
        let mut rows = builtin_rows();
        let mut custom = HashMap::with_capacity(kinds.len());
        for kind in kinds {
            rows.extend(
                kind.versions
                    .iter()
                    .filter(|version| version.served)
                    .map(|version| Arc::clone(&version.info)),
            );
            custom.insert((kind.group.clone(), kind.plural.clone()), kind);
        }
        Self { table: Arc::new(ResourceTable::new(rows, generation)), custom }
    }

    #[must_use]
    pub(crate) fn custom_kind(&self, group: &str, plural: &str) -> Option<&Arc<CustomKind>> {
        self.custom.get(&(group.to_owned(), plural.to_owned()))
    }

    /// Returns the definitions of custom resources that compile.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<CompiledCrd>> {
        let versions = self.custom.values().filter_map(|kind| kind.versions.first());
        versions.filter_map(|version| version.compiled.as_ref())
    }

    /// Returns the version of a custom resource that `info` describes, if it is one.
    #[must_use]
    pub(crate) fn custom_version(&self, info: &ResourceInfo) -> Option<Arc<CustomVersion>> {
        let kind = self.custom_kind(&info.group, &info.plural)?;
        kind.versions.iter().find(|version| version.info.version == info.version).cloned()
    }
}
