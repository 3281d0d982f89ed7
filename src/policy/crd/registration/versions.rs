//! Validates `spec.versions` at registration: names, flags, schemas, subresources, columns, selectable fields.

use std::cell::RefCell;
use std::collections::HashSet;

use admit_apimachinery::field_error::{BadValue, FieldError};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{go, names};
use admit_cel::PatternSum;
use serde_json::Value;

use super::demands::Demands;
use super::internal::{self, Hoisted};
use super::structural::has_unsupported;
use super::{costs, defaults, node, replaced, structural, with_status};
use crate::crd::definition::{Definition, PrinterColumn, ScalePaths, Version};
use crate::crd::field_path::{self, Subscripts};
use crate::read::path::Path;
use crate::schema::{Schema, SchemaType};

/// The parts that are equal in all versions. The API server's internal form holds them once, at the top of the spec.
fn hoisted(versions: &[Version]) -> Hoisted {
    let all = |same: &dyn Fn(&Version, &Version) -> bool| {
        versions.split_first().is_some_and(|(first, rest)| rest.iter().all(|version| same(first, version)))
    };
    Hoisted {
        schema: all(&|a, b| a.schema == b.schema),
        subresources: all(&|a, b| a.status_subresource == b.status_subresource && a.scale == b.scale),
        columns: all(&|a, b| a.columns == b.columns),
        selectable_fields: all(&|a, b| a.selectable_fields == b.selectable_fields),
    }
}

/// The state that the checks of one definition share.
pub(super) struct Checked<'d> {
    manifest: &'d Value,
    pub(super) definition: &'d Definition,
    pub(super) demands: Demands,
    replaced: Option<&'d Definition>,
    stored: node::StoredExpressions,
    shared: Hoisted,
    /// The patterns of schemas, and of the rules so far.
    patterns: RefCell<PatternSum>,
}

impl<'d> Checked<'d> {
    pub(super) fn new(
        manifest: &'d Value,
        definition: &'d Definition,
        replaced: Option<&'d Definition>,
        patterns: PatternSum,
    ) -> Self {
        let mut stored = node::StoredExpressions::default();
        let versions = replaced.into_iter().flat_map(|replaced| &replaced.versions);
        versions.filter_map(|version| version.schema.as_deref()).for_each(|schema| stored.collect(schema));
        Self {
            manifest,
            definition,
            demands: replaced::demands(definition, replaced),
            replaced,
            stored,
            shared: hoisted(&definition.versions),
            patterns: RefCell::new(patterns),
        }
    }

    fn stored_version(&self, version: &Version) -> Option<&Version> {
        self.replaced.and_then(|replaced| replaced.version(&version.name))
    }

    /// Validates each version, and the list of versions as a whole.
    pub(super) fn each(&self, spec: &Path<'_>, errors: &mut FieldErrors) {
        let versions_at = spec.child("versions");
        for (i, version) in self.definition.versions.iter().enumerate() {
            self.version((i, version), &versions_at.index(i), errors);
        }
        let versions = &self.definition.versions;
        let internal = || internal::versions(self.manifest, self.shared);
        let names: HashSet<&str> = versions.iter().map(|version| version.name.as_str()).collect();
        if names.len() < versions.len() {
            errors.push(FieldError::invalid(versions_at, internal(), "must contain unique version names"));
        }
        if versions.iter().filter(|version| version.storage).count() != 1 {
            let detail = "must have exactly one version marked as storage version";
            errors.push(FieldError::invalid(versions_at, internal(), detail));
        }
        if let Some(first) = versions.first().filter(|first| !first.name.is_empty()) {
            let problems = names::dns1035_label(&first.name);
            if !problems.is_empty() {
                let detail = problems.join(",");
                errors.push(FieldError::invalid(spec.child("version"), first.name.as_str(), detail));
            }
        }
    }

    /// Whether every version has a schema.
    pub(super) fn schemas_given(&self, spec: &Path<'_>, errors: &mut FieldErrors) {
        let versions_at = spec.child("versions");
        let all = self.demands.schemas;
        if !all && self.definition.preserve_unknown_fields {
            return;
        }
        let detail = if all { "" } else { "because otherwise all fields are pruned" };
        for (i, version) in self.definition.versions.iter().enumerate() {
            if version.schema.is_none() && (all || version.served) {
                let at = versions_at.index(i);
                errors.push(FieldError::required(at.child("schema").child("openAPIV3Schema"), detail));
            }
        }
    }

