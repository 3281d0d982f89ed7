//! Reads the settings of `ResourceQuota`, what is limited without a quota: `apiserver.config.k8s.io/v1` `ResourceQuotaConfiguration`.

use admit_apimachinery::findings::FieldErrors;
use serde::Deserialize;
use serde_json::Value;

use super::sections::{SettingsError, of_kind, typed};
use crate::kinds::field::Field;

/// A resource whose consumption is refused unless a quota covers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::admission::plugins) struct Limited {
    pub(in crate::admission::plugins) api_group: String,
    pub(in crate::admission::plugins) resource: String,
    /// Substrings of the names of limited resources.
    pub(in crate::admission::plugins) match_contains: Vec<String>,
    pub(in crate::admission::plugins) match_scopes: Vec<Scoped>,
}

/// A scope selector for limited objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::admission::plugins) struct Scoped {
    pub(in crate::admission::plugins) scope_name: String,
    pub(in crate::admission::plugins) operator: String,
    pub(in crate::admission::plugins) values: Vec<String>,
}

/// The accepted versions, each with its kind.
const KINDS: [(&str, &str); 3] = [
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
];

/// # Errors
/// If the section is of another kind, has unknown fields, or limits no resource.
pub(super) fn read(section: &Value) -> Result<Vec<Limited>, SettingsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Configuration {
        #[serde(rename = "apiVersion")]
        _version: String,
        #[serde(rename = "kind")]
        _kind: String,
        #[serde(default)]
        limited_resources: Vec<Limited>,
    }
    let version = section.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let kind = KINDS.iter().find(|(known, _)| *known == version).map_or(KINDS[0], |known| *known);
    of_kind(section, kind.1, &[kind.0])?;
    let configuration: Configuration = typed(section.clone())?;
    let mut errors = FieldErrors::default();
    for (limited, field) in
        configuration.limited_resources.iter().zip(Field::root(section).get("limitedResources").items())
    {
        if limited.resource.is_empty() {
            errors.add(|| field.get("resource").required(""));
        }
    }
    let errors = errors.into_vec();
    if errors.is_empty() { Ok(configuration.limited_resources) } else { Err(SettingsError::invalid(&errors)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_limited_is_of_a_resource() {
        let section = |version: &str, kind: &str, limited: Value| {
            let section = json!({"apiVersion": version, "kind": kind, "limitedResources": limited});
            read(&section).map_err(|error| error.to_string())
        };
        let pods = json!([{"resource": "pods", "matchScopes": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}]);
        let limited = Limited {
            resource: "pods".to_owned(),
            match_scopes: vec![Scoped {
                scope_name: "PriorityClass".to_owned(),
                operator: "In".to_owned(),
                values: vec!["high".to_owned()],
            }],
            ..Limited::default()
        };
        for (version, kind) in KINDS {
            assert_eq!(section(version, kind, pods.clone()), Ok(vec![limited.clone()]));
        }
        let (version, kind) = KINDS[0];
        assert_eq!(section(version, kind, Value::Null).map(|read| read.len()).ok(), None);
        let told = section(version, kind, json!([{"matchContains": ["pods"]}])).unwrap_err();
        assert_eq!(told, "limitedResources[0].resource: Required value");
        let told = section(version, kind, json!([{"resource": "pods", "contains": []}])).unwrap_err();
        assert!(told.starts_with("unknown field `contains`"), "{told}");
        let told = section(KINDS[1].0, kind, pods).unwrap_err();
        assert!(told.starts_with("no kind \"ResourceQuotaConfiguration\""), "{told}");
    }
}
