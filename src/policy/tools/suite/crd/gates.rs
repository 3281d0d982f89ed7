//! Selects the CRDs that a suite with feature gates is for.
//!
//! A project with feature gates generates several CRDs of one name, one for each set of gates, and says in
//! annotations which. FeatureGate manifests say which gates a set turns on. Where these are available they decide;
//! without them the two ends of the range still do: `CustomNoUpgrade` has every field of every gate, `Default` those
//! that are generally available, and a CRD without a feature set is the same in all of them.

use admit_apimachinery::pointer;
use serde_json::Value;
use thiserror::Error;

use super::CrdSuite;

const FEATURE_SET: &str = "release.openshift.io/feature-set";
const PROFILE: &str = "include.release.openshift.io/";

/// The FeatureGate manifests of a project; none is fine.
///
/// [`CrdSuite`](super::CrdSuite) has an example.
#[derive(Debug, Default)]
pub struct FeatureGates {
    sets: Vec<FeatureSet>,
}

/// What one profile and feature set turn on and off.
#[derive(Debug)]
struct FeatureSet {
    name: String,
    profiles: Vec<String>,
    enabled: Vec<String>,
}

/// A suite's gates cannot be resolved without FeatureGate manifests.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "asks for gates that are on and gates that are off: which definitions these are is told by FeatureGate manifests, \
     which are read beside the definitions"
)]
pub struct NoGates;

impl FeatureGates {
    /// Takes a manifest of kind FeatureGate; false for any other.
    pub fn add(&mut self, manifest: &Value) -> bool {
        if manifest.get("kind").and_then(Value::as_str) != Some("FeatureGate") {
            return false;
        }
        let gates = |key: &str| {
            let list = pointer::items(manifest, &format!("/status/featureGates/0/{key}"));
            list.iter().filter_map(|gate| Some(gate.get("name")?.as_str()?.to_owned())).collect()
        };
        let name = annotation(manifest, FEATURE_SET).unwrap_or("Default").to_owned();
        self.sets.push(FeatureSet { name, profiles: profiles(manifest), enabled: gates("enabled") });
        true
    }

    /// Whether the gate is on in the sets and the first profile that `definition` names.
    fn is_on(&self, gate: &str, definition: &Value) -> bool {
        let sets = feature_sets(definition);
        let profile = profiles(definition).into_iter().next();
        let found = self.sets.iter().find(|set| {
            let in_set =
                if sets.is_empty() { set.name == "Default" } else { sets.contains(&set.name.as_str()) };
            in_set && profile.as_ref().is_some_and(|profile| set.profiles.contains(profile))
        });
        found.is_some_and(|set| set.enabled.iter().any(|enabled| enabled == gate))
    }
}

impl CrdSuite {
    /// Whether the suite is for `definition`, which has the suite's name and version.
    ///
    /// # Errors
    /// If that cannot be determined.
    pub fn covers(&self, definition: &Value, gates: &FeatureGates) -> Result<bool, NoGates> {
        let off: Vec<&str> = self.feature_gates.iter().filter_map(|gate| gate.strip_prefix('-')).collect();
        let on: Vec<&str> =
            self.feature_gates.iter().map(String::as_str).filter(|gate| !gate.starts_with('-')).collect();
        if self.feature_gates.is_empty() {
            return Ok(true);
        }
        let sets = feature_sets(definition);
        if sets.contains(&"CustomNoUpgrade") {
            return Ok(off.is_empty());
        }
        if !gates.sets.is_empty() {
            return Ok(on.iter().all(|gate| gates.is_on(gate, definition))
                && !off.iter().any(|gate| gates.is_on(gate, definition)));
        }
        match (on.is_empty(), off.is_empty()) {
            (false, false) => Err(NoGates),
            (true, _) => Ok(sets.contains(&"Default")),
            (false, true) => Ok(sets.is_empty()),
        }
    }
}

fn annotation<'m>(manifest: &'m Value, name: &str) -> Option<&'m str> {
    manifest.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

fn feature_sets(manifest: &Value) -> Vec<&str> {
    annotation(manifest, FEATURE_SET).map(|sets| sets.split(',').collect()).unwrap_or_default()
}

/// In order of name.
fn profiles(manifest: &Value) -> Vec<String> {
    let annotations = manifest.pointer("/metadata/annotations").and_then(Value::as_object);
    let is_profile = |(name, value): (&String, &Value)| {
        (name.starts_with(PROFILE) && value.as_str() == Some("true")).then(|| name.clone())
    };
    let mut profiles: Vec<String> = annotations.into_iter().flatten().filter_map(is_profile).collect();
    profiles.sort();
    profiles
}
