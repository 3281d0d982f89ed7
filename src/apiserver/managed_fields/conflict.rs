//! Finds conflicts: fields that an applied configuration would take over from other managers.

use std::collections::BTreeMap;
use std::fmt;

use admit_apimachinery::go;

use super::managers::{Manager, Operation};
use super::path::{FieldSet, Path, path_text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub manager: Manager,
    pub path: Path,
}

impl Conflict {
    /// Formats the conflict: `conflict with "alice"`.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", shown(&self.manager))
    }

    /// Formats the path of the field: `.spec.replicas`.
    #[must_use]
    pub fn field(&self) -> String {
        path_text(&self.path)
    }
}

/// All conflicts of one apply request, by manager. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(BTreeMap<Manager, FieldSet>);

/// Most bytes of conflict paths that are listed: a body could have many with long names.
const MOST_TOLD: usize = 256 << 10;

impl Conflicts {
    /// Builds the conflicts from the fields that each manager would lose; None when these are empty.
    #[must_use]
    pub(super) fn of(losses: impl Iterator<Item = (Manager, FieldSet)>) -> Option<Self> {
        let losses: BTreeMap<Manager, FieldSet> = losses.filter(|(_, set)| !set.is_empty()).collect();
        (!losses.is_empty()).then_some(Self(losses))
    }

    /// Removes the paths of `allowed`, over which there is no conflict; None when no conflict is left.
    #[must_use]
    pub(super) fn beyond(self, allowed: &FieldSet) -> Option<Self> {
        Self::of(self.0.into_iter().map(|(manager, set)| (manager, set.difference(allowed))))
    }

    /// Returns the conflicts to list, and the number of others.
    #[must_use]
    pub fn told(&self) -> (Vec<Conflict>, usize) {
        let mut left = MOST_TOLD;
        let mut told = Vec::new();
        for (manager, set) in &self.0 {
            let paths = set.first_paths(&mut left).into_iter();
            told.extend(paths.map(|path| Conflict { manager: manager.clone(), path }));
        }
        let all: usize = self.0.values().map(FieldSet::len).sum();
        let more = all - told.len();
        (told, more)
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (told, more) = self.told();
        if let ([only], 0) = (told.as_slice(), more) {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.field());
        }
        let mut by_manager: BTreeMap<&Manager, Vec<String>> = BTreeMap::new();
        for conflict in &told {
            by_manager.entry(&conflict.manager).or_default().push(conflict.field());
        }
        let parts: Vec<String> = by_manager
            .iter()
            .map(|(manager, fields)| {
                let fields: String = fields.iter().map(|field| format!("\n- {field}")).collect();
                format!("conflicts with {}:{fields}", shown(manager))
            })
            .collect();
        write!(f, "Apply failed with {} conflicts: {}", told.len() + more, parts.join("\n"))?;
        match more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

fn shown(manager: &Manager) -> String {
    let mut text = go::quote(&manager.name);
    if !manager.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", go::quote(&manager.subresource)));
    }
    if manager.operation == Operation::Update {
        text.push_str(&format!(" using {}", manager.api_version));
    }
    text
}