    fn version(&self, (place, version): (usize, &Version), at: &Path<'_>, errors: &mut FieldErrors) {
        let problems = names::dns1035_label(&version.name);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(at.child("name"), version.name.as_str(), problems.join(",")));
        }
        deprecation(version, &at.child("deprecationWarning"), errors);
        let own_schema = version.schema.as_deref().filter(|_| !self.shared.schema);
        if let Some(own_schema) = own_schema {
            let at = at.child("schema");
            let alone = version.status_subresource.then(|| internal::schema_at(self.manifest, place));
            self.schema(own_schema, version, alone, &at.child("openAPIV3Schema"), errors);
        }
        if !self.shared.subresources {
            scale(version.scale.as_ref(), &at.child("subresources"), errors);
        }
        if !self.shared.columns {
            columns(&version.columns, &at.child("additionalPrinterColumns"), errors);
        }
        if !self.shared.selectable_fields {
            self.selectable(version, own_schema, &at.child("selectableFields"), SCHEMA_PER_VERSION, errors);
        }
    }

    /// Validates the parts that all versions share, where the internal form holds them.
    pub(super) fn shared(&self, spec: &Path<'_>, errors: &mut FieldErrors) {
        let versions = &self.definition.versions;
        let Some(first) = versions.first() else { return };
        let shared_schema = first.schema.as_deref().filter(|_| self.shared.schema);
        if let Some(schema) = shared_schema {
            let status = versions.iter().any(|version| version.status_subresource);
            let at = spec.child("validation");
            let alone = status.then(|| internal::schema_at(self.manifest, 0));
            self.schema(schema, first, alone, &at.child("openAPIV3Schema"), errors);
        }
        if self.shared.subresources {
            scale(first.scale.as_ref(), &spec.child("subresources"), errors);
        }
        if self.shared.columns {
            columns(&first.columns, &spec.child("additionalPrinterColumns"), errors);
        }
        if self.shared.selectable_fields {
            self.selectable(first, shared_schema, &spec.child("selectableFields"), SCHEMA_AT_TOP, errors);
        }
    }

    /// Validates the schema of one version, or the shared one. `alone` is what was sent, where the status is validated alone.
    fn schema(
        &self,
        schema: &Schema,
        version: &Version,
        alone: Option<&Value>,
        path: &Path<'_>,
        errors: &mut FieldErrors,
    ) {
        let before = errors.count();
        if let Some(sent) = alone {
            with_status::root(sent, path, errors);
        }
        if schema.nullable {
            errors.push(FieldError::forbidden(path.child("nullable"), "nullable cannot be true at the root"));
        }
        let mut scope = None;
        let readable = !has_unsupported(schema);
        if self.demands.structural && readable {
            let found = structural::validate(schema, path);
            let found = if found.is_empty() {
                defaults::validate(schema, self.demands.pruned_defaults, path)
            } else {
                found
            };
            scope = found.is_empty().then_some(node::Scope::ROOT);
            errors.extend(found);
        }
        let unchanged = self.stored_version(version).is_some_and(|stored| stored.schema == version.schema);
        let mut cx = node::Context {
            demands: &self.demands,
            stored: &self.stored,
            unchanged,
            costs: costs::TotalCost::default(),
            patterns: &self.patterns,
        };
        let found = node::Node::root(schema, path, scope).validate(&mut cx);
        errors.extend(found.schema);
        errors.extend(found.rules);
        // Reported only where the schema has no other mistake: it cannot be read as a structural schema.
        if self.demands.structural && !readable && errors.count() == before {
            let detail = "OpenAPIV3Schema 'schema' is not supported";
            errors.push(FieldError::invalid(path, "", detail));
        }
        cx.costs.report(path, errors);
    }

    fn selectable(
        &self,
        version: &Version,
        schema: Option<&Schema>,
        path: &Path<'_>,
        without_schema: &str,
        errors: &mut FieldErrors,
    ) {
        if version.selectable_fields.is_empty() {
            return;
        }
        let Some(schema) = schema else {
            errors.push(FieldError::invalid(path, "", without_schema));
            return;
        };
        let count = selectable_paths(&version.selectable_fields, schema, path, errors);
        // A stored version that has more than are allowed may keep them.
        let as_stored = self
            .stored_version(version)
            .is_some_and(|stored| stored.selectable_fields == version.selectable_fields);
        if count > MAX_SELECTABLE && !as_stored {
            errors.push(FieldError::too_many(path, count, MAX_SELECTABLE));
        }
    }
}

