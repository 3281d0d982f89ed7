//! The behaviour of a custom resource's kind, as its CustomResourceDefinition defines it.

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
    /// The CRD is being deleted: nothing new may be created.
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
    /// How field ownership types objects.
    pub typing: (Schema, TypeId),
    /// The compiled schema and rules; None for a stored definition that no longer compiles.
    pub rules: Option<Arc<CrdVersion>>,
    /// The whole definition: objects are stored in versions other than this one.
    pub compiled: Option<Arc<CompiledCrd>>,
    /// By which versions are converted into one another, where they differ in more than their name.
    pub(crate) converter: Option<Arc<Webhook>>,
}

impl CustomVersion {
    /// Removes what the schema does not know; answers the paths, sorted.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        self.rules.as_ref().map(|rules| rules.prune(object)).unwrap_or_default()
    }

    /// The same for an object that a configuration was merged into: its nulls are kept.
    pub(crate) fn prune_merged(&self, object: &mut Value) -> Vec<String> {
        self.rules.as_ref().map(|rules| rules.prune_made(object)).unwrap_or_default()
    }

    /// Reads the metadata of embedded resources; unknown fields are removed and named.
    ///
    /// # Errors
    /// The first field of the wrong type: `spec.r.kind: Invalid value: 5: must be a string`.
    pub(crate) fn read_metadata(&self, object: &mut Value) -> Result<Vec<String>, Box<FieldError>> {
        let Some(rules) = &self.rules else { return Ok(Vec::new()) };
        rules.coerce_metadata(object, Malformed::Refuse)
    }

    /// An object that was read and then changed on the server's side, as it would be stored: nobody refuses what its metadata
    /// cannot hold, and nulls are left to validation.
    pub(crate) fn read_made(&self, object: &mut Value) {
        if let Some(rules) = &self.rules {
            rules.prune_made(object);
            // Nothing is refused where malformed fields are dropped.
            let _ = rules.coerce_metadata(object, Malformed::Drop);
        }
    }

    /// Takes the memory that [`fill`](Self::fill) would add to the object from the budget.
    ///
    /// # Errors
    /// When the budget is spent.
    pub(crate) fn take_defaults(&self, object: &Value, budget: &mut Budget) -> Result<(), TooHeavy> {
        self.rules.as_ref().map_or(Ok(()), |rules| rules.take_defaults(object, budget))
    }

    /// Fills in defaults of an object that was read: other nulls are kept.
    pub(crate) fn fill(&self, object: &mut Value) {
        if let Some(rules) = &self.rules {
            rules.fill(object);
        }
    }

    /// The object in the version that objects are stored in: what that version does not know is lost.
    ///
    /// # Errors
    /// When a webhook has to convert it first.
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

    /// A stored object in this version. Defaults are those of the version that it was stored in.
    ///
    /// # Errors
    /// When a webhook has to convert it first.
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
        Ok(())
    }

    /// What is wrong with the object, its metadata apart. What a rule let pass because it was as wrong before is warned of.
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

/// The compiled definition. A stored one that does not compile was accepted by other rules than today's.
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
