//! CustomResourceDefinitions: parses them, validates them as the API server does at registration, compiles them, and
//! applies them to custom resources (defaulting, pruning, validation).
//!
//! ```text
//! manifest ──definition──► Definition ──registration──► CompiledCrd ──version──► CrdVersion
//!                                     refusals, warnings                          default, prune, validate
//! ```
//!
//! A [`CrdVersion`] validates the whole object that it is given; a [`Write`] knows which part of an object a request
//! may change.

mod approval;
mod convert;
mod definition;
pub(crate) mod field_path;
mod registration;
mod replaced;
mod resource;
pub mod rules;
mod scale;
mod write;

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use serde_json::Value;

pub use approval::Approval;
pub use convert::{ConversionError, Converts, Inconvertible};
pub use definition::{
    Conversion, ConversionWebhook, Definition, Names, PrinterColumn, ScalePaths, Scope, Version,
    WebhookClient,
};
pub(crate) use registration::{EXPRESSION_LIMIT, TOTAL_LIMIT, occurrences};
pub use resource::{CrdVersion, Unread, ValidateOptions, Validation};
pub use write::{Write, Written};

/// A definition that may be registered, with everything its rules need.
///
/// ```
/// use admit_policy::crd::CompiledCrd;
/// use serde_json::json;
///
/// let mut definition = json!({
///     "apiVersion": "apiextensions.k8s.io/v1",
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "cats.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
///         "scope": "Namespaced",
///         "versions": [
///             {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
///             {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
///         ],
///     },
/// });
/// let crd = CompiledCrd::compile(&definition).unwrap();
/// assert_eq!(crd.definition().names.kind, "Cat");
/// assert_eq!(crd.versions().len(), 2);
/// assert!(crd.version("v1").is_some() && crd.version("v3").is_none());
///
/// let cat = json!({"apiVersion": "example.com/v1", "kind": "Cat"});
/// assert_eq!(crd.check_conversion(&cat, "example.com/v2"), Ok(()));
/// assert_eq!(crd.convert(&cat, "v2")?["apiVersion"], "example.com/v2");
///
/// let stored = definition.clone();
/// definition["spec"]["scope"] = "Cluster".into();
/// let errors = CompiledCrd::compile_update(&definition, &stored);
/// assert!(errors.is_ok(), "nobody has been told yet that it is served");
/// # Ok::<(), admit_policy::crd::ConversionError>(())
/// ```
#[derive(Debug)]
pub struct CompiledCrd {
    definition: Definition,
    versions: Vec<Arc<CrdVersion>>,
}

impl CompiledCrd {
    /// Compiles a definition as written (`apiextensions.k8s.io/v1`); omitted names are defaulted as the API server does.
    ///
    /// # Errors
    /// Everything for which the API server would reject it.
    pub fn compile(manifest: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compiled(manifest, None)
    }

    /// Compiles a definition that replaces a stored one: fields that objects depend on are immutable, and existing rules are not
    /// rejected again.
    ///
    /// # Errors
    /// Everything for which the API server would reject the update.
    pub fn compile_update(manifest: &Value, stored: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compiled(manifest, Some(&Definition::read(stored)?))
    }

    fn compiled(manifest: &Value, replaced: Option<&Definition>) -> Result<Self, Vec<FieldError>> {
        Self::of_read(manifest, Definition::read(manifest)?, replaced).map_err(|refused| refused.1)
    }

    /// Compiles a parsed definition; if it is rejected, it is returned with the errors.
    pub(crate) fn of_read(
        manifest: &Value,
        definition: Definition,
        replaced: Option<&Definition>,
    ) -> Result<Self, Box<(Definition, Vec<FieldError>)>> {
        let errors = registration::validate(manifest, &definition, replaced);
        if !errors.is_empty() {
            return Err(Box::new((definition, errors.into_vec())));
        }
        let versions = definition.versions.iter().enumerate();
        let versions = versions.map(|(at, version)| Arc::new(CrdVersion::new(&definition, at, version)));
        let versions = versions.collect();
        Ok(Self { definition, versions })
    }

    /// The definition as read: group, names, scope, versions with their columns and subresources.
    #[must_use]
    pub const fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The compiled versions, in the order of the definition.
    #[must_use]
    pub fn versions(&self) -> &[Arc<CrdVersion>] {
        &self.versions
    }

    #[must_use]
    pub fn version(&self, name: &str) -> Option<&Arc<CrdVersion>> {
        self.versions.iter().find(|version| version.name() == name)
    }
}