fn deprecation(version: &Version, path: &Path<'_>, errors: &mut FieldErrors) {
    let Some(warning) = &version.deprecation_warning else { return };
    let mut refuse =
        |detail: String| errors.push(FieldError::invalid(path, BadValue::marshalled(warning), detail));
    if !version.deprecated {
        return refuse("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| !go::quote::is_print(*c)) {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {i}"
        ));
    }
}

fn scale(scale: Option<&ScalePaths>, path: &Path<'_>, errors: &mut FieldErrors) {
    let Some(scale) = scale else { return };
    let at = path.child("scale");
    for (name, json_path, root) in [
        ("specReplicasPath", &scale.spec_replicas, ".spec"),
        ("statusReplicasPath", &scale.status_replicas, ".status"),
    ] {
        if json_path.is_empty() {
            errors.push(FieldError::required(at.child(name), ""));
        } else if simple_json_path(json_path, &at.child(name), errors) && !is_under(json_path, root) {
            let detail = format!("should be a json path under {root}");
            errors.push(FieldError::invalid(at.child(name), json_path.as_str(), detail));
        }
    }
    let at = at.child("labelSelectorPath");
    if let Some(json_path) = scale.label_selector.as_deref().filter(|path| !path.is_empty())
        && simple_json_path(json_path, &at, errors)
        && !is_under(json_path, ".spec")
        && !is_under(json_path, ".status")
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(at, BadValue::marshalled(json_path), detail));
    }
}

fn is_under(json_path: &str, root: &str) -> bool {
    json_path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}

fn simple_json_path(json_path: &str, path: &Path<'_>, errors: &mut FieldErrors) -> bool {
    let simple = json_path.starts_with('.');
    if !simple {
        errors.push(FieldError::invalid(path, json_path, "must be a simple json path starting with ."));
    }
    simple
}

fn columns(columns: &[PrinterColumn], path: &Path<'_>, errors: &mut FieldErrors) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (i, column) in columns.iter().enumerate() {
        let at = path.index(i);
        if column.name.is_empty() {
            errors.push(FieldError::required(at.child("name"), ""));
        }
        let detail = format!("must be one of {}", TYPES.join(","));
        if column.column_type.is_empty() {
            errors.push(FieldError::required(at.child("type"), detail));
        } else if !TYPES.contains(&column.column_type.as_str()) {
            errors.push(FieldError::invalid(at.child("type"), column.column_type.as_str(), detail));
        }
        if !column.format.is_empty() && !FORMATS.contains(&column.format.as_str()) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(at.child("format"), column.format.as_str(), detail));
        }
        if column.json_path.is_empty() {
            errors.push(FieldError::required(at.child("JSONPath"), ""));
        } else {
            simple_json_path(&column.json_path, &at.child("JSONPath"), errors);
        }
    }
}

const MAX_SELECTABLE: i64 = 8;
const SCHEMA_PER_VERSION: &str = "may only be set when `version.schema.openAPIV3Schema` is not included";
const SCHEMA_AT_TOP: &str = "may only be set when validations.schema is included";

/// The number of different fields that the paths select.
fn selectable_paths(
    json_paths: &[String],
    schema: &Schema,
    path: &Path<'_>,
    errors: &mut FieldErrors,
) -> i64 {
    let mut seen: HashSet<String> = HashSet::new();
    for (i, json_path) in json_paths.iter().enumerate() {
        let at = path.index(i);
        let at = at.child("jsonPath");
        let shown = json_path.as_str();
        if json_path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match field_path::resolve(json_path, schema, Subscripts::Forbidden) {
            Ok(found) => found,
            Err(problem) => {
                errors.push(FieldError::invalid(at, shown, format!("is an invalid path: {problem}")));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.push(FieldError::invalid(at, shown, "must not point to fields in metadata"));
        }
        let scalar = |schema: &&Schema| {
            matches!(schema.schema_type, Some(SchemaType::String | SchemaType::Boolean | SchemaType::Integer))
        };
        if found.schema.filter(scalar).is_none() {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.push(FieldError::invalid(at, shown, detail));
        }
        if !seen.insert(found.text) {
            errors.push(FieldError::duplicate(at, shown));
        }
    }
    i64::try_from(seen.len()).unwrap_or(i64::MAX)
}
