//! Fields that an applied configuration would take from other managers.

use std::collections::BTreeMap;
use std::fmt;

use super::managers::{Manager, Operation};
use super::path::{FieldSet, Path, path_text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub manager: Manager,
    pub path: Path,
}

impl Conflict {
    /// `conflict with "alice"`
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", shown(&self.manager))
    }

    /// `.spec.replicas`
    #[must_use]
    pub fn field(&self) -> String {
        path_text(&self.path)
    }
}

/// All conflicts of one application, by manager. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    /// The conflicts over what each manager would lose; None when that is nothing.
    #[must_use]
    pub(super) fn of(losses: &BTreeMap<Manager, FieldSet>) -> Option<Self> {
        let conflicts: Vec<Conflict> = losses
            .iter()
            .flat_map(|(manager, set)| {
                set.paths().into_iter().map(|path| Conflict { manager: manager.clone(), path })
            })
            .collect();
        (!conflicts.is_empty()).then_some(Self(conflicts))
    }

    /// What is left when the paths of `allowed` may be taken.
    #[must_use]
    pub(super) fn beyond(self, allowed: &FieldSet) -> Option<Self> {
        let left: Vec<Conflict> =
            self.0.into_iter().filter(|conflict| !allowed.has(&conflict.path)).collect();
        (!left.is_empty()).then_some(Self(left))
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.field());
        }
        let mut by_manager: BTreeMap<&Manager, Vec<String>> = BTreeMap::new();
        for conflict in &self.0 {
            by_manager.entry(&conflict.manager).or_default().push(conflict.field());
        }
        let parts: Vec<String> = by_manager
            .iter()
            .map(|(manager, fields)| {
                let fields: String = fields.iter().map(|field| format!("\n- {field}")).collect();
                format!("conflicts with {}:{fields}", shown(manager))
            })
            .collect();
        write!(f, "Apply failed with {} conflicts: {}", self.0.len(), parts.join("\n"))
    }
}

fn shown(manager: &Manager) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text.push_str(&format!(" with subresource {:?}", manager.subresource));
    }
    if manager.operation == Operation::Update {
        text.push_str(&format!(" using {}", manager.api_version));
    }
    text
}
