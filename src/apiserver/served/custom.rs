//! Implements the behaviour of a custom resource's kind, as its CustomResourceDefinition defines it.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::weight::{Budget, TooHeavy};
use admit_policy::crd::{CompiledCrd, ConversionError, CrdVersion, ValidateOptions};
use admit_policy::schema::Malformed;
use admit_policy::{Deadline, EvalOptions};
use serde_json::Value;

use super::scale::ScalePaths;
use crate::conversion::Webhook;
use crate::managed_fields::schema::{Schema, TypeId};
use crate::resources::ResourceInfo;
use crate::status::{Cause, Causes, Refusal, causes};
use crate::warning::Warnings;
use crate::{interrupt, object};

/// A resource that a CRD defines, with all its versions.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// The CRD's name: `widgets.example.dev`.
    pub definition: String,
    /// The revision of the CRD that this was built from.
    pub revision: crate::store::Revision,
    pub group: String,
    pub plural: String,
    /// Whether the CRD is being deleted: nothing new may be created.
    pub terminating: bool,
    pub versions: Vec<Arc<CustomVersion>>,
}

/// One version of a custom resource's kind.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    pub info: Arc<ResourceInfo>,
    pub served: bool,
    pub terminating: bool,
    pub scale: Option<ScalePaths>,
    /// The schema by which field ownership treats objects.
    pub typing: (Schema, TypeId),
    /// The compiled schema and rules; None for a stored definition that no longer compiles.
    pub rules: Option<Arc<CrdVersion>>,
    /// The whole definition, as objects may be stored in other versions.
    pub compiled: Option<Arc<CompiledCrd>>,
    /// The webhook that converts between versions, if they differ in more than their name.
    pub(crate) converter: Option<Arc<Webhook>>,
}

impl CustomVersion {
    /// Removes unknown fields; returns their paths, sorted.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        self.rules.as_ref().map(|rules| rules.prune(object)).unwrap_or_default()
    }

    /// Like [`Self::prune`], for an object that a configuration was merged into: its nulls are kept.
    pub(crate) fn prune_merged(&self, object: &mut Value) -> Vec<String> {
        self.rules.as_ref().map(|rules| rules.prune_made(object)).unwrap_or_default()
    }

    /// Decodes the metadata of embedded resources; removes unknown fields and returns their names.
    ///
    /// # Errors
    /// The first field of the wrong type: `spec.r.kind: Invalid value: 5: must be a string`.
    pub(crate) fn read_metadata(&self, object: &mut Value) -> Result<Vec<String>, Box<FieldError>> {
        let Some(rules) = &self.rules else { return Ok(Vec::new()) };
        rules.coerce_metadata(object, Malformed::Refuse)
    }

    /// Normalizes an object that the server changed after decoding, as it would be stored: malformed metadata is dropped
    /// instead of refused, and nulls are left to validation.
    pub(crate) fn read_made(&self, object: &mut Value) {
        if let Some(rules) = &self.rules {
            rules.prune_made(object);
            // Dropping malformed fields cannot fail.
            let _ = rules.coerce_metadata(object, Malformed::Drop);
        }
    }

    /// Deducts the memory that [`fill`](Self::fill) would add to the object from the budget.
    ///
    /// # Errors
    /// If the budget is exhausted.
    pub(crate) fn take_defaults(&self, object: &Value, budget: &mut Budget) -> Result<(), TooHeavy> {
        self.rules.as_ref().map_or(Ok(()), |rules| rules.take_defaults(object, budget))
    }

    /// Sets the defaults of a decoded object: other nulls are kept.
    pub(crate) fn fill(&self, object: &mut Value) {
        if let Some(rules) = &self.rules {
            rules.fill(object);
        }
    }

    /// Converts the object to the storage version; fields unknown to that version are dropped.
    ///
    /// # Errors
    /// If a webhook must convert it first.
    pub(crate) fn to_stored(&self, object: &mut Value, version: &str) -> Result<(), ConversionError> {
        let Some(compiled) = self.compiled.as_ref().filter(|_| version != self.info.version) else {
            return Ok(());
        };
        compiled.check_conversion(object, &format!("{}/{version}", self.info.group))?;
        if let Some(stored) = compiled.version(version) {
            stored.prune(object);
        }
        Ok(())
    }

    /// Converts a stored object to this version. Defaults are those of the version that it was stored in.
    ///
    /// # Errors
    /// If a webhook must convert it first.
    pub(crate) fn read_stored(&self, object: &mut Value) -> Result<(), ConversionError> {
        if let Some(compiled) = &self.compiled {
            compiled.check_conversion(object, &self.info.api_version())?;
        }
        let stored_as = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let version = stored_as.rsplit('/').next().unwrap_or_default();
        if let Some(stored) = self.compiled.as_ref().and_then(|compiled| compiled.version(version)) {
            stored.default(object);
        }
        object::set_field(object, "apiVersion", Some(self.info.api_version().into()));
        self.prune(object);
        if let Some(rules) = &self.rules {
            rules.drop_malformed(object);
        }
        Ok(())
    }

    /// Validates the object without its metadata. Adds warnings for errors that ratcheting tolerates.
    pub(crate) fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        status: bool,
        (earlier, warnings): (&[Cause], &Warnings),
    ) -> Causes {
        let Some(rules) = &self.rules else {
            let why = "the definition of this resource does not compile";
            return Causes::from(Cause::forbidden("<nil>", why));
        };
        let blocked = earlier.iter().any(Cause::blocks_rules);
        let deadline = Some(Deadline::new(&interrupt::is_over));
        let eval = EvalOptions { deadline, ..EvalOptions::default() };
        let found = rules.validate(new, old, &ValidateOptions { status, blocked, eval });
        interrupt::checkpoint();
        found.warnings.into_iter().for_each(|text| warnings.add(text));
        causes(&found.errors)
    }
}

impl From<ConversionError> for Refusal {
    fn from(error: ConversionError) -> Self {
        Self::unclassified(error.to_string())
    }
}

/// Compiles a definition; None, with a log entry, for a stored one that was accepted by older rules and does not compile.
pub(crate) fn compiled(definition: &Value) -> Option<CompiledCrd> {
    match CompiledCrd::compile(definition) {
        Ok(compiled) => Some(compiled),
        Err(errors) => {
            let name = object::name(definition);
            tracing::error!(definition = name, errors = errors.len(), "a stored definition does not compile");
            None
        }
    }
}
