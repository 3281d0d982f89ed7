//! Holds a snapshot of all served resources: built-in rows first, then those of established CRDs. It is immutable; the
//! server replaces the whole table when a CRD is added, changed or removed.

use std::collections::HashMap;
use std::sync::Arc;

use super::ResourceInfo;

#[derive(Clone, Debug, Default)]
pub struct ResourceTable {
    rows: Vec<Arc<ResourceInfo>>,
    by_path: HashMap<[String; 3], usize>,
    generation: u64,
}

impl ResourceTable {
    /// `generation` identifies this content: a later table of the same server has a higher one. Of two rows for the same
    /// group, version and plural the first wins.
    #[must_use]
    pub fn new(rows: Vec<Arc<ResourceInfo>>, generation: u64) -> Self {
        let mut by_path = HashMap::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            by_path.entry([row.group.clone(), row.version.clone(), row.plural.clone()]).or_insert(index);
        }
        Self { rows, by_path, generation }
    }

    #[must_use]
    pub fn rows(&self) -> &[Arc<ResourceInfo>] {
        &self.rows
    }

    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Finds the row served at `/apis/GROUP/VERSION/PLURAL` (`group` empty: `/api/VERSION/PLURAL`).
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceInfo>> {
        let key = [group.to_owned(), version.to_owned(), plural.to_owned()];
        self.by_path.get(&key).and_then(|index| self.rows.get(*index))
    }

    #[must_use]
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceInfo>> {
        self.rows.iter().find(|row| row.group == group && row.version == version && row.kind == kind)
    }

    /// Returns every served version of one resource, in table order.
    pub fn versions<'a>(
        &'a self,
        group: &'a str,
        plural: &'a str,
    ) -> impl Iterator<Item = &'a Arc<ResourceInfo>> + 'a {
        self.rows.iter().filter(move |row| row.group == group && row.plural == plural)
    }

    #[must_use]
    pub fn serves_group_version(&self, group: &str, version: &str) -> bool {
        self.rows.iter().any(|row| row.group == group && row.version == version)
    }

    #[must_use]
    pub fn serves_group(&self, group: &str) -> bool {
        self.rows.iter().any(|row| row.group == group)
    }
}
