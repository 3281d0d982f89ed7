//! Converts a custom resource to another version of its CRD.

use serde_json::Value;
use thiserror::Error;

use super::{CompiledCrd, Definition};

/// Stands in for conversion webhooks, which are not called here: brings an object of a definition from a version into another, but for
/// its `apiVersion`. None where the definition is not one that it knows.
pub type Converts = fn(&Definition, &mut Value, from: &str, to: &str) -> Option<Result<(), Inconvertible>>;

/// Why the object cannot be converted to the other version.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("conversion webhook for {api_version}, Kind={kind} failed: {why}")]
pub struct ConversionError {
    /// The object's current `apiVersion`.
    pub api_version: String,
    pub kind: String,
    pub why: Inconvertible,
}

/// What is in the way of a conversion.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Inconvertible {
    #[error("conversion webhooks are not called here")]
    WebhookNotCalled,
    /// A converter replaces the webhook, and does not support this version or form of the object.
    #[error("{0}")]
    InvalidObject(String),
}

impl CompiledCrd {
    /// `object` in `version`. By the strategy `None`, versions differ in nothing but their name.
    ///
    /// # Errors
    /// When the object is in another version and the strategy is `Webhook`.
    pub fn convert(&self, object: &Value, version: &str) -> Result<Value, ConversionError> {
        let api_version = format!("{}/{version}", self.definition().group);
        self.check_conversion(object, &api_version)?;
        let mut converted = object.clone();
        if let Value::Object(fields) = &mut converted {
            fields.insert("apiVersion".to_owned(), api_version.into());
        }
        Ok(converted)
    }

    /// Whether `object` can be had in `api_version` without a webhook.
    ///
    /// # Errors
    /// As of [`Self::convert`].
    pub fn check_conversion(&self, object: &Value, api_version: &str) -> Result<(), ConversionError> {
        let definition = self.definition();
        let found = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let by_webhook =
            definition.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook");
        if !by_webhook || found == api_version {
            return Ok(());
        }
        Err(self.inconvertible(found, Inconvertible::WebhookNotCalled))
    }

    /// Converts `object` to `version`, with the converter that replaces its webhook, if there is one.
    ///
    /// # Errors
    /// If no conversion is available, or the converter does not support the object.
    pub(crate) fn convert_by(
        &self,
        object: &Value,
        version: &str,
        by: Converts,
    ) -> Result<Value, ConversionError> {
        let definition = self.definition();
        let api_version = format!("{}/{version}", definition.group);
        if self.check_conversion(object, &api_version).is_ok() {
            return self.convert(object, version);
        }
        let found = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let from = found.rsplit_once('/').map_or(found, |(_, version)| version);
        let mut converted = object.clone();
        match by(definition, &mut converted, from, version) {
            None => return self.convert(object, version),
            Some(Err(why)) => return Err(self.inconvertible(found, why)),
            Some(Ok(())) => {}
        }
        if let Value::Object(fields) = &mut converted {
            fields.insert("apiVersion".to_owned(), api_version.into());
        }
        Ok(converted)
    }

    fn inconvertible(&self, api_version: &str, why: Inconvertible) -> ConversionError {
        let kind = self.definition().names.kind.clone();
        ConversionError { api_version: api_version.to_owned(), kind, why }
    }
}
