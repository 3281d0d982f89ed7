//! A custom resource in another version of its definition.

use serde_json::Value;
use thiserror::Error;

use super::CompiledCrd;

/// Only a webhook can convert the object, and none is called here.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("conversion webhook for {api_version}, Kind={kind} failed: conversion webhooks are not called here")]
pub struct ConversionError {
    /// Of the object as it is.
    pub api_version: String,
    pub kind: String,
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
        Err(ConversionError { api_version: found.to_owned(), kind: definition.names.kind.clone() })
    }
}
