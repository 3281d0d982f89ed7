//! Narrows a CRD to what a suite tests: one of its versions alone, served and stored.

use std::sync::Arc;

use admit_apimachinery::field_error::aggregate;
use serde_json::Value;
use thiserror::Error;

use crate::crd::{CompiledCrd, CrdVersion};
use crate::patch::{self, PatchError};
use crate::report::recording::Expression;

/// A compiled definition under test, with the manifest that patches are applied to.
///
/// [`CrdSuite`](super::CrdSuite) has an example.
#[derive(Debug)]
pub struct Variant {
    /// The file, for messages.
    pub file: String,
    pub(super) crd: CompiledCrd,
    manifest: Arc<Value>,
}

/// A definition that cannot be tested.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum VariantError {
    #[error("has no version `{0}`")]
    NoVersion(String),
    #[error("{0}")]
    Refused(String),
    #[error("cannot be patched: {0}")]
    Patch(PatchError),
}

impl Variant {
    /// Compiles `manifest`, reduced to `version`.
    ///
    /// # Errors
    /// If there is no such version, or the API server would reject the definition.
    pub fn compile(file: &str, manifest: Arc<Value>, version: &str) -> Result<Self, VariantError> {
        let mut narrowed = (*manifest).clone();
        if let Some(versions) = narrowed.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
            versions.retain(|candidate| candidate.get("name").is_some_and(|name| name == version));
            for kept in versions.iter_mut().filter_map(Value::as_object_mut) {
                kept.insert("served".to_owned(), true.into());
                kept.insert("storage".to_owned(), true.into());
            }
        }
        let crd = compile(narrowed)?;
        if crd.versions().is_empty() {
            return Err(VariantError::NoVersion(version.to_owned()));
        }
        Ok(Self { file: file.to_owned(), crd, manifest })
    }

    /// Every expression of the rules of the version under test.
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        self.crd.versions().iter().flat_map(|version| version.expressions()).collect()
    }

    /// Compiles the manifest with `patch` applied.
    pub(super) fn patched(&self, patch: &json_patch::Patch) -> Result<CompiledCrd, VariantError> {
        let mut manifest = (*self.manifest).clone();
        patch::apply(&mut manifest, patch).map_err(VariantError::Patch)?;
        compile(manifest)
    }

    /// The version under test.
    pub(super) fn version(&self) -> Result<&Arc<CrdVersion>, VariantError> {
        self.crd.versions().first().ok_or_else(|| VariantError::NoVersion(String::new()))
    }
}

fn compile(mut manifest: Value) -> Result<CompiledCrd, VariantError> {
    // A manifest from a cluster, or from older generators, carries a status, which would speak of other versions.
    if let Some(map) = manifest.as_object_mut() {
        map.shift_remove("status");
    }
    CompiledCrd::compile(&manifest).map_err(|errors| VariantError::Refused(aggregate(&errors)))
}
