//! Defaults, prunes and validates custom resources with one compiled version of a CRD.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;
use thiserror::Error;

use super::definition::{Definition, ScalePaths, Version};
use super::rules::{Limits, Recorder, RuleTree, Subject};
use super::scale;
use crate::deadline::{Deadline, Interrupted, Pace};
use crate::read::path::Path;
use crate::release;
use crate::report::options::EvalOptions;
use crate::report::recording::{Expression, ExpressionId, Origin, Purse};
use crate::schema::correlate::Correlated;
use crate::schema::metadata::{self, Malformed};
use crate::schema::{self, Schema, list_type, validate};
use admit_apimachinery::weight::{Budget, TooHeavy};

const RULES_NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the \
                                 existing errors to complete validation";

/// A compiled version of a definition.
///
/// ```
/// use admit_apimachinery::weight::Budget;
/// use admit_policy::crd::{CompiledCrd, ValidateOptions};
/// use admit_policy::schema::Malformed;
/// use serde_json::json;
///
/// let crd = CompiledCrd::compile(&json!({
///     "apiVersion": "apiextensions.k8s.io/v1",
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "cats.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
///         "scope": "Namespaced",
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///             "type": "object",
///             "properties": {"spec": {
///                 "type": "object",
///                 "default": {"lives": 9},
///                 "properties": {"lives": {"type": "integer", "default": 9}},
///                 "x-kubernetes-validations": [{"rule": "self.lives > 0", "message": "is dead"}],
///             }},
///         }}}],
///     },
/// }))
/// .unwrap();
/// let version = crd.version("v1").unwrap();
/// assert_eq!((version.name(), version.scale().is_some()), ("v1", false));
/// assert_eq!(version.expressions()[0].text, "self.lives > 0");
/// assert!(version.schema().has_rules());
///
/// // The steps of reading an object, and all of them.
/// let written = json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "tom"}, "spec": {"tail": 1}});
/// let mut object = written.clone();
/// assert!(version.take_defaults(&object, &mut Budget::of_text(10_000)).is_ok());
/// version.default(&mut object);
/// assert_eq!(version.prune(&mut object), ["spec.tail"]);
/// assert!(version.coerce_metadata(&mut object, Malformed::Refuse).unwrap().is_empty());
/// let mut read = written.clone();
/// version.read(&mut read, Malformed::Refuse, None).unwrap();
/// assert_eq!((&read, &read["spec"]), (&object, &json!({"lives": 9})));
/// assert_eq!(version.stored(&written), object);
///
/// // Of what the server made of read objects nulls are kept.
/// let mut made = json!({"apiVersion": "example.com/v1", "kind": "Cat", "spec": {"lives": null, "tail": 1}});
/// version.fill(&mut made);
/// assert_eq!(version.prune_made(&mut made), ["spec.tail"]);
/// assert_eq!(made["spec"], json!({"lives": 9}));
///
/// object["spec"]["lives"] = 0.into();
/// let found = version.validate(&object, None, &ValidateOptions::default());
/// assert_eq!(found.errors[0].to_string(), "spec: Invalid value: is dead");
/// ```
#[derive(Debug)]
pub struct CrdVersion {
    name: String,
    api_version: String,
    kind: String,
    preserve_unknown_fields: bool,
    scale: Option<ScalePaths>,
    schema: Arc<Schema>,
    /// Whether objects may have others embedded, whose metadata is read.
    embeds: bool,
    rules: RuleTree,
    /// The path of the schema in the definition.
    place: ExpressionId,
}

/// Options of a validation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidateOptions<'a> {
    /// The request goes to `/status`: of the schema, only that of the status is checked.
    pub status: bool,
    /// Whether earlier errors, in the metadata, prevent rules from running.
    pub blocked: bool,
    /// The caller's hooks: the deadline applies to all steps, the rest to the evaluation of rules.
    pub eval: EvalOptions<'a>,
}

/// The result of a validation, without mistakes that were found earlier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    /// The errors, in the order in which the API server lists them.
    pub errors: Vec<FieldError>,
    /// Failed rules that were tolerated because what they refer to did not change.
    pub warnings: Vec<String>,
    /// Whether time ran out before validation finished. Then one of the errors says so.
    pub interrupted: bool,
}

/// An object that could not be read.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Unread {
    #[error(transparent)]
    Malformed(#[from] Box<FieldError>),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Validation {
    /// Returns the result of a validation that did not finish, with nothing else known.
    fn interrupted(interrupted: Interrupted) -> Self {
        let errors = vec![FieldError::internal(Path::Nil, interrupted.to_string())];
        Self { errors, warnings: Vec::new(), interrupted: true }
    }
}

