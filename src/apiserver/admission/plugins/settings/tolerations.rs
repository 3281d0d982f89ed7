//! Reads the settings of `PodTolerationRestriction`, default and allowed tolerations:
//! `podtolerationrestriction.admission.k8s.io/v1alpha1` `Configuration`.

use admit_apimachinery::findings::FieldErrors;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sections::{SettingsError, of_kind, typed};
use crate::kinds::field::Field;
use crate::kinds::shared::pod_spec::scheduling;

/// A toleration of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::admission::plugins) struct Toleration {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::admission::plugins) key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::admission::plugins) operator: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::admission::plugins) value: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::admission::plugins) effect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::admission::plugins) toleration_seconds: Option<i64>,
}

/// The default and the allowed tolerations; a missing list sets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::admission::plugins) struct Tolerations {
    pub(in crate::admission::plugins) default: Option<Vec<Toleration>>,
    pub(in crate::admission::plugins) whitelist: Option<Vec<Toleration>>,
}

impl Tolerations {
    /// # Errors
    /// If the section is of another kind, or a toleration is invalid.
    pub(super) fn read(section: Value) -> Result<Self, SettingsError> {
        of_kind(&section, "Configuration", &["podtolerationrestriction.admission.k8s.io/v1alpha1"])?;
        let mut errors = FieldErrors::default();
        let named = json!({"podtolerationrestriction": section});
        let root = Field::root(&named).get("podtolerationrestriction");
        for list in ["default", "whitelist"] {
            scheduling::tolerations(&root.get(list), &mut errors);
        }
        let errors = errors.into_vec();
        if errors.is_empty() { typed(section) } else { Err(SettingsError::invalid(&errors)) }
    }
}
