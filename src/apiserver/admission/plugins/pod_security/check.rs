//! Selects and runs the checks of a level and version of the Pod Security Standards.

use std::fmt;

use super::super::settings::{Level, LevelVersion, Version};
use super::subject::{Failure, Row, Subject};
use super::{baseline, restricted};

/// The newest minor version that changed a check: later ones, and the latest, mean the same.
const NEWEST: u32 = 35;

/// The checks that failed.
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

/// Returns the checks of the level that the pod fails: those of the lower level first, each sorted by name.
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