impl CrdVersion {
    /// `at` is the version's position in the definition.
    pub(super) fn new(definition: &Definition, at: usize, version: &Version) -> Self {
        let name = definition.group_resource();
        let place = ExpressionId {
            origin: Origin::Definition { name, version: version.name.clone() },
            path: format!("spec.versions[{at}].schema.openAPIV3Schema"),
        };
        let schema = version.schema.clone().unwrap_or_default();
        Self {
            name: version.name.clone(),
            api_version: format!("{}/{}", definition.group, version.name),
            kind: definition.names.kind.clone(),
            preserve_unknown_fields: definition.preserve_unknown_fields,
            scale: version.scale.clone(),
            embeds: schema.embeds(),
            rules: RuleTree::compile(&schema, true),
            schema,
            place,
        }
    }

    /// Returns this version with another schema, whose rules are `rules`.
    pub(super) fn having(&self, schema: Schema, rules: RuleTree) -> Self {
        Self {
            name: self.name.clone(),
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            preserve_unknown_fields: self.preserve_unknown_fields,
            scale: self.scale.clone(),
            embeds: schema.embeds(),
            schema: Arc::new(schema),
            rules,
            place: self.place.clone(),
        }
    }

    pub(super) const fn rules(&self) -> &RuleTree {
        &self.rules
    }

