//! Reads the settings of `PodSecurity`, its defaults and exemptions: `pod-security.admission.config.k8s.io`
//! `PodSecurityConfiguration`.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde::Deserialize;
use serde_json::Value;

use super::pod_policy::{Level, LevelVersion, Policy, Version};
use super::sections::{SettingsError, of_kind, typed};
use crate::kinds::field::Field;

const VERSIONS: [&str; 3] = [
    "pod-security.admission.config.k8s.io/v1",
    "pod-security.admission.config.k8s.io/v1beta1",
    "pod-security.admission.config.k8s.io/v1alpha1",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::admission::plugins) struct PodSecurity {
    pub(in crate::admission::plugins) defaults: Policy,
    pub(in crate::admission::plugins) usernames: Vec<String>,
    pub(in crate::admission::plugins) namespaces: Vec<String>,
    pub(in crate::admission::plugins) runtime_classes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    _version: String,
    #[serde(rename = "kind")]
    _kind: String,
    defaults: Defaults,
    exemptions: Exemptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Defaults {
    enforce: String,
    enforce_version: String,
    audit: String,
    audit_version: String,
    warn: String,
    warn_version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Exemptions {
    usernames: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl PodSecurity {
    /// # Errors
    /// If the section is of another kind, or a level, version or name is invalid.
    pub(super) fn read(section: &Value) -> Result<Self, SettingsError> {
        of_kind(section, "PodSecurityConfiguration", &VERSIONS)?;
        let document: Document = typed(section.clone())?;
        let root = Field::root(section);
        let mut errors = FieldErrors::default();
        let given = &document.defaults;
        let set = root.get("defaults");
        let mut mode = |[level, version]: [&'static str; 2], [of_level, of_version]: [&str; 2]| {
            let mut mode = LevelVersion::default();
            match Level::parse(of_level) {
                Some(known) => mode.level = known,
                None if of_level.is_empty() => {}
                None => errors.add(|| set.get(level).invalid_as(of_level, Level::WANTED)),
            }
            match Version::parse(of_version) {
                Some(known) => mode.version = known,
                None if of_version.is_empty() => {}
                None => errors.add(|| set.get(version).invalid_as(of_version, Version::WANTED)),
            }
            mode
        };
        let defaults = Policy {
            enforce: mode(["enforce", "enforce-version"], [&given.enforce, &given.enforce_version]),
            audit: mode(["audit", "audit-version"], [&given.audit, &given.audit_version]),
            warn: mode(["warn", "warn-version"], [&given.warn, &given.warn_version]),
        };
        let exempt = root.get("exemptions");
        distinct(&exempt.get("namespaces"), Some(NameRule::Label), &mut errors);
        distinct(&exempt.get("runtimeClasses"), Some(NameRule::Subdomain), &mut errors);
        distinct(&exempt.get("usernames"), None, &mut errors);
        let errors = errors.into_vec();
        if !errors.is_empty() {
            return Err(SettingsError::invalid(&errors));
        }
        let Exemptions { usernames, namespaces, runtime_classes } = document.exemptions;
        Ok(Self { defaults, usernames, namespaces, runtime_classes })
    }
}

/// Checks that names are unique and follow the rule; without a rule they are user names, which must not be empty.
fn distinct(list: &Field<'_>, rule: Option<NameRule>, errors: &mut FieldErrors) {
    let mut known = HashSet::new();
    for name in list.items() {
        match rule {
            Some(rule) => name.named(rule, errors),
            None if name.text().is_empty() => errors.add(|| name.invalid("username must not be empty")),
            None => {}
        }
        if !known.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn standards_and_names_are_checked() {
        let told = |defaults: Value, exemptions: Value| {
            let section = json!({"apiVersion": VERSIONS[0], "kind": "PodSecurityConfiguration", "defaults": defaults,
                "exemptions": exemptions});
            PodSecurity::read(&section).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(told(json!({}), json!({})), Ok(()));
        let both = json!({"enforce": "baseline", "enforce-version": "v1.30"});
        assert_eq!(
            told(both, json!({"usernames": ["a"], "namespaces": ["b"], "runtimeClasses": ["c"]})),
            Ok(())
        );
        for (defaults, exemptions, expected) in [
            (
                json!({"audit": "all"}),
                json!({}),
                "defaults.audit: Invalid value: \"all\": must be one of privileged, baseline, restricted",
            ),
            (
                json!({"warn-version": "1.30"}),
                json!({}),
                "defaults.warn-version: Invalid value: \"1.30\": must be \"latest\" or \"v1.x\"",
            ),
            (
                json!({}),
                json!({"usernames": [""]}),
                "exemptions.usernames[0]: Invalid value: \"\": username must not be empty",
            ),
            (
                json!({}),
                json!({"namespaces": ["a", "a"]}),
                "exemptions.namespaces[1]: Duplicate value: \"a\"",
            ),
            (
                json!({}),
                json!({"runtimeClasses": ["_"]}),
                "exemptions.runtimeClasses[0]: Invalid value: \"_\": ",
            ),
            (json!({"Enforce": "baseline"}), json!({}), "unknown field `Enforce`"),
        ] {
            let error = told(defaults, exemptions).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
