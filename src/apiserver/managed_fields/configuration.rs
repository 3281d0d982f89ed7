//! Merges the fields that a mutating admission policy sets into an object, without ownership. Error texts are those of
//! apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go`.

use serde_json::Value;
use thiserror::Error;

use super::typed::{Duplicates, Problems, Typing};

/// Why a configuration cannot be merged.
#[derive(Debug, Error)]
pub(crate) enum MergeError<'k> {
    #[error("failed to convert patch object to typed object: {0}")]
    Configuration(Problems),
    #[error("failed to convert original object to typed object: {0}")]
    Live(Problems),
    /// The paths of atomic lists, maps and structs that the configuration sets.
    #[error("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}", .0.join(", "))]
    Atomic(Vec<String>),
    /// No schema describes the kind; the group may be empty.
    #[error(
        "failed to convert patch object to typed object: no corresponding type for {group}/{version}, Kind={kind}"
    )]
    Untyped { group: &'k str, version: &'k str, kind: &'k str },
}

/// Returns `live` with the fields that `configuration` sets.
///
/// # Errors
/// When one of them does not fit the schema, or the configuration sets something atomic.
pub(crate) fn merged(
    typing: Typing<'_>,
    live: &Value,
    configuration: &Value,
) -> Result<Value, MergeError<'static>> {
    let problems = typing.problems(configuration, Duplicates::Refused);
    if !problems.is_empty() {
        return Err(MergeError::Configuration(problems));
    }
    let atomics = typing.atomics(configuration);
    if !atomics.is_empty() {
        return Err(MergeError::Atomic(atomics));
    }
    let problems = typing.problems(live, Duplicates::Allowed);
    if !problems.is_empty() {
        return Err(MergeError::Live(problems));
    }
    Ok(typing.merge(live, configuration))
}
