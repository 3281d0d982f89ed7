//! Decides the steps of a pass for one pipeline. Pure.
//!
//! | state | test | step |
//! |---|---|---|
//! | any | connectors and tables of versions that neither run nor are shown | remove, before anything else |
//! | REMOVED | | remove all, the view as well |
//! | NEW | | make a table, then a connector, then say so |
//! | any other | it is not as it should be | build anew |
//! | UNKNOWN | | build anew |
//! | VALID | the view shows another table | show this one |
//! | not valid | too many validations failed | build anew, showing whichever table is nearer |
//! | any but NEW | its connector failed in part, rests, or works against the spec | start that again, or have it work or rest |
//!
//! The view is switched in the pass after the one that found the table valid, and the old table is dropped in the
//! pass after that: if a process dies in between, the next pass continues.

use super::config::Config;
use super::connector::{Found, Wanted};
use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::names::{Table, Version};
use super::state::State;

/// What the view shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum View {
    #[default]
    Missing,
    Shows(Table),
    /// Something else than a table of this controller.
    Other(String),
}

impl View {
    /// Returns the table that it shows, if that belongs to this controller.
    #[must_use]
    pub fn table(&self) -> Option<&Table> {
        match self {
            Self::Shows(table) => Some(table),
            Self::Missing | Self::Other(_) => None,
        }
    }

    /// Returns the name for `status.activeTableName`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Shows(table) => table.to_string(),
            Self::Other(name) => name.clone(),
        }
    }
}

/// Everything that a plan depends on.
#[derive(Clone, Debug)]
pub struct Seen {
    pub object: CyndiPipeline,
    pub config: Config,
    pub spec_hash: String,
    pub tables: Vec<Table>,
    pub view: View,
    /// The connectors of the pipeline, of any version.
    pub connectors: Vec<Found>,
    /// The desired connector of the running version; None if connectors are managed by others.
    pub wanted: Option<Wanted>,
}

/// Why a pipeline is rebuilt.
#[derive(Clone, Debug, PartialEq)]
pub enum Refresh {
    Deviation(String),
    /// Validation failed too often.
    Invalid,
}

impl Refresh {
    /// Returns the text of the event.
    #[must_use]
    pub fn note(&self) -> String {
        match self {
            Self::Deviation(what) => format!("Refreshing pipeline due to state deviation: {what}"),
            Self::Invalid => "Pipeline failed to become valid within the given threshold".to_owned(),
        }
    }

    /// Returns the reason for the metric.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Deviation(_) => "deviation",
            Self::Invalid => "invalid",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Everything is removed: remove the finalizer.
    LetGo,
    Start,
    Refresh(Refresh),
    /// Switch the view to this table.
    Show(Table),
    /// Restart the failed part of the connector.
    Restart(String),
    /// Pause the connector, or resume it.
    Pause(bool),
    Nothing,
}

/// The steps of a pass, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub stale_connectors: Vec<String>,
    pub stale_tables: Vec<Table>,
    pub drop_view: bool,
    pub step: Step,
}

impl Plan {
    /// Whether anything is created, removed or written.
    #[must_use]
    pub fn changes_something(&self) -> bool {
        let Self { stale_connectors, stale_tables, drop_view, step } = self;
        !stale_connectors.is_empty() || !stale_tables.is_empty() || *drop_view || *step != Step::Nothing
    }
}

#[must_use]
pub fn plan(seen: &Seen) -> Plan {
    let state = State::of(&seen.object);
    let removed = state == State::Removed;
    let current = seen.object.status.as_ref().and_then(CyndiPipelineStatus::version).filter(|_| !removed);
    let active = seen.view.table().filter(|_| !removed);
    let app = &seen.object.spec.app_name;
    let kept = [current.clone(), active.map(|table| table.version().clone())];
    let kept_connectors: Vec<_> = kept.iter().flatten().map(|version| version.connector(app)).collect();
    let stale = |table: &&Table| !kept.iter().flatten().any(|version| version == table.version());
    Plan {
        stale_connectors: seen
            .connectors
            .iter()
            .filter(|found| !found.leaving && !kept_connectors.contains(&found.name))
            .map(|found| found.name.clone())
            .collect(),
        stale_tables: seen.tables.iter().filter(stale).cloned().collect(),
        drop_view: removed && seen.view.table().is_some(),
        step: step(seen, state, current.as_ref()),
    }
}

fn step(seen: &Seen, state: State, current: Option<&Version>) -> Step {
    let refresh = |why: Refresh| Step::Refresh(why);
    let Some(status) = seen.object.status.as_ref().filter(|_| state != State::New) else {
        return if state == State::Removed { Step::LetGo } else { Step::Start };
    };
    if state == State::Removed {
        return Step::LetGo;
    }
    let Some(version) = current else {
        let what = format!("version {} is none of this program", status.pipeline_version);
        return refresh(Refresh::Deviation(what));
    };
    if let Some(what) = deviation(seen, status, version) {
        return refresh(Refresh::Deviation(what));
    }
    match state {
        State::Unknown => {
            refresh(Refresh::Deviation("the status says neither valid nor initial sync".to_owned()))
        }
        State::Valid if seen.view.table() != Some(&version.table()) => Step::Show(version.table()),
        State::InitialSync | State::Invalid
            if status.validation_failed_count
                >= seen.config.validation(state == State::InitialSync).attempts =>
        {
            refresh(Refresh::Invalid)
        }
        State::Valid | State::InitialSync | State::Invalid | State::Removed | State::New => tend(seen),
    }
}

/// Returns the step for a connector that failed, or is paused or running against the spec.
fn tend(seen: &Seen) -> Step {
    let Some(wanted) = &seen.wanted else { return Step::Nothing };
    let Some(found) = seen.connectors.iter().find(|found| found.name == wanted.name) else {
        return Step::Nothing;
    };
    match &found.failed {
        Some(failed) => Step::Restart(failed.clone()),
        None if found.paused != wanted.paused => Step::Pause(wanted.paused),
        None => Step::Nothing,
    }
}

/// Returns how the pipeline differs from the desired state, the first of the checks in their order.
#[must_use]
pub fn deviation(seen: &Seen, status: &CyndiPipelineStatus, version: &Version) -> Option<String> {
    let config = &seen.config.hash;
    if status.cyndi_config_version != *config {
        return Some(format!(
            "ConfigMap changed. New hash is {config}, old hash is {}",
            status.cyndi_config_version
        ));
    }
    if status.spec_hash.as_ref().is_some_and(|hash| *hash != seen.spec_hash) {
        return Some("CyndiPipeline spec changed".to_owned());
    }
    let table = version.table();
    if !seen.tables.contains(&table) {
        return Some(format!("Database table {table} not found"));
    }
    let wanted = seen.wanted.as_ref()?;
    match seen.connectors.iter().find(|found| found.name == wanted.name && !found.leaving) {
        None => Some(format!("Connector {} not found", wanted.name)),
        Some(found) => wanted.deviation(found),
    }
}

/// Whether the view switches to a table that failed to become valid: unless its count is further from the inventory's.
#[must_use]
pub fn is_healthier(inventory: u64, new: u64, active: Option<u64>) -> bool {
    active.is_none_or(|active| inventory.abs_diff(new) <= inventory.abs_diff(active))
}

#[cfg(test)]
mod tests;