    pub(super) fn shared_schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// `v1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The paths of the scale subresource, if it is enabled.
    #[must_use]
    pub fn scale(&self) -> Option<&ScalePaths> {
        self.scale.as_ref()
    }

    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Every expression of the rules, in order of their paths.
    #[must_use]
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        let expressions = self.rules.expressions().into_iter();
        let mut expressions: Vec<_> = expressions
            .map(|(path, text, program)| Expression { id: self.place.below(&path), text, program })
            .collect();
        expressions.sort_by(|a, b| a.id.cmp(&b.id));
        expressions
    }

    /// Fills in defaults; nulls that the schema does not allow count as absent. First step of reading an object.
    pub fn default(&self, object: &mut Value) {
        self.defaulted(object, &Pace::default());
    }

    /// Fills in defaults and keeps all other nulls, for an object that was already read and then changed by the server: it has no more
    /// nulls than its schema allows.
    pub fn fill(&self, object: &mut Value) {
        schema::default(object, &self.schema, &Pace::default());
    }

    /// Takes the memory that [`default`](Self::default) would add to the object from the budget.
    ///
    /// # Errors
    /// When the budget is spent.
    pub fn take_defaults(&self, object: &Value, budget: &mut Budget) -> Result<(), TooHeavy> {
        schema::take_added(object, &self.schema, budget)
    }

    /// Removes unknown fields and names them, sorted and of very many the first, in the form of strict field validation:
    /// `spec.items[0].colour`.
    /// The object's own metadata is left to [`Self::coerce_metadata`]. Second step of reading an object.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        self.pruned(object, &Pace::default())
    }

    /// Prunes an object that was computed from already read ones: nulls are kept.
    pub fn prune_made(&self, object: &mut Value) -> Vec<String> {
        if self.preserve_unknown_fields {
            return Vec::new();
        }
        schema::prune(object, &self.schema, &Pace::default())
    }

    /// Reads the metadata of the object and of the resources embedded in it; unknown fields are removed and named.
    /// Third step of reading an object.
    ///
    /// # Errors
    /// The first field of the wrong type, where these are not dropped.
    pub fn coerce_metadata(
        &self,
        object: &mut Value,
        malformed: Malformed,
    ) -> Result<Vec<String>, Box<FieldError>> {
        metadata::coerce(object, &self.schema, true, malformed, &Pace::default())
    }

    /// Drops what is malformed in the metadata of embedded resources: a server that reads an object from its store does so, since another
    /// schema may have let it in.
    ///
    /// ```
    /// use admit_policy::crd::CompiledCrd;
    /// use serde_json::json;
    ///
    /// let embedded = json!({
    ///     "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    /// });
    /// let crd = CompiledCrd::compile(&json!({
    ///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    ///     "metadata": {"name": "cats.example.com"},
    ///     "spec": {
    ///         "group": "example.com", "scope": "Namespaced",
    ///         "names": {"plural": "cats", "singular": "cat", "kind": "Cat"},
    ///         "versions": [{"name": "v1", "served": true, "storage": true,
    ///             "schema": {"openAPIV3Schema": {"type": "object", "properties": {"kitten": embedded}}}}],
    ///     },
    /// }))
    /// .unwrap();
    /// let mut cat = json!({"kitten": {"kind": 5, "metadata": {"name": "tom", "labels": {"age": 1}}}});
    /// crd.version("v1").unwrap().drop_malformed(&mut cat);
    /// assert_eq!(cat, json!({"kitten": {"metadata": {"name": "tom"}}}));
    /// ```
    pub fn drop_malformed(&self, object: &mut Value) {
        if self.embeds {
            // Nothing is refused.
            let _ = metadata::coerce(object, &self.schema, false, Malformed::Drop, &Pace::default());
        }
    }

    /// All three steps, until `deadline`. Returns the unknown fields, those of the metadata last.
    ///
    /// # Errors
    /// The first field of the metadata of the wrong type, where these are not dropped; or the time was over, and the object is
    /// in no state to be used.
    pub fn read(
        &self,
        object: &mut Value,
        malformed: Malformed,
        deadline: Option<Deadline<'_>>,
    ) -> Result<Vec<String>, Unread> {
        let pace = Pace::new(deadline);
        self.defaulted(object, &pace);
        let mut unknown = self.pruned(object, &pace);
        unknown.extend(metadata::coerce(object, &self.schema, true, malformed, &pace)?);
        pace.outcome()?;
        Ok(unknown)
    }

    fn defaulted(&self, object: &mut Value, pace: &Pace<'_>) {
        schema::drop_nulls(object, Some(&self.schema), pace);
        schema::default(object, &self.schema, pace);
    }

    fn pruned(&self, object: &mut Value, pace: &Pace<'_>) -> Vec<String> {
        if self.preserve_unknown_fields {
            return Vec::new();
        }
        let unknown = schema::prune(object, &self.schema, pace);
        schema::drop_nulls(object, Some(&self.schema), pace);
        unknown
    }

    /// An object as the server reads it back from its store. What was stored under another schema may be malformed under
    /// this one, and is dropped.
    #[must_use]
    pub fn stored(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let _ = self.read(&mut object, Malformed::Drop, None);
        object
    }

    /// Validates an object that was defaulted and pruned; with `old`, an update of it. The object's own metadata is
    /// the caller's to check: the checks of a name differ by kind. What is not decided by the deadline is an error.
    #[must_use]
    pub fn validate(&self, new: &Value, old: Option<&Value>, options: &ValidateOptions<'_>) -> Validation {
        let mut errors = self.type_meta(new);
        if !errors.is_empty() {
            return Validation { errors: errors.into_vec(), ..Validation::default() };
        }
        let pace = Pace::new(options.eval.deadline);
        let ratchet = release::ratchets();
        let root = old.filter(|_| ratchet).map(|old| Correlated { new, old, schema: &self.schema });
        errors.extend(self.schema_errors(new, root.as_ref(), options.status, &pace));
        if let Some(scale) = &self.scale {
            scale::validate(scale, new, options.status, &mut errors);
        }
        if !options.status {
            metadata::validate(new, &self.schema, &Path::Nil, false, &mut errors, &pace);
        }
        errors.extend(self.duplicates(new, old, &pace));
        if let Err(interrupted) = pace.outcome() {
            return Validation::interrupted(interrupted);
        }
        if self.schema.has_rules() && (options.blocked || errors.block_rules()) {
            errors.push(FieldError::invalid(Path::Nil, Value::Null, RULES_NOT_CHECKED));
            return Validation { errors: errors.into_vec(), ..Validation::default() };
        }
        let recorder = options.eval.recording.map(|recording| Recorder { recording, schema: &self.place });
        let subject = Subject { schema: &self.schema, path: &Path::Nil, new, old, ratchet, recorder };
        let expired = options.eval.deadline.map(Deadline::as_fn);
        let limits = Limits { expired, ..Limits::default() };
        let found = self.rules.evaluate(&subject, &limits);
        if let Some(recording) = options.eval.recording.filter(|_| !found.interrupted) {
            let limit = u64::try_from(limits.budget).unwrap_or_default();
            let cost = u64::try_from(found.remaining).ok().map(|left| limit.saturating_sub(left));
            recording.pay(&self.place.origin, Purse::Rules, cost, limit);
        }
        errors.extend(found.errors);
        let warnings = found.forgiven.into_iter().map(|error| error.to_string()).collect();
        Validation { errors: errors.into_vec(), warnings, interrupted: found.interrupted }
    }

    fn type_meta(&self, object: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        for (key, expected) in [("kind", &self.kind), ("apiVersion", &self.api_version)] {
            let found = object.get(key).and_then(Value::as_str).unwrap_or_default();
            if found != expected {
                errors.push(FieldError::invalid(key, found, format!("must be {expected}")));
            }
        }
        errors
    }

    fn schema_errors(
        &self,
        new: &Value,
        root: Option<&Correlated<'_>>,
        status: bool,
        pace: &Pace<'_>,
    ) -> Vec<FieldError> {
        if !status {
            return validate::validate(new, &self.schema, root, &Path::Nil, pace);
        }
        let Some(status) = new.get("status") else { return Vec::new() };
        let anything = Schema::default();
        let schema = self.schema.properties.get("status").unwrap_or(&anything);
        // An absent status counts as null, also as the old value.
        let old = root.map(|root| root.old.get("status").unwrap_or(&Value::Null));
        let ratchet = old.map(|old| Correlated { new: status, old, schema });
        validate::validate(status, schema, ratchet.as_ref(), &Path::Root("status"), pace)
    }

    /// Duplicates are tolerated in an object that already had some.
    fn duplicates(&self, new: &Value, old: Option<&Value>, pace: &Pace<'_>) -> FieldErrors {
        let find = |object: &Value| {
            let mut errors = FieldErrors::default();
            list_type::validate(object, &self.schema, &Path::Nil, &mut errors, pace);
            errors
        };
        if old.is_some_and(|old| !find(old).is_empty()) { FieldErrors::default() } else { find(new) }
    }
}
