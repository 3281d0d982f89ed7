//! Merges what a policy sets into an object, in the words of apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go`.
//! Nobody owns what is set so.

use serde_json::Value;

use super::typed::{Duplicates, Typing};

/// `live` with what `configuration` sets.
///
/// # Errors
/// When one of them does not fit the schema, or the configuration sets something that is owned as a whole.
pub(crate) fn merged(typing: Typing<'_>, live: &Value, configuration: &Value) -> Result<Value, String> {
    let problems = typing.problems(configuration, Duplicates::Refused);
    if !problems.is_empty() {
        return Err(format!("failed to convert patch object to typed object: {problems}"));
    }
    let atomics = typing.atomics(configuration);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    let problems = typing.problems(live, Duplicates::Allowed);
    if !problems.is_empty() {
        return Err(format!("failed to convert original object to typed object: {problems}"));
    }
    Ok(typing.merge(live, configuration))
}

/// What is said of a kind that no schema describes; the group may be empty.
pub(crate) fn untyped((group, version, kind): (&str, &str, &str)) -> String {
    format!(
        "failed to convert patch object to typed object: no corresponding type for {group}/{version}, Kind={kind}"
    )
}
