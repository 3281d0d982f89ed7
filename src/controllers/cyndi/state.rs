//! Derives the state of a pipeline from its object, and computes the status changes between states. Pure.
//!
//! ```text
//!  NEW ──► INITIAL_SYNC ──► VALID ◄──► INVALID
//!   ▲            │            │           │
//!   └────────────┴────────────┴───────────┘   refreshed; REMOVED follows from a deletion, whatever was before
//! ```

use jiff::Timestamp;

use super::crd::{CyndiPipeline, CyndiPipelineStatus};
use super::names::{Table, Version};
use crate::controllers::kit::conditions::{self, Statement, Truth};

/// The condition that says whether a table matches the inventory.
pub const VALID: &str = "Valid";
pub const SUCCEEDED: &str = "ValidationSucceeded";
pub const FAILED: &str = "ValidationFailed";
const NEW_REASON: &str = "New";
/// The host count of a table that was not validated yet.
const NOT_COUNTED: i64 = -1;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    Removed,
    New,
    Valid,
    InitialSync,
    Invalid,
    /// A status that this program never writes; only a rebuild leads out of it.
    Unknown,
}

impl State {
    #[must_use]
    pub fn of(object: &CyndiPipeline) -> Self {
        let status = object.status.as_ref();
        let valid = |truth| status.is_some_and(|status| conditions::is(&status.conditions, VALID, truth));
        if object.metadata.deletion_timestamp.is_some() {
            Self::Removed
        } else if status.is_none_or(|status| status.pipeline_version.is_empty()) {
            Self::New
        } else if valid(Truth::True) {
            Self::Valid
        } else if status.is_some_and(|status| status.initial_sync_in_progress) {
            Self::InitialSync
        } else if valid(Truth::False) {
            Self::Invalid
        } else {
            Self::Unknown
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "REMOVED",
            Self::New => "NEW",
            Self::Valid => "VALID",
            Self::InitialSync => "INITIAL_SYNC",
            Self::Invalid => "INVALID",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl CyndiPipelineStatus {
    /// Returns the version that is being built or runs; None if there is none, or it is invalid.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        Version::parse(&self.pipeline_version)
    }

    /// Returns the table of that version.
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        self.version().map(|version| version.table())
    }

    /// Returns the status of a pipeline whose `version` is being filled for the first time.
    #[must_use]
    pub fn started(&self, version: &Version, app: &str, hashes: (&str, &str), now: Timestamp) -> Self {
        let (config, spec) = hashes;
        let mut next = Self {
            validation_failed_count: 0,
            pipeline_version: version.to_string(),
            cyndi_pipeline_name: version.connector(app),
            table_name: version.table().to_string(),
            cyndi_config_version: config.to_owned(),
            spec_hash: Some(spec.to_owned()),
            initial_sync_in_progress: true,
            host_count: NOT_COUNTED,
            ..self.clone()
        };
        next.not_yet_valid(now);
        next
    }

    /// Returns the status of a pipeline that will be rebuilt. Names stay, and so does what the view shows.
    #[must_use]
    pub fn reset(&self, now: Timestamp) -> Self {
        let mut next = Self {
            validation_failed_count: 0,
            pipeline_version: String::new(),
            initial_sync_in_progress: false,
            host_count: NOT_COUNTED,
            ..self.clone()
        };
        next.not_yet_valid(now);
        next
    }

    fn not_yet_valid(&mut self, now: Timestamp) {
        let statement = Statement::new(VALID, Truth::Unknown, NEW_REASON, "Validation not yet run");
        conditions::set(&mut self.conditions, statement, None, now);
    }

    /// Returns the status after a validation with the result `valid` and `message`.
    #[must_use]
    pub fn validated(&self, valid: bool, message: &str, hosts: i64, now: Timestamp) -> Self {
        let mut next = self.clone();
        next.host_count = hosts;
        let (truth, reason) = if valid { (Truth::True, SUCCEEDED) } else { (Truth::False, FAILED) };
        conditions::set(&mut next.conditions, Statement::new(VALID, truth, reason, message), None, now);
        if valid {
            next.validation_failed_count = 0;
            next.initial_sync_in_progress = false;
        } else {
            next.validation_failed_count = next.validation_failed_count.saturating_add(1);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::controllers::cyndi::crd::CyndiPipelineSpec;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn in_state(status: CyndiPipelineStatus) -> CyndiPipeline {
        let mut object = CyndiPipeline::new("a", CyndiPipelineSpec::default());
        object.status = Some(status);
        object
    }

    fn of(status: &CyndiPipelineStatus) -> State {
        State::of(&in_state(status.clone()))
    }

    #[test]
    fn cy_02_states_are_derived_in_their_order() {
        assert_eq!(State::of(&CyndiPipeline::new("a", CyndiPipelineSpec::default())), State::New);
        let empty = CyndiPipelineStatus::default();
        let version = Version::parse("1_5").unwrap();
        let started = empty.started(&version, "app", ("1", "2"), NOW);
        let valid = started.validated(true, "", 1, NOW);
        let invalid = valid.validated(false, "", 1, NOW);
        let unknown = CyndiPipelineStatus { initial_sync_in_progress: false, ..started.clone() };
        let cases = [
            (&empty, State::New),
            (&started, State::InitialSync),
            (&valid, State::Valid),
            (&invalid, State::Invalid),
            (&unknown, State::Unknown),
            (&invalid.reset(NOW), State::New),
        ];
        for (status, expected) in cases {
            assert_eq!(of(status), expected, "{status:?}");
            let mut deleted = in_state(status.clone());
            deleted.metadata.deletion_timestamp = Some(Time(NOW));
            assert_eq!(State::of(&deleted), State::Removed);
        }
        // Valid takes precedence over the initial sync.
        let both = CyndiPipelineStatus { initial_sync_in_progress: true, ..valid };
        assert_eq!(of(&both), State::Valid);
    }

    #[test]
    fn cy_02_03_failing_in_the_initial_sync_is_not_invalid() {
        let version = Version::parse("1_5").unwrap();
        let started = CyndiPipelineStatus::default().started(&version, "app", ("1", "2"), NOW);
        let failed = started.validated(false, "x", 1, NOW).validated(false, "x", 1, NOW);
        assert_eq!((of(&failed), failed.validation_failed_count), (State::InitialSync, 2));
        let valid = failed.validated(true, "x", 7, NOW);
        assert_eq!((of(&valid), valid.validation_failed_count, valid.host_count), (State::Valid, 0, 7));
    }

    #[test]
    fn cy_02_new_resets_and_keeps_the_names() {
        let version = Version::parse("1_5").unwrap();
        let mut old = CyndiPipelineStatus::default().started(&version, "app", ("1", "2"), NOW);
        old.active_table_name = "hosts_v1_4".to_owned();
        let new = old.validated(false, "x", 3, NOW).reset(NOW);
        assert_eq!((new.table_name.as_str(), new.active_table_name.as_str()), ("hosts_v1_5", "hosts_v1_4"));
        assert_eq!((new.cyndi_pipeline_name.as_str(), new.host_count), ("cyndi-app-1-5", -1));
        assert_eq!((new.validation_failed_count, new.initial_sync_in_progress), (0, false));
        let said = new.conditions.iter().find(|it| it.type_ == VALID).unwrap();
        let told = (said.status.as_str(), said.reason.as_str(), said.message.as_str());
        assert_eq!(told, ("Unknown", "New", "Validation not yet run"));
    }
}
