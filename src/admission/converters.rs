//! Converts objects between API versions of a kind. The conversion functions are passed in.

use std::sync::Arc;

use admit_policy::GroupVersionKind;
use serde_json::Value;

use super::log::shown;

/// Why an object is not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    #[error("{api_version}, Kind={kind} is not converted here")]
    UnknownKind { api_version: String, kind: String },
    #[error("there is no way from {from} to {to} for a {kind}")]
    UnknownVersion { from: String, to: String, kind: String },
    /// The converter rejected the object, with this message.
    #[error("{0}")]
    InvalidObject(String),
}

/// The converter of a kind.
#[derive(Clone, Debug)]
pub struct Converter {
    pub group: &'static str,
    pub kind: &'static str,
    pub versions: Vec<&'static str>,
    /// Converts an object from a version to another; `apiVersion` is set already. Returns why if that is impossible.
    pub convert: fn(&mut Value, &str, &str) -> Result<(), ConversionError>,
}

/// The converters of all kinds.
#[derive(Clone, Debug, Default)]
pub struct Converters(Arc<[Converter]>);

impl From<Vec<Converter>> for Converters {
    fn from(converters: Vec<Converter>) -> Self {
        Self(converters.into())
    }
}

impl Converters {
    /// Converts the object to `kind`, if there is a converter for it.
    pub(super) fn of(
        &self,
        object: &Value,
        kind: &GroupVersionKind,
    ) -> Option<Result<Value, ConversionError>> {
        self.find(&kind.group, &kind.kind)?;
        let wanted = kind.api_version();
        if object.get("apiVersion").and_then(Value::as_str) == Some(&wanted) {
            return Some(Ok(object.clone()));
        }
        Some(self.one(object.clone(), &wanted))
    }

    fn find(&self, group: &str, kind: &str) -> Option<&Converter> {
        self.0.iter().find(|converter| converter.group == group && converter.kind == kind)
    }

    /// Converts the object to the version `wanted`, which includes the group.
    ///
    /// # Errors
    /// When there is no converter for its kind or the version, and the errors of the converter.
    pub(super) fn one(&self, mut object: Value, wanted: &str) -> Result<Value, ConversionError> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (found, kind) = (text("apiVersion"), text("kind"));
        let (group, from) = found.split_once('/').unwrap_or(("", found.as_str()));
        let Some(converter) = self.find(group, &kind) else {
            let (api_version, kind) = (shown(&found).to_string(), shown(&kind).to_string());
            return Err(ConversionError::UnknownKind { api_version, kind });
        };
        let known = |version: &str| converter.versions.contains(&version);
        let to = wanted.split_once('/').filter(|(other, to)| *other == group && known(to));
        let Some((_, to)) = to.filter(|_| known(from)) else {
            let (from, to) = (shown(&found).to_string(), shown(wanted).to_string());
            return Err(ConversionError::UnknownVersion { from, to, kind });
        };
        if let Value::Object(members) = &mut object {
            members.insert("apiVersion".to_owned(), wanted.into());
        }
        (converter.convert)(&mut object, from, to)?;
        Ok(object)
    }
}
