//! The standards as a table: which check belongs to which level, from which version on.

use std::fmt;

use serde_json::Value;

use super::policy::{Level, LevelVersion, Version};
use super::{baseline, restricted};
use crate::admission::plugins::pods::{items, text};

/// A pod, or the template of one.
pub(super) struct Subject<'o> {
    whole: &'o Value,
}

/// Why a check is not passed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

pub(super) type Check = fn(&Subject<'_>) -> Option<Failure>;

/// A check, each of its versions with the minor version that it came with, and the check of the lower level whose place it
/// takes.
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) versions: &'static [(u32, Check)],
    pub(super) overrides: Option<&'static str>,
}

/// The newest version of a check: later ones, and the latest, mean the same.
const NEWEST: u32 = 35;

impl<'o> Subject<'o> {
    pub(super) const fn of(pod: &'o Value) -> Self {
        Self { whole: pod }
    }

    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'o str, &'o str)> {
        crate::object::meta_map(self.whole, "annotations")
    }

    /// What stands at this path in the specification.
    pub(super) fn at(&self, pointer: &str) -> Option<&'o Value> {
        self.whole.get("spec")?.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn volumes(&self) -> impl Iterator<Item = &'o Value> {
        items(self.whole, "/spec/volumes")
    }

    /// All containers, in the order in which checks name them.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'o Value> {
        ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .into_iter()
            .flat_map(|list| items(self.whole, list))
    }

    pub(super) fn is_of_windows(&self) -> bool {
        text(self.whole, "/spec/os/name") == "windows"
    }

    /// Whether root in the pod is nobody outside of it.
    pub(super) fn has_own_users(&self) -> bool {
        self.at("/hostUsers") == Some(&Value::Bool(false))
    }
}

/// The checks that were not passed.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<Failure>);

impl Failures {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn reasons(&self) -> String {
        self.0.iter().map(|failure| failure.reason).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Failure { reason, detail }) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{reason}")?;
            if !detail.is_empty() {
                write!(f, " ({detail})")?;
            }
        }
        Ok(())
    }
}

/// The checks of the level that the pod does not pass: those of the lower level first, each in the order of its names.
pub(super) fn evaluate(LevelVersion { level, version }: LevelVersion, subject: &Subject<'_>) -> Failures {
    let minor = match version {
        Version::Latest => NEWEST,
        Version::Minor(minor) => minor.min(NEWEST),
    };
    let own: &[Row] = if level == Level::Restricted { restricted::CHECKS } else { &[] };
    let lower: &[Row] = if level == Level::Privileged { &[] } else { baseline::CHECKS };
    let in_force = |row: &&Row| row.at(minor).is_some();
    let overridden = |id: &str| own.iter().filter(in_force).any(|row| row.overrides == Some(id));
    let rows = lower.iter().filter(|row| !overridden(row.id)).chain(own);
    Failures(rows.filter_map(|row| row.at(minor)?(subject)).collect())
}

impl Row {
    fn at(&self, minor: u32) -> Option<Check> {
        self.versions.iter().rev().find(|(since, _)| *since <= minor).map(|(_, check)| *check)
    }
}
